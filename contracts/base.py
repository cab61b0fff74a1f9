"""Ground that every message stands on: strictness, limits and shared field types."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

MAX_TEXT_BYTES = 256 * 1024  #: a memory's text, in UTF-8; leaves room for vectors under the bus's 1 MiB
MAX_CUE_BYTES = 16 * 1024  #: a cue, in UTF-8
MESSAGE_OVERHEAD = 1024  #: what subjects and protocol take of a message beside header and body
MAX_NAME_CHARS = 256
MAX_TAGS = 64
MAX_EDGES = 64
MAX_STATEMENTS = 64
MAX_ENTITIES = 256
MAX_METADATA_BYTES = 16 * 1024
MAX_MEMBERS = 1000
DEFAULT_MEMBERS = 50
MAX_DEADLINE_MS = 60_000

PROJECT_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
MEMORY_ID_PATTERN = r"^[a-z2-7]{26}$"


class Message(BaseModel):
    """A frozen message that refuses unknown fields, so that a misspelt one is never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings", hide_input_in_errors=True)


class LaxMessage(BaseModel):
    """A message between our own processes: frozen, but tolerant of fields a newer release added."""

    model_config = ConfigDict(frozen=True, extra="ignore")


def _to_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:  # the first or the last day there is, in a zone that is already beyond it
        raise ValueError("the time is out of range in UTC") from None


def _no_number(value: object) -> object:
    if isinstance(value, int | float):
        raise ValueError("times are RFC 3339 strings with a zone, not numbers")
    return value


def _clean(value: str) -> str:
    """Refuse what no lane can index alike: NUL (some stores stop at it) and lone surrogates (not UTF-8)."""
    if "\x00" in value:
        raise ValueError("must not contain the NUL character")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("must be valid Unicode, without lone surrogates") from None
    return value


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank")
    return value


#: An instant: RFC 3339 with a zone; naive times are refused; kept in UTC.
Instant = Annotated[AwareDatetime, BeforeValidator(_no_number), AfterValidator(_to_utc)]
Text = Annotated[str, AfterValidator(_clean)]
Name = Annotated[
    str, Field(min_length=1, max_length=MAX_NAME_CHARS), AfterValidator(_clean), AfterValidator(_not_blank)
]
Project = Annotated[str, Field(pattern=PROJECT_PATTERN)]
MemoryId = Annotated[str, Field(pattern=MEMORY_ID_PATTERN)]
TxnId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Unit = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Position = int
Consistency = Literal["Eventual", "ReadAfterWrite"]


def now() -> datetime:
    """The present instant in UTC, to the millisecond (what the wire and the stores keep)."""
    instant = datetime.now(UTC)
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def epoch_ms(instant: datetime) -> int:
    """Milliseconds since 1970 of an aware instant."""
    return int(instant.timestamp() * 1000)
