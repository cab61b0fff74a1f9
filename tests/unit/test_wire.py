"""Bytes and messages, errors as values, ids, shards, vectors and names."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts import wire
from contracts.base import MAX_TEXT_BYTES, MEMORY_ID_PATTERN
from contracts.encode import EncodeReply, EncodeRequest
from contracts.errors import (
    Conflict,
    ErrorBody,
    ErrorCode,
    ErrorReply,
    Exhausted,
    Internal,
    InvalidRequest,
    MemlaneError,
    NotFound,
    Unavailable,
    from_reply,
    to_reply,
)
from contracts.memory import MemoryRecord, Relation, derive_id, pack_vector, unpack_vector
from contracts.names import normalise, spans
from contracts.recall import RecallRequest
from contracts.shards import shard_of

WHEN = datetime(2024, 5, 1, tzinfo=UTC)
CLASSES = [InvalidRequest, NotFound, Conflict, Exhausted, Unavailable, Internal]


def refusal(kind: type, value: object) -> MemlaneError:
    with pytest.raises(InvalidRequest) as caught:
        wire.decode(kind, value if isinstance(value, bytes) else orjson.dumps(value))
    return caught.value


class TestDecode:
    def test_round_trip(self) -> None:
        request = EncodeRequest(text="a", occurred_at=WHEN, tags=("x",), relations=(
            Relation(**{"from": "a", "type": "b", "to": "c"}),
        ))  # fmt: skip
        data = wire.encode(request)
        assert wire.decode(EncodeRequest, data) == request
        assert orjson.loads(data)["relations"][0] == {"from": "a", "type": "b", "to": "c", "properties": {}}

    def test_absent_values_are_left_out(self) -> None:
        assert b"null" not in wire.encode(RecallRequest(cue="a"))

    @pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b'{"cue": "\xc3"}', b"{'cue': 1}", b"NaN"])
    def test_not_json(self, data: bytes) -> None:
        assert refusal(RecallRequest, data).code is ErrorCode.INVALID_ENCODING

    @pytest.mark.parametrize("value", [[], "text", 1, None, True])
    def test_not_an_object(self, value: object) -> None:
        error = refusal(RecallRequest, value)
        assert error.code is ErrorCode.INVALID_REQUEST
        assert error.details == {"got": type(value).__name__}

    @pytest.mark.parametrize(
        ("value", "code", "field"),
        [
            ({}, ErrorCode.INVALID_REQUEST, "cue"),
            ({"cue": 1}, ErrorCode.INVALID_REQUEST, "cue"),
            ({"cue": "a", "max_result": 3}, ErrorCode.UNKNOWN_FIELD, "max_result"),
            ({"cue": "a", "max_results": 0}, ErrorCode.OUT_OF_RANGE, "max_results"),
            ({"cue": "a", "max_results": 1001}, ErrorCode.OUT_OF_RANGE, "max_results"),
            ({"cue": "a", "min_confidence": 1.5}, ErrorCode.OUT_OF_RANGE, "min_confidence"),
            ({"cue": "a", "deadline_ms": 0}, ErrorCode.OUT_OF_RANGE, "deadline_ms"),
            ({"cue": "a", "since": 1700000000}, ErrorCode.INVALID_REQUEST, "since"),
            ({"cue": "a", "since": "2024-05-01T00:00:00"}, ErrorCode.INVALID_REQUEST, "since"),
            ({"cue": "a", "kinds": ["Other"]}, ErrorCode.INVALID_REQUEST, "kinds.0"),
            ({"cue": "a\x00"}, ErrorCode.INVALID_REQUEST, "cue"),
            ({"cue": "a", "session": "  "}, ErrorCode.INVALID_REQUEST, "session"),
            ({"cue": "a", "consistency": "Strong"}, ErrorCode.INVALID_REQUEST, "consistency"),
        ],
    )
    def test_the_first_offending_field_is_named(self, value: object, code: ErrorCode, field: str) -> None:
        error = refusal(RecallRequest, value)
        assert (error.code, error.details["field"]) == (code, field)

    def test_bounds_are_in_details(self) -> None:
        assert refusal(RecallRequest, {"cue": "a", "max_results": 5000}).details["le"] == 1000

    def test_the_value_is_not_repeated(self) -> None:
        error = refusal(RecallRequest, {"cue": "a", "session": ["s3cret"]})
        assert "s3cret" not in str(error) + str(error.details)

    def test_times_are_kept_in_utc(self) -> None:
        request = wire.decode(RecallRequest, b'{"cue":"a","since":"2024-05-01T02:00:00+02:00"}')
        assert request.since == WHEN
        assert request.since.utcoffset().total_seconds() == 0

    def test_metadata_nulls_survive(self) -> None:
        request = EncodeRequest(text="a", metadata={"a": None, "b": {"c": None}, "d": [None]})
        assert wire.decode(EncodeRequest, wire.encode(request)).metadata == request.metadata

    def test_record_metadata_nulls_survive_the_log(self) -> None:
        record = MemoryRecord(
            id=derive_id("a"), project="p", text="a", created_at=WHEN, changed_at=WHEN, metadata={"a": None}
        )
        assert wire.decode_reply(MemoryRecord, wire.encode(record)) == record


class TestReplies:
    def test_a_reply(self) -> None:
        reply = EncodeReply(id=derive_id("a"), position=3)
        assert wire.decode_reply(EncodeReply, wire.encode(reply)) == reply

    def test_newer_fields_are_tolerated(self) -> None:
        data = orjson.dumps({"id": derive_id("a"), "position": 3, "new": 1})
        assert wire.decode_reply(EncodeReply, data).position == 3

    def test_an_error_is_raised(self) -> None:
        with pytest.raises(Exhausted) as caught:
            wire.decode_reply(EncodeReply, wire.encode_error(Exhausted(ErrorCode.OVERLOADED, "full", waiting=3)))
        assert (caught.value.code, caught.value.details) == (ErrorCode.OVERLOADED, {"waiting": 3})

    @pytest.mark.parametrize("data", [b"", b"junk", b"[]", b"1", b"{}", b'{"error":{}}', b'{"error":1}', b"\xff"])
    def test_garbage_is_a_value_error(self, data: bytes) -> None:
        with pytest.raises(ValueError):
            wire.decode_reply(EncodeReply, data)


class TestErrors:
    @pytest.mark.parametrize("cls", CLASSES)
    @pytest.mark.parametrize("code", list(ErrorCode))
    def test_round_trip(self, cls: type[MemlaneError], code: ErrorCode) -> None:
        error = cls(code, "words", field="f", n=1)
        data = wire.encode_error(error)
        back = from_reply(ErrorReply.model_validate_json(data).error)
        assert type(back) is cls
        assert (back.code, back.message, back.details) == (code, "words", {"field": "f", "n": 1})
        assert (back.category, back.retryable) == (cls.category, cls.retryable)

    def test_retryable(self) -> None:
        assert [cls for cls in CLASSES if cls.retryable] == [Exhausted, Unavailable]
        assert to_reply(Exhausted(ErrorCode.OVERLOADED, "full")).error.retryable

    def test_a_foreign_exception_keeps_its_text_to_itself(self) -> None:
        body = to_reply(RuntimeError("password=s3cret")).error
        assert (body.code, body.category, body.details) == ("INTERNAL", "internal", {"kind": "RuntimeError"})
        assert "s3cret" not in body.model_dump_json()

    def test_unknown_code_and_category(self) -> None:
        error = from_reply(ErrorBody(code="NEW", category="newer", message="m"))
        assert type(error) is Internal
        assert error.code is ErrorCode.INTERNAL
        error = from_reply(ErrorBody(code="NEW", category="not_found", message="m"))
        assert type(error) is NotFound
        assert error.code is ErrorCode.INTERNAL

    @pytest.mark.parametrize("name", ["code", "message", "self"])
    def test_details_may_hold_any_key(self, name: str) -> None:
        error = from_reply(ErrorBody(code="INTERNAL", category="internal", message="m", details={name: "x"}))
        assert error.message == "m"


class TestChecks:
    @pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000"])
    def test_blank(self, text: str) -> None:
        with pytest.raises(InvalidRequest) as caught:
            wire.check_text(text, "text")
        assert caught.value.code is ErrorCode.TEXT_EMPTY

    def test_size_is_in_bytes(self) -> None:
        wire.check_text("é" * (MAX_TEXT_BYTES // 2), "text")
        with pytest.raises(InvalidRequest) as caught:
            wire.check_text("é" * (MAX_TEXT_BYTES // 2) + "a", "text")
        assert caught.value.code is ErrorCode.TEXT_TOO_LARGE
        assert caught.value.details == {"field": "text", "size": MAX_TEXT_BYTES + 1, "limit": MAX_TEXT_BYTES}

    @pytest.mark.parametrize("project", ["a", "A-b_9", "0", "a" * 64])
    def test_project(self, project: str) -> None:
        wire.check_project(project)

    @pytest.mark.parametrize("project", ["", "a.b", "*", ">", "-a", "_a", "a b", "a\n", "é", "a" * 65])
    def test_bad_project(self, project: str) -> None:
        with pytest.raises(InvalidRequest) as caught:
            wire.check_project(project)
        assert caught.value.code is ErrorCode.INVALID_PROJECT


class TestIds:
    @given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4))
    def test_shape(self, parts: list[str]) -> None:
        memory_id = derive_id(*parts)
        assert re.fullmatch(MEMORY_ID_PATTERN.strip("^$"), memory_id)
        assert memory_id == derive_id(*parts)

    def test_parts_do_not_run_together(self) -> None:
        assert len({derive_id("a", "bc"), derive_id("ab", "c"), derive_id("abc"), derive_id("abc", "")}) == 4

    @given(st.text(max_size=20), st.integers(1, 512))
    def test_doubling_the_shards_splits_each_in_two(self, part: str, shards: int) -> None:
        memory_id = derive_id(part)
        before, after = shard_of(memory_id, shards), shard_of(memory_id, 2 * shards)
        assert 0 <= before < shards
        assert after in (before, before + shards)

    @pytest.mark.parametrize("shards", [2, 8, 256])
    def test_uniform(self, shards: int) -> None:
        count = 6000
        found = Counter(shard_of(derive_id(str(number)), shards) for number in range(count))
        assert set(found) == set(range(shards))
        for size in found.values():
            assert abs(size - count / shards) < 5 * (count / shards) ** 0.5


class TestVectors:
    @settings(max_examples=50)
    @given(st.lists(st.floats(width=32, allow_nan=False), max_size=50))
    def test_round_trip(self, values: list[float]) -> None:
        vector = np.array(values, dtype=np.float32)
        back = unpack_vector(pack_vector(vector))
        assert back.dtype == np.float32
        assert back.tobytes() == vector.tobytes()

    def test_other_types_and_strides_pack_alike(self) -> None:
        wide = np.arange(8, dtype=np.float64)
        assert pack_vector(wide[::2]) == pack_vector(np.array([0, 2, 4, 6], dtype=np.float32))

    def test_read_only(self) -> None:
        with pytest.raises(ValueError, match="read-only"):
            unpack_vector(pack_vector(np.ones(2, dtype=np.float32)))[0] = 2


class TestNames:
    @pytest.mark.parametrize(
        ("name", "normal"),
        [
            ("Diego", "diego"),
            ("  Ana   Maria ", "ana maria"),
            ("Ana's", "ana"),
            ("Ana’s", "ana"),
            ("(Acme, Inc.)", "acme, inc"),
            ("“Acme”", "acme"),
            ("STRASSE", "strasse"),
            ("Straße", "strasse"),
            ("Ａｃｍｅ", "acme"),
            ("a\tb\n c", "a b c"),
            ("C++", "c++"),
            ("東京。", "東京"),
            ("...", ""),
        ],
    )
    def test_normal_form(self, name: str, normal: str) -> None:
        assert normalise(name) == normal

    @given(st.text(alphabet="abcÄß é", max_size=20))
    def test_case_and_repetition_do_not_show(self, name: str) -> None:
        assert normalise(normalise(name)) == normalise(name)
        assert normalise(name.upper()) == normalise(name)

    def test_spans(self) -> None:
        assert spans("The Blue door", 2) == ["the blue", "blue door", "the", "blue", "door"]
        assert spans("a a a", 1) == ["a"]
        assert spans("  ... ") == []
        assert spans("one two three four five six")[0] == "one two three four five"
