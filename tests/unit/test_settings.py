"""Where settings come from, which wins, and what an error says."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from contracts.errors import InvalidRequest
from infra.settings import Settings, load


def write(folder: Path, text: str) -> Path:
    path = folder / "memlane.toml"
    path.write_text(text, "utf-8")
    return path


def refusal(path: Path | None, environ: dict[str, str]) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        load(path, environ)
    return caught.value


def test_defaults_need_nothing() -> None:
    settings = load(None, {})
    assert settings == Settings()
    assert settings.nats.url == "nats://127.0.0.1:4222"
    assert settings.log.shards == 1
    assert settings.graph.uri is None


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMLANE_REPLICA", "z")
    assert load().replica == "z"


def test_toml_over_defaults(tmp_path: Path) -> None:
    path = write(tmp_path, 'replica = "b"\n[log]\nshards = 4\n[embed]\nbatch = 8\n')
    settings = load(path, {})
    assert (settings.replica, settings.log.shards, settings.embed.batch) == ("b", 4, 8)
    assert settings.embed.threads == 2


def test_environment_over_toml_field_by_field(tmp_path: Path) -> None:
    path = write(tmp_path, 'replica = "b"\n[log]\nshards = 4\nreplicas = 3\n')
    settings = load(path, {"MEMLANE_LOG__SHARDS": "8", "MEMLANE_REPLICA": "c", "OTHER": "x"})
    assert (settings.replica, settings.log.shards, settings.log.replicas) == ("c", 8, 3)


def test_config_from_the_environment(tmp_path: Path) -> None:
    path = write(tmp_path, "shard = 3\n[log]\nshards = 8\n")
    assert load(None, {"MEMLANE_CONFIG": str(path)}).shard == 3
    (tmp_path / "other").mkdir()
    other = write(tmp_path / "other", "shard = 5\n[log]\nshards = 8\n")
    assert load(other, {"MEMLANE_CONFIG": str(path)}).shard == 5


def test_well_known_names_yield_to_ours(tmp_path: Path) -> None:
    path = write(tmp_path, '[nats]\nurl = "nats://file"\n')
    known = {"NATS_URL": "nats://known", "NEO4J_URI": "bolt://x", "NEO4J_USER": "u", "NEO4J_PASSWORD": "p"}
    settings = load(path, known)
    assert settings.nats.url == "nats://known"
    assert (settings.graph.uri, settings.graph.user) == ("bolt://x", "u")
    assert settings.graph.password.get_secret_value() == "p"
    ours = known | {"MEMLANE_NATS__URL": "nats://ours", "MEMLANE_GRAPH__PASSWORD": "q"}
    assert load(path, ours).nats.url == "nats://ours"
    assert load(path, ours).graph.password.get_secret_value() == "q"
    assert load(path, {"NATS_URL": ""}).nats.url == "nats://file"


def test_variables_read_elsewhere_are_no_settings() -> None:
    environ = {"MEMLANE_TEST_DATA": "/x", "MEMLANE_REQUIRE_NEO4J": "1", "MEMLANE_PASSWORD": "p"}
    environ["MEMLANE_PROJECT"] = "team"
    assert load(None, environ) == Settings()


@pytest.mark.parametrize(
    ("environ", "field"),
    [
        ({"MEMLANE_LOG__SHARDS": "many"}, "log.shards"),
        ({"MEMLANE_LOG__SHARDS": "0"}, "log.shards"),
        ({"MEMLANE_LOG__SHARDS": "3"}, "log.shards"),
        ({"MEMLANE_SHARD": "2", "MEMLANE_LOG__SHARDS": "2"}, "shard"),
        ({"MEMLANE_LOG__REPLICAS": "6"}, "log.replicas"),
        ({"MEMLANE_LEXICAL__ENGINE": "lucene"}, "lexical.engine"),
        ({"MEMLANE_EMBED__BACTH": "3"}, "embed.bacth"),
        ({"MEMLANE_NO_SUCH": "3"}, "no_such"),
        ({"MEMLANE_LOG_LEVEL": "loud"}, "log_level"),
        ({"MEMLANE_LOG": "x"}, "log"),
        ({"MEMLANE_SHARD": "-1"}, "shard"),
    ],
)
def test_an_error_names_the_setting(environ: dict[str, str], field: str) -> None:
    error = refusal(None, environ)
    assert error.details["field"] == field
    assert field in error.message


def test_an_error_in_the_file_names_the_setting(tmp_path: Path) -> None:
    assert refusal(write(tmp_path, "[rerank]\ntop = 0\n"), {}).details["field"] == "rerank.top"


@pytest.mark.parametrize("text", ["replica = ", "[log\n", "a = 1\na = 2\n"])
def test_broken_toml(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    assert str(path) in refusal(path, {}).message


def test_missing_file(tmp_path: Path) -> None:
    assert "absent.toml" in refusal(tmp_path / "absent.toml", {}).message


def test_secrets_do_not_show(tmp_path: Path) -> None:
    settings = load(None, {"NEO4J_PASSWORD": "s3cret"})
    assert "s3cret" not in f"{settings!r} {settings} {settings.model_dump_json()}"
    error = refusal(write(tmp_path, '[graph]\npassword = ["s3cret"]\n'), {})
    assert "s3cret" not in f"{error} {error.details}"


def test_frozen_and_folder() -> None:
    settings = load(
        None, {"MEMLANE_DATA": "/d", "MEMLANE_SHARD": "2", "MEMLANE_LOG__SHARDS": "4", "MEMLANE_REPLICA": "b"}
    )
    assert settings.folder("semantic") == Path("/d/semantic-2of4-b")
    with pytest.raises(ValidationError):
        settings.replica = "c"  # type: ignore[misc]


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "memlane.toml"
    path.write_bytes(b'replica = "\xff"\n')
    assert "memlane.toml" in refusal(path, {}).message


@pytest.mark.parametrize(
    "environ",
    [
        {"MEMLANE_REPLICA": "a", "MEMLANE_REPLICA__X": "b"},
        {"MEMLANE_LOG": "x", "MEMLANE_LOG__SHARDS": "2"},
        {"MEMLANE_LOG__SHARDS__X": "2", "MEMLANE_LOG__SHARDS__X__Y": "2"},
    ],
)
def test_a_value_where_a_section_belongs(environ: dict[str, str]) -> None:
    assert refusal(None, environ).details["field"]


def test_quotas_limit_by_limit(tmp_path: Path) -> None:
    text = """
    [quota]
    mode = "strict"
    limits = {encode = 100, recall = 1000}
    [quota.projects.big]
    encode = 5000
    recall = "unlimited"
    query = 7
    [quota.projects.Trial]
    mode = "silent"
    [quota.projects.free]
    mode = "off"
    encode = 1
    """
    quota = load(write(tmp_path, text), {"MEMLANE_QUOTA__LIMITS__RERANK": "9"}).quota
    assert quota.of("anybody") == ("strict", {"encode": 100, "recall": 1000, "rerank": 9})
    assert quota.of("big") == ("strict", {"encode": 5000, "query": 7, "rerank": 9})
    assert quota.of("Trial") == ("silent", {"encode": 100, "recall": 1000, "rerank": 9})
    assert quota.of("free") == ("off", {})


def test_without_a_quota_nothing_is_limited(tmp_path: Path) -> None:
    assert load(None, {}).quota.of("anybody") == ("off", {})
    assert load(None, {"MEMLANE_QUOTA__LIMITS__ENCODE": "5"}).quota.of("anybody") == ("off", {})


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('[quota]\nmode = "loud"\n', "quota.mode"),
        ("[quota.limits]\nencode = -1\n", "quota.limits.encode"),
        ("[quota.limits]\nquery_low = 1\n", "quota.limits.query_low"),
        ('[quota.projects."a.b"]\nencode = 1\n', "quota.projects.a.b"),
        ('default_project = "_"\n', "default_project"),
    ],
)
def test_a_quota_that_cannot_be(tmp_path: Path, text: str, field: str) -> None:
    assert str(refusal(write(tmp_path, text), {}).details["field"]).startswith(field)
