"""Documents that almost fit: made after a message's JSON Schema, with something wrong here and there.

What comes out is JSON text and not values, as half of what can be wrong is only there: NaN, integers of a hundred
digits, lone surrogates, keys given twice.
"""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel

DEEP = 1100  # the parser gives up at 1024
INSTANTS = ["2026-03-01T12:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "1969-12-31T00:00:00Z"]
ID = "a" * 26


def nest(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


#: Of no use as any field, or at its very edge. No number that a deadline could be: nobody wants to wait for it.
NASTY: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**64), 10**100]),
    st.sampled_from([0.5, -0.0, 1e-320, 1e300, -1e300, float("nan"), float("inf"), float("-inf")]),
    st.text(max_size=12),
    st.sampled_from(
        ["", " ", "\x00", "a\x00b", "\ud800", "a\udfffb", "\r\nX: y", "\u202e", "é" * 300, "x" * 70_000, "'"]
    ),
    st.sampled_from(
        [*INSTANTS, "2026-03-01", "2026-13-01T00:00:00Z", "now", "1", "P1D", "NaN", ID, "_", "*", ">", "a.b"]
    ),
    st.recursive(st.none() | st.integers(), lambda inner: st.lists(inner, max_size=3), max_leaves=4),
    st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4), max_size=3),
    st.sampled_from([40, 300, 900]).map(nest),
)


def base64_of(value: Any) -> str:
    return base64.urlsafe_b64encode(_dump(value)).decode()


@cache
def documents(kind: type[BaseModel], faults: bool = True) -> st.SearchStrategy[bytes]:
    """Requests or replies of a kind as bytes, in most of which something is wrong."""
    schema = kind.model_json_schema()
    values = _of(schema, schema.get("$defs", {}), faults)
    return st.tuples(values, st.booleans(), NASTY).map(lambda made: _text(*made))


def raw(kind: type[BaseModel]) -> st.SearchStrategy[bytes]:
    """Anything at all: bytes, JSON of another shape, documents cut off or with a byte changed."""
    deep = st.sampled_from([b"[", b'{"a":']).map(lambda opening: opening * DEEP)
    return st.one_of(
        documents(kind),
        documents(kind, False),
        st.binary(max_size=40),
        NASTY.map(_dump),
        deep,
        _damaged(documents(kind, False)),
    )


def _damaged(texts: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    def damage(made: tuple[bytes, int, int]) -> bytes:
        text, place, byte = made
        place %= len(text)
        return text[:place] if byte > 255 else text[:place] + bytes([byte]) + text[place + 1 :]

    return st.tuples(texts, st.integers(0, 10_000), st.integers(0, 300)).map(damage)


def _dump(value: Any) -> bytes:
    return json.dumps(value).encode()  # escapes surrogates, and writes NaN and Infinity as such


def _text(value: Any, twice: bool, other: Any) -> bytes:
    text = _dump(value)
    if twice and isinstance(value, dict) and value:
        text = b"{" + _dump(next(iter(value))) + b":" + _dump(other) + b"," + text[1:]
    return text


def _of(schema: dict[str, Any], defs: dict[str, Any], faults: bool) -> st.SearchStrategy[Any]:
    fit = _fitting(schema, defs, faults)
    if not faults:
        return fit
    return st.integers(0, 30).flatmap(lambda die: NASTY if die == 0 else fit)


def _fitting(schema: dict[str, Any], defs: dict[str, Any], faults: bool) -> st.SearchStrategy[Any]:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return st.deferred(lambda: _of(defs[name], defs, faults))
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return st.one_of(*(_of(one, defs, faults) for one in schema[union]))
    match schema.get("type"):
        case "object":
            return _object(schema, defs, faults)
        case "array":
            return _array(schema, defs, faults)
        case "string":
            return _string(schema)
        case "integer":
            least = int(schema.get("minimum", 0))
            return st.integers(least, min(int(schema.get("maximum", 9)), least + 40))
        case "number":
            return st.sampled_from([0.0, 0.25, 1.0])
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
    return st.one_of(st.integers(-5, 5), st.text(max_size=5))


def _object(schema: dict[str, Any], defs: dict[str, Any], faults: bool) -> st.SearchStrategy[Any]:
    fields = {name: _of(part, defs, faults) for name, part in schema.get("properties", {}).items()}
    needed = {name: part for name, part in fields.items() if name in schema.get("required", ())}
    if not fields:
        inner = schema.get("additionalProperties")
        values = _of(inner, defs, faults) if isinstance(inner, dict) else st.integers(-5, 5)
        return st.dictionaries(st.text(min_size=1, max_size=5), values, max_size=3)
    whole = st.fixed_dictionaries(needed, optional={name: part for name, part in fields.items() if name not in needed})
    if not faults:
        return whole

    def spoil(made: tuple[dict[str, Any], int, str, Any]) -> dict[str, Any]:
        value, die, name, other = made
        if die == 0:
            return value | {name: other}
        if die == 1 and value:
            return {key: part for key, part in value.items() if key != next(iter(value))}
        return value

    return st.tuples(whole, st.integers(0, 20), st.text(max_size=6), NASTY).map(spoil)


def _array(schema: dict[str, Any], defs: dict[str, Any], faults: bool) -> st.SearchStrategy[Any]:
    if "prefixItems" in schema:
        return st.tuples(*(_of(one, defs, faults) for one in schema["prefixItems"])).map(list)
    inner = schema.get("items")
    values = _of(inner, defs, faults) if isinstance(inner, dict) else st.integers(-5, 5)
    return st.lists(values, min_size=schema.get("minItems", 0), max_size=min(schema.get("maxItems", 2), 2))


def _string(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if schema.get("format") == "date-time":
        return st.sampled_from(INSTANTS)
    if schema.get("format") == "date":
        return st.sampled_from(["2026-03-01", "0001-01-01", "9999-12-31"])
    if "{26}" in schema.get("pattern", ""):
        return st.sampled_from([ID, "b" * 26])
    return st.sampled_from(["Ana", "works_at", "Globex", "Where does Ana work?"]) | st.text(min_size=1, max_size=8)
