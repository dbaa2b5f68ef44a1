"""JSON Schema validation of events, and what it costs at most."""

import contextlib
import json
import pickle
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pravega_serde import DeserializationError, LimitExceededError, SchemaError, SerializationError
from pravega_serde.json import JsonSerializer

ORDER: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 0},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
    },
    "required": ["id"],
    "additionalProperties": False,
    "$defs": {"line": {"type": "object", "properties": {"sku": {"type": "string", "pattern": "^[a-z]+$"}}}},
}
#: As Jackson's module writes it for a class.
JACKSON = {
    "type": "object",
    "id": "urn:jsonschema:com:example:Order",
    "properties": {"id": {"type": "integer", "required": True}, "note": {"type": "string"}},
}
COLUMNS = pa.struct([("id", pa.int64()), ("lines", pa.list_(pa.struct([("sku", pa.string())])))])


def check(schema: Any, value: Any) -> None:
    JsonSerializer(schema=schema).deserialize(json.dumps(value).encode())


def test_valid_events_pass_both_ways() -> None:
    serializer = JsonSerializer(schema=ORDER)
    event = serializer.serialize({"id": 1, "lines": [{"sku": "a"}]})
    assert event == b'{"id":1,"lines":[{"sku":"a"}]}'
    assert serializer.deserialize(event) == {"id": 1, "lines": [{"sku": "a"}]}


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({"id": -1}, "$.id", "minimum"),
        ({"id": "x"}, "$.id", "not of type 'integer'"),
        ({}, "$", "'id' is a required property"),
        ({"id": 1, "lines": [{"sku": "a"}, {"sku": "A"}]}, "$.lines[1].sku", "does not match"),
        ({"id": 1, "more": 1, "and": 2}, "$", "the schema does not allow the members: more, and"),
        ([], "$", "not of type 'object'"),
    ],
)
def test_an_invalid_event_names_its_field_and_reason(value: Any, path: str, reason: str) -> None:
    serializer = JsonSerializer(schema=ORDER)
    with pytest.raises(DeserializationError, match="does not satisfy its JSON schema") as caught:
        serializer.deserialize(json.dumps(value).encode())
    assert caught.value.field_path == path
    assert reason in caught.value.reason
    with pytest.raises(SerializationError) as refused:
        serializer.serialize(value)
    assert (refused.value.reason, refused.value.field_path) == (caught.value.reason, path)


def test_columns_are_checked_row_by_row() -> None:
    serializer = JsonSerializer(arrow_type=COLUMNS, schema=ORDER)
    good, bad, broken = b'{"id":1,"lines":[{"sku":"a"}]}', b'{"id":1,"lines":[{"sku":"A"}]}', b'{"id":'
    column = pa.array([good, bad, None, broken, good] * 20)
    errors: list[DeserializationError] = []
    values = serializer.decode_column(column, on_error=errors.append)
    row = {"id": 1, "lines": [{"sku": "a"}]}
    assert values.to_pylist() == [row, None, None, None, row] * 20
    assert [error.row for error in errors[:3]] == [1, 3, 6]
    assert errors[0].field_path == "$.lines[0].sku"
    with pytest.raises(DeserializationError, match=r"row 1, field \$\.lines\[0\]\.sku"):
        serializer.decode_column(column)


def test_columns_are_checked_when_they_are_written() -> None:
    serializer = JsonSerializer(arrow_type=COLUMNS, schema=ORDER)
    assert len(serializer.encode_column(pa.array([{"id": 1, "lines": []}, None], COLUMNS))) == 2
    with pytest.raises(SerializationError, match=r"row 1: .*minimum.*\$\.id"):
        serializer.encode_column(pa.array([{"id": 1, "lines": []}, {"id": -1, "lines": []}], COLUMNS))


class TestSchemas:
    @pytest.mark.parametrize("form", ["text", "mapping", "path", "path as text"])
    def test_may_be_given_as(self, form: str, tmp_path: Path) -> None:
        file = tmp_path / "order.json"
        file.write_text(json.dumps(ORDER))
        given = {"text": json.dumps(ORDER), "mapping": ORDER, "path": file, "path as text": str(file)}[form]
        serializer = JsonSerializer(schema=given)
        again = pickle.loads(pickle.dumps(serializer))
        assert json.loads(again.schema or "") == ORDER
        assert repr(again) == repr(serializer)
        with pytest.raises(DeserializationError):
            again.deserialize(b"{}")

    def test_of_jackson_are_of_draft_3(self) -> None:
        check(JACKSON, {"id": 1, "other": 2})
        with pytest.raises(DeserializationError, match="'id' is a required property"):
            check(JACKSON, {"note": "x"})

    @pytest.mark.parametrize("draft", ["03", "04", "06", "07"])
    def test_of_older_drafts(self, draft: str) -> None:
        schema = {"$schema": f"http://json-schema.org/draft-{draft}/schema#", "maximum": 5, "exclusiveMaximum": 5}
        if draft in ("03", "04"):
            schema["exclusiveMaximum"] = True
        check(schema, 4)
        with pytest.raises(DeserializationError):
            check(schema, 5)

    @pytest.mark.parametrize(
        ("schema", "reason"),
        [
            ("{", "is not JSON"),
            ("missing.json", "neither JSON nor the path of a file"),
            ({"type": "nonsense"}, r"invalid JSON schema: .*\(at \$\.type\)"),
            ({"$schema": "urn:unknown"}, "unknown JSON schema draft"),
            ({"pattern": "("}, "is not supported by RE2"),
            ({"pattern": "(?=a)b"}, "is not supported by RE2"),
            ({"patternProperties": {r"(a)\1": {}}}, "is not supported by RE2"),
            ({"items": {"$ref": "#/$defs/none"}}, r"refers to .*/\$defs/none"),
            ({"unevaluatedProperties": False, "allOf": [{"patternProperties": {"a": {}}}]}, "in one JSON schema"),
        ],
    )
    def test_that_are_refused(self, schema: Any, reason: str) -> None:
        with pytest.raises(SchemaError, match=reason):
            JsonSerializer(schema=schema)

    def test_that_are_lists(self, tmp_path: Path) -> None:
        (tmp_path / "x.json").write_text("[]")
        with pytest.raises(SchemaError, match="must be an object"):
            JsonSerializer(schema=tmp_path / "x.json")

    def test_that_are_nested_too_deeply(self) -> None:
        deep: dict[str, Any] = {}
        for _ in range(3000):
            deep = {"not": deep}
        with pytest.raises(SchemaError, match="nested too deeply"):
            JsonSerializer(schema=deep)

    @pytest.mark.parametrize("reference", ["http://127.0.0.1:{}/x.json", "file:///etc/hostname", "other.json"])
    def test_other_documents_are_never_fetched(self, reference: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(0)
            with pytest.raises(SchemaError, match="never fetched"):
                JsonSerializer(schema={"properties": {"a": {"$ref": reference.format(server.getsockname()[1])}}})
            with pytest.raises(BlockingIOError):
                server.accept()

    def test_may_refer_to_the_drafts_own(self) -> None:
        schema = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
        check(schema, {"type": "object"})
        with pytest.raises(DeserializationError):
            check(schema, {"type": "nonsense"})


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("é+", "éé", "e"),
        (r"^\u00e9$", "é", "e"),
        (r"^\d+$", "12", "1\n"),
        ("a", "xax", ""),
        (r"\p{Greek}", "π", "p"),
        ("^.$", "\ud800", ""),
    ],
)
def test_patterns_are_searched_for(pattern: str, yes: str, no: str) -> None:
    check({"pattern": pattern}, yes)
    with pytest.raises(DeserializationError):
        check({"pattern": pattern}, no)


def test_members_by_pattern() -> None:
    schema = {"patternProperties": {"^n_": {"type": "integer"}}, "additionalProperties": {"type": "string"}}
    check(schema, {"n_a": 1, "b": "x"})
    for wrong in ({"n_a": "x"}, {"b": 1}):
        with pytest.raises(DeserializationError):
            check(schema, wrong)


SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["a", "b", "", 1.0, 0.0, 1.5])
JSON_VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
)
KEYWORDS: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": ["integer", "array"], "minimum": 0, "uniqueItems": True}, "b": {"$ref": "#"}},
    "patternProperties": {"^[bc]": {"anyOf": [{"type": "string"}, {"type": "object"}, {"enum": [1, [True]]}]}},
    "additionalProperties": {"not": {"type": "null"}},
}
BOTH = JsonSerializer(schema=KEYWORDS)


@given(JSON_VALUES)
@settings(deadline=None)
def test_the_answer_is_that_of_the_package(value: Any) -> None:
    for schema, serializer in ((KEYWORDS, BOTH), (UNIQUE, ITEMS)):
        try:
            serializer.deserialize(json.dumps(value).encode())
        except DeserializationError:
            assert not jsonschema.Draft202012Validator(schema).is_valid(value)
        else:
            assert jsonschema.Draft202012Validator(schema).is_valid(value)


UNIQUE = {"uniqueItems": True, "items": {"uniqueItems": True}, "additionalProperties": {"uniqueItems": True}}
ITEMS = JsonSerializer(schema=UNIQUE)

_HALF_MEGABYTE = 500_000
BRANCHES = {"anyOf": [{"properties": {"a": {"$ref": "#"}}, "required": [name]} for name in "xyz"]}
BOMBS: dict[str, tuple[Any, bytes]] = {
    "backtracking": ({"pattern": "^(a+)+$"}, b'"%s!"' % (b"a" * _HALF_MEGABYTE)),
    "branches of unions": (BRANCHES, b'{"a":' * 60 + b"{}" + b"}" * 60),
    "deep values": ({"items": {"$ref": "#"}}, b"[" * 900 + b"]" * 900),
    "many errors with much text": ({"anyOf": [{"type": "string"}] * 500}, b"[%s0]" % (b"0," * (_HALF_MEGABYTE // 2))),
    "many members": (
        {"additionalProperties": {"type": "null"}},
        json.dumps({f"{n}": 0 for n in range(40_000)}).encode(),
    ),
    "many members by patterns": (
        {"patternProperties": {f"{n}$": {} for n in range(100)}},
        json.dumps({f"{n}": 0 for n in range(40_000)}).encode(),
    ),
    "many items": ({"items": {}}, b"[%s0]" % (b"0," * _HALF_MEGABYTE)),
    "unique objects": ({"uniqueItems": True}, b"[%s]" % b",".join(b'{"a":%d}' % n for n in range(50_000))),
    "unique numbers of one hash": (
        {"uniqueItems": True},
        b"[%s]" % b",".join(b"%d" % (n * ((1 << 61) - 1)) for n in range(40_000)),
    ),
    "unique items at each level": (
        {"uniqueItems": True, "items": {"$ref": "#"}},
        b"[" * 100 + b"%s0" % (b"0," * (_HALF_MEGABYTE // 2)) + b"]" * 100,
    ),
    "long numbers": ({"multipleOf": 0.01}, b"9" * 4000),
    "many long numbers": ({"items": {"multipleOf": 1e-300}}, b"[%s1]" % (b"1e300," * 80_000)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_no_event_takes_long(name: str) -> None:
    schema, event = BOMBS[name]
    serializer = JsonSerializer(schema=schema)
    assert len(event) < 1 << 20
    started = time.process_time()
    with contextlib.suppress(DeserializationError):
        serializer.deserialize(event)
    assert time.process_time() - started < 2, "without bounds these take minutes, or do not end"


def test_the_limit_is_named() -> None:
    schema, event = BOMBS["branches of unions"]
    with pytest.raises(LimitExceededError, match="more than 100000 checks"):
        JsonSerializer(schema=schema).deserialize(event)


def test_without_the_package_the_extra_is_named() -> None:
    code = (
        "import sys\nsys.modules['jsonschema'] = None\n"
        "from pravega_serde import MissingExtraError, serializer_for\n"
        "assert serializer_for('json').deserialize(b'1') == 1\n"
        "try:\n    serializer_for('json', schema='{}')\n"
        "except MissingExtraError as error:\n    assert 'pravega-serde[json-schema]' in str(error)\n"
        "else:\n    raise SystemExit('not raised')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


DRAFT_3 = "http://json-schema.org/draft-03/schema#"


def test_extends_of_draft_3_may_be_one_schema() -> None:
    base = {"properties": {"a": {"type": "integer"}}}
    for extended in (base, [base]):
        inside = {"$schema": DRAFT_3, "properties": {"b": {"extends": extended}, "extends": {"type": "string"}}}
        checked = JsonSerializer(schema=inside)
        assert checked.deserialize(b'{"b":{"a":1},"extends":"x"}') == {"b": {"a": 1}, "extends": "x"}
        with pytest.raises(DeserializationError) as caught:
            checked.deserialize(b'{"b":{"a":"x"}}')
        assert caught.value.field_path == "$.b.a"
        with pytest.raises(DeserializationError):
            checked.deserialize(b'{"extends":1}')
    with pytest.raises(SchemaError, match="is not supported by RE2"):
        JsonSerializer(schema={"$schema": DRAFT_3, "extends": {"pattern": "(?=x)"}})


@pytest.mark.parametrize("given", [True, "true"])
def test_true_takes_every_event(given: Any) -> None:
    checked = pickle.loads(pickle.dumps(JsonSerializer(schema=given)))
    assert checked.deserialize(b"[1]") == [1]
    assert checked.serialize({"a": 1}) == b'{"a":1}'


@pytest.mark.parametrize("given", [False, " false "])
def test_false_takes_none(given: Any) -> None:
    checked = JsonSerializer(schema=given)
    with pytest.raises(DeserializationError, match="False schema"):
        checked.deserialize(b"{}")
    with pytest.raises(SerializationError, match="False schema"):
        checked.serialize({})


@pytest.mark.parametrize("given", [[], 3, 2.5, b"{}", {"$schema": 5}])
def test_what_is_not_a_schema_is_a_schema_error(given: Any) -> None:
    with pytest.raises(SchemaError):
        JsonSerializer(schema=given)
