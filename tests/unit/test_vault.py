"""The folder of keys: what is in it, who may read it, and what is never overwritten."""

from __future__ import annotations

import logging
import stat
import time
from pathlib import Path

import pytest

from contracts.access import Access, read_claims
from contracts.errors import Conflict, ErrorCode, InvalidRequest, NotFound
from infra.security import claims
from infra.security.claims import Key
from infra.security.permissions import ROLES
from infra.security.vault import Vault


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault.create(tmp_path / "keys", ["team"])


def contents(vault: Vault) -> dict[str, bytes]:
    return {
        str(path.relative_to(vault.folder)): path.read_bytes() for path in vault.folder.rglob("*") if path.is_file()
    }


def test_only_the_owner_reads_it(vault: Vault) -> None:
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [vault.folder, *vault.folder.rglob("*")]}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert sorted(vault.folder.parent.iterdir()) == [vault.folder]  # nothing half made stays beside it


def test_every_role_has_a_credential_that_fits_one_line_of_the_server(vault: Vault) -> None:
    for role in ROLES:
        creds = vault.access(role).creds
        assert creds is not None
        assert len(creds.read_text().splitlines()[1]) < 3500, role  # of 4096, in which a signature must fit too


def test_a_long_project_name_fits_too(vault: Vault) -> None:
    creds = vault.add_agent("p" * 64)
    assert len(creds.read_text().splitlines()[1]) < 3900


def test_nothing_is_overwritten(vault: Vault) -> None:
    before = contents(vault)
    with pytest.raises(Conflict, match="--force"):
        Vault.create(vault.folder, ["team"])
    with pytest.raises(Conflict, match="revoke it first"):
        vault.add_agent("team")
    assert contents(vault) == before


def test_an_empty_folder_may_be_there(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    assert Vault.create(tmp_path / "keys").folder == tmp_path / "keys"


def test_force_makes_every_key_anew_but_the_names_that_data_is_bound_to(vault: Vault) -> None:
    until = int(time.time()) + 1000
    vault.add_agent("other", "planner", until)
    vault.add_agent("other", "gone", int(time.time()) - 1)
    before, core = contents(vault), vault.core
    anew = Vault.create(vault.folder, ["third"], force=True)
    after = contents(anew)
    assert anew.core == core
    unchanged = {name for name in before if after.get(name) == before[name]}
    assert unchanged == {"keys/core/account.seed", "keys/system/account.seed"}
    agents = {name for name in after if name.startswith("agents/")}
    assert agents == {"agents/team/agent.creds", "agents/other/planner.creds", "agents/third/agent.creds"}
    assert read_claims(anew.folder / "agents/other/planner.creds")["exp"] == until


@pytest.mark.parametrize("name", ["", "..", "a/b", "a.b", "_", "x" * 65, "a\n"])
def test_names_are_names_of_files(vault: Vault, name: str) -> None:
    with pytest.raises(InvalidRequest):
        vault.add_agent(name)
    with pytest.raises(InvalidRequest):
        vault.add_agent("team", name)
    with pytest.raises(InvalidRequest):
        vault.revoke("team", name)
    with pytest.raises(InvalidRequest):
        Vault.create(vault.folder.parent / "second", [name])
    assert not (vault.folder.parent / "second").exists()


def test_what_is_not_there_is_not_found(vault: Vault, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="security init"):
        Vault(tmp_path)
    with pytest.raises(NotFound):
        vault.revoke("team", "nobody")
    with pytest.raises(NotFound):
        vault.revoke("unknown", "agent")


def test_a_revoked_name_may_be_given_again(vault: Vault) -> None:
    first = read_claims(vault.folder / "agents/team/agent.creds")["sub"]
    vault.revoke("team", "agent")
    assert read_claims(vault.add_agent("team"))["sub"] != first


def test_a_key_does_not_show_its_seed(caplog: pytest.LogCaptureFixture) -> None:
    key = Key.new("user")
    logging.getLogger("test").warning("%s %r", key, key)
    assert key.seed().decode() not in caplog.text
    assert key.public in caplog.text


def test_a_key_is_the_same_after_it_was_written() -> None:
    key = Key.new("account")
    assert Key.load(key.seed() + b"\n").public == key.public
    assert key.public.startswith("A")
    assert key.seed().startswith(b"SA")


def test_no_user_is_made_that_may_do_everything() -> None:
    """An empty list of what is allowed would mean that to the server."""
    key = Key.new("account")
    with pytest.raises(AssertionError):
        claims.user(key, key.public, Key.new("user").public, "x", (), ("_INBOX.x.>",))


@pytest.mark.parametrize(
    "text", ["", "nonsense", "-----BEGIN NATS USER JWT-----\nx", "-----BEGIN NATS USER JWT-----\n1.2.3", "ä"]
)
def test_what_is_no_credential_is_refused_and_not_shown(tmp_path: Path, text: str) -> None:
    file = tmp_path / "some.creds"
    file.write_text(text, "utf-8")
    for access in (Access(creds=file), Access(nkey=file), Access(tls_ca=file)):
        with pytest.raises(InvalidRequest) as caught:
            access.options()
        assert caught.value.code == ErrorCode.INVALID_REQUEST
        assert str(file) in caught.value.message
    with pytest.raises(InvalidRequest, match="No such file"):
        Access(creds=tmp_path / "none").options()


def test_replies_go_where_the_credential_may_read_them(vault: Vault, tmp_path: Path) -> None:
    creds = vault.folder / "agents/team/agent.creds"
    assert Access(creds=creds).options()["inbox_prefix"] == f"_INBOX.{read_claims(creds)['sub']}"
    assert Access(creds=creds, inbox_prefix="_MINE").options()["inbox_prefix"] == "_MINE"
    key = Key.new("user")
    (tmp_path / "seed").write_bytes(key.seed())
    assert Access(nkey=tmp_path / "seed").options()["inbox_prefix"] == f"_INBOX.{key.public}"
    assert Access().options() == {}
