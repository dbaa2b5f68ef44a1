"""The cases of avro_resolution.jsonl, as lines for AvroResolution.java; see the README of the vectors."""

import itertools
import json
import math
from typing import Any

from pravega_serde.avro import AvroSerializer

SAMPLES: dict[str, list[Any]] = {
    "null": [None],
    "boolean": [True, False],
    "int": [0, -1, 2147483647, -2147483648, 16777217],
    "long": [0, 64, -9223372036854775808, 9007199254740993, 1152921573326323713],
    "float": [0.5, -1.25e10, math.inf],
    "double": [0.1, -1e300],
    "bytes": [b"", b"abc", "ü€".encode()],
    "string": ["", "abc", "ü€😀"],
}


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    entries = [{"name": field[0], "type": field[1], **(field[2] if len(field) > 2 else {})} for field in fields]
    return {"type": "record", "name": name, "fields": entries, **more}


def enum(*symbols: str, name: str = "E", **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def fixed(size: int, name: str = "F", **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


def default(value: Any) -> dict[str, Any]:
    return {"default": value}


INNER = record(("x", "int"), name="Inner")
LIST = record(("v", "int"), ("next", ["null", "List"]), name="List")
LONG_LIST = record(("next", ["null", "List"]), ("v", "long"), ("extra", "string", default("e")), name="List")

CASES: list[tuple[Any, Any, list[Any]]] = [
    # Unions
    (["null", "int"], ["null", "long"], [None, 5]),
    (["null", "int"], ["int", "null"], [None, 5]),
    (["null", "int"], "int", [None, 5]),
    (["null", "int"], "null", [None, 5]),
    (["null", "int"], "string", [None, 5]),
    ("int", ["null", "int"], [5]),
    ("int", ["null", "long"], [5]),
    ("int", ["string", "double", "long"], [5]),
    ("int", ["float", "long", "int"], [5]),
    ("float", ["null", "string", "double"], [0.5]),
    ("string", ["bytes", "null"], ["a"]),
    ("bytes", ["null", "string", "int"], [b"a"]),
    ("string", ["null", "int"], ["a"]),
    (["int", "string"], ["string", "long"], [5, "a"]),
    (["int", "string", "double"], ["string", "long"], [5, "a", 0.5]),
    (["int", "long"], "double", [5, 1 << 40]),
    (["int", "long"], "long", [5, 1 << 40]),
    (["int", "float"], ["double", "null"], [5, 0.5]),
    ([{"type": "array", "items": "int"}, "null"], ["null", {"type": "array", "items": "long"}], [[1, 2], None]),
    ([INNER, "null"], ["null", record(("x", "long"), name="Inner")], [{"x": 1}, None]),
    (
        [INNER, record(("y", "int"), name="Other")],
        ["null", record(("y", "long"), name="Other")],
        [("Inner", {"x": 1}), ("Other", {"y": 2})],
    ),
    (INNER, ["null", record(("x", "int"), name="other.Inner")], [{"x": 1}]),
    (INNER, ["null", record(("x", "int"), name="Different")], [{"x": 1}]),
    (
        record(("x", "int"), name="a.Inner"),
        [record(("x", "int"), name="b.Inner"), record(("x", "int"), name="a.Inner")],
        [{"x": 1}],
    ),
    (enum("A", "B"), ["null", enum("B", "A")], ["A", "B"]),
    (fixed(2), ["null", fixed(2)], [b"ab"]),
    (fixed(2), ["null", fixed(3)], [b"ab"]),
    # Enums and fixed
    (enum("A", "B", "C"), enum("C", "B", "A"), ["A", "B", "C"]),
    (enum("A", "B", "C"), enum("A"), ["A", "B"]),
    (enum("A", "B", "C"), enum("A", "Z", default="Z"), ["A", "B", "C"]),
    (enum("A", name="X"), enum("A", name="Y"), ["A"]),
    (enum("A", name="X"), enum("A", name="Y", aliases=["X"]), ["A"]),
    (enum("A", name="n.X"), enum("A", name="m.X"), ["A"]),
    (fixed(2, "X"), fixed(2, "Y"), [b"ab"]),
    (fixed(2, "X"), fixed(2, "Y", aliases=["X"]), [b"ab"]),
    (fixed(2), fixed(3), [b"ab"]),
    (fixed(2), "bytes", [b"ab"]),
    (enum("A"), "string", ["A"]),
    (enum("A", "B"), enum("A", "B", "C", default="C"), ["A", "B"]),
    (enum("A", "B"), enum("B", default="B", name="Y", aliases=["E"]), ["A", "B"]),
    (fixed(2, "n.X"), fixed(2, "m.X"), [b"ab"]),
    (fixed(2, "X"), fixed(3, "Y", aliases=["X"]), [b"ab"]),
    # Containers
    ({"type": "array", "items": "int"}, {"type": "array", "items": "double"}, [[], [1, 2]]),
    ({"type": "array", "items": "int"}, {"type": "array", "items": ["null", "long"]}, [[1]]),
    ({"type": "array", "items": ["null", "int"]}, {"type": "array", "items": "int"}, [[1], [None]]),
    ({"type": "map", "values": "int"}, {"type": "map", "values": "long"}, [{}, {"a": 1}]),
    ({"type": "map", "values": "int"}, {"type": "array", "items": "int"}, [{"a": 1}]),
    ({"type": "array", "items": "string"}, {"type": "array", "items": "int"}, [[], ["a"]]),
    # Records
    (record(("a", "int"), ("b", "string")), record(("b", "string"), ("a", "long")), [{"a": 1, "b": "x"}]),
    (record(("a", "int"), ("b", "string")), record(("b", "string")), [{"a": 1, "b": "x"}]),
    (record(("a", "int"), ("b", "string")), record(), [{"a": 1, "b": "x"}]),
    (record(("a", "int")), record(("a", "int"), ("b", "int")), [{"a": 1}]),
    (record(("a", "int")), record(("b", "int", {"aliases": ["a"]})), [{"a": 1}]),
    (record(("a", "int"), ("b", "int")), record(("b", "int", {"aliases": ["a"]})), [{"a": 1, "b": 2}]),
    (record(("a", "int"), name="X"), record(("a", "int"), name="Y"), [{"a": 1}]),
    (record(("a", "int"), name="X"), record(("a", "int"), name="Y", aliases=["X"]), [{"a": 1}]),
    # Aliases: of a namespace, relative to one, next to others, of a type inside
    (record(("a", "int"), name="n.X"), record(("a", "int"), name="m.Y", aliases=["n.X"]), [{"a": 1}]),
    (record(("a", "int"), name="n.X"), record(("a", "int"), name="n.Y", aliases=["X"]), [{"a": 1}]),
    (record(("a", "int"), name="n.X"), record(("a", "int"), name="m.Y", aliases=["X"]), [{"a": 1}]),
    (record(("a", "int"), name="X"), record(("a", "int"), name="m.Y", aliases=[".X"]), [{"a": 1}]),
    (record(("a", "int"), name="X"), record(("a", "int"), name="Y", aliases=["V", "W", "X"]), [{"a": 1}]),
    (record(("a", "int")), record(("b", "long", {"aliases": ["x", "a"]})), [{"a": 1}]),
    (record(("a", "int")), record(("b", "int", {"aliases": ["x"], "default": 7})), [{"a": 1}]),
    (record(("a", "int")), record(("b", "int", {"aliases": ["a"], "default": 7})), [{"a": 1}]),
    (
        record(("a", "int"), ("b", "string")),
        record(("c", "string", {"aliases": ["b"]}), ("d", "int", {"aliases": ["a"]})),
        [{"a": 1, "b": "x"}],
    ),
    (
        record(("a", INNER)),
        record(("a", record(("y", "long", {"aliases": ["x"]}), name="Other", aliases=["Inner"]))),
        [{"a": {"x": 1}}],
    ),
    (
        {"type": "array", "items": INNER},
        {"type": "array", "items": record(("x", "int"), name="Other", aliases=["Inner"])},
        [[{"x": 1}]],
    ),
    (
        {"type": "map", "values": enum("A", "B")},
        {"type": "map", "values": enum("B", "A", name="Other", aliases=["E"])},
        [{"k": "A"}],
    ),
    (["null", INNER], ["null", record(("x", "int"), name="Other", aliases=["Inner"])], [None, {"x": 1}]),
    (INNER, [record(("x", "int"), name="Z"), record(("x", "int"), name="Y", aliases=["Inner"])], [{"x": 1}]),
    (
        LIST,
        record(("v", "int"), ("then", ["null", "L"], {"aliases": ["next"]}), name="L", aliases=["List"]),
        [{"v": 1, "next": {"v": 2, "next": None}}],
    ),
    (
        record(("a", INNER), ("b", "Inner")),
        record(("b", record(("x", "long"), name="Inner")), ("a", "Inner")),
        [{"a": {"x": 1}, "b": {"x": 2}}],
    ),
    (
        record(("skip", LIST), ("a", "int")),
        record(("a", "int")),
        [{"skip": {"v": 1, "next": {"v": 2, "next": None}}, "a": 3}],
    ),
    (LIST, LONG_LIST, [{"v": 1, "next": {"v": 2, "next": None}}]),
    (
        record(
            ("s", "string"),
            ("y", "bytes"),
            ("l", {"type": "array", "items": "string"}),
            ("m", {"type": "map", "values": INNER}),
            ("u", ["null", "double"]),
            ("k", "int"),
        ),
        record(("k", "int")),
        [{"s": "abc", "y": b"de", "l": ["x", "y"], "m": {"p": {"x": 5}}, "u": 0.5, "k": 9}],
    ),
]

DEFAULTS: list[tuple[Any, Any]] = [
    ("null", None), ("boolean", True), ("int", -5), ("long", 1 << 40), ("float", 1.5), ("double", 3),
    ("bytes", "\u00ff\u0001"), ("string", "ü"), (["null", "int"], None), (["int", "null"], 5), (["string", "null"], ""),
    ({"type": "array", "items": "int"}, [1, 2]), ({"type": "array", "items": "int"}, []),
    ({"type": "map", "values": "long"}, {"a": 1}), (enum("A", "B"), "B"), (fixed(2), "\u00fe\u0000"), (INNER, {"x": 4}),
    (record(("p", "int", default(3)), ("q", ["null", "string"], default(None)), name="Deep"), {"p": 8}),
    ({"type": "array", "items": INNER}, [{"x": 1}]), ("int", "wrong"), (["null", "int"], 5),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "\u0001"),
]  # fmt: skip


def all_cases() -> list[tuple[Any, Any, Any]]:
    cases = [
        (writer, reader, value) for writer, reader in itertools.product(SAMPLES, repeat=2) for value in SAMPLES[writer]
    ]
    cases += [(writer, reader, value) for writer, reader, values in CASES for value in values]
    cases += [
        (record(("a", "int")), record(("d", kind, default(value)), ("a", "int")), {"a": 1}) for kind, value in DEFAULTS
    ]
    return cases


if __name__ == "__main__":
    for writer, reader, value in all_cases():
        print(json.dumps(writer), json.dumps(reader), AvroSerializer(writer).serialize(value).hex(), sep="\t")
