"""Avro's schema resolution against Java's, over random pairs of schemas: ``python -m tests.foreign.avro_pairs``.

A reader's schema is made from the writer's by a few changes, and Java refuses some of them. Two answers are equal if
the
values, written again with the reader's schema, have the same bytes, or if both are errors. Rows and columns are both
compared with Java. Prints the pairs that differ, and exits with 1 if there are any that are not meant (:func:`meant`).
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pyspark

from pravega_connector.local.jvm import find_java
from pravega_serde import SchemaError, SerdeError
from pravega_serde.avro import AvroSerializer
from tests.interop._javac import compile_java
from tests.support.avro_matrix import ERROR, Case, by_columns, by_java, by_rows
from tests.support.jvm import SOON_READY

__all__ = ["answers", "differences", "lines", "meant"]

_PROGRAM: Final = Path(__file__).parents[1] / "vectors" / "generate" / "AvroResolution.java"
_JARS: Final = Path(pyspark.__file__).parent / "jars"
_NEEDED: Final = ("avro-1*", "jackson-core-2*", "jackson-databind-2*", "jackson-annotations-2*", "slf4j-api*")
_SECONDS: Final = 600
_REFUSED: Final = "refused schemas: "

_VALUES: Final[dict[str, Callable[[random.Random], Any]]] = {
    "null": lambda source: None,
    "boolean": lambda source: source.random() < 0.5,
    "int": lambda source: source.choice([0, -1, 2**31 - 1, -(2**31), source.randrange(1000)]),
    "long": lambda source: source.choice([0, 2**63 - 1, -(2**63), 2**53 + 1, source.randrange(1000)]),
    "float": lambda source: source.choice([0.5, -2.0, 65536.0]),
    "double": lambda source: source.choice([0.1, -1e300, 2.0]),
    # Text, because it may be read as such: Java does not look whether it is.
    "bytes": lambda source: source.choice([b"", b"a", "ü€".encode()]),
    "string": lambda source: source.choice(["", "a", "ü€😀", "text"]),
}
_PRIMITIVES: Final = tuple(_VALUES)


class _Names:
    """Names of one schema, each once."""

    def __init__(self) -> None:
        self._count = 0

    def next(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"


def _schema(source: random.Random, names: _Names, depth: int, *, in_union: bool = False) -> Any:
    kinds = ["primitive"] * 4 + ["enum", "fixed"] + (["array", "map", "record", "record"] if depth else [])
    kind = source.choice(kinds if in_union or not depth else [*kinds, "union"])
    if kind == "primitive":
        return source.choice(_PRIMITIVES)
    if kind == "enum":
        return {"type": "enum", "name": names.next("E"), "symbols": list("ABCD"[: source.randrange(1, 5)])}
    if kind == "fixed":
        return {"type": "fixed", "name": names.next("F"), "size": source.randrange(1, 4)}
    if kind == "array":
        return {"type": "array", "items": _schema(source, names, depth - 1)}
    if kind == "map":
        return {"type": "map", "values": _schema(source, names, depth - 1)}
    if kind == "union":
        return _union(source, names, depth)
    fields = [_field(source, names, depth - 1, f"f{index}") for index in range(source.randrange(4))]
    return {"type": "record", "name": names.next("R"), "fields": fields}


def _field(source: random.Random, names: _Names, depth: int, name: str) -> dict[str, Any]:
    return {"name": name, "type": _schema(source, names, depth)}


def _union(source: random.Random, names: _Names, depth: int) -> list[Any]:
    branches: list[Any] = []
    seen = set()
    for _ in range(source.randrange(1, 4)):
        branch = _schema(source, names, depth - 1, in_union=True)
        kind = branch if isinstance(branch, str) else branch["type"] if branch["type"] in ("array", "map") else None
        if kind is None or kind not in seen:
            seen.add(kind)
            branches.append(branch)
    return branches


def _value(source: random.Random, schema: Any) -> Any:
    if isinstance(schema, str):
        return _VALUES[schema](source)
    if isinstance(schema, list):
        branch = source.choice(schema)
        label = branch if isinstance(branch, str) else branch.get("name", branch["type"])
        value = _value(source, branch)
        others = sum(each != "null" for each in schema)
        return value if branch == "null" or others < 2 else (label, value)
    made: dict[str, Callable[[], Any]] = {
        "enum": lambda: source.choice(schema["symbols"]),
        "fixed": lambda: source.randbytes(schema["size"]),
        "array": lambda: [_value(source, schema["items"]) for _ in range(source.randrange(3))],
        "map": lambda: {f"k{n}": _value(source, schema["values"]) for n in range(source.randrange(3))},
        "record": lambda: {field["name"]: _value(source, field["type"]) for field in schema["fields"]},
    }
    return made[schema["type"]]()


def _places(schema: Any) -> Iterator[tuple[Any, Any]]:
    """Every schema inside a schema, as the container and the key under which it is."""
    if isinstance(schema, list):
        for index, branch in enumerate(schema):
            yield schema, index
            yield from _places(branch)
    elif isinstance(schema, dict):
        for key in ("items", "values"):
            if key in schema:
                yield schema, key
                yield from _places(schema[key])
        for field in schema.get("fields", ()):
            yield field, "type"
            yield from _places(field["type"])


def _change(source: random.Random, root: dict[str, Any], names: _Names) -> None:
    """One change somewhere in a schema."""
    holder, key = source.choice(list(_places(root)))
    schema = holder[key]
    if isinstance(schema, dict) and schema["type"] == "record" and source.random() < 0.8:
        _change_record(source, schema)
    elif isinstance(schema, dict) and schema["type"] == "enum" and source.random() < 0.7:
        schema["symbols"] = source.sample(schema["symbols"], source.randrange(1, len(schema["symbols"]) + 1))
        if source.random() < 0.5:
            schema["default"] = schema["symbols"][0]
    elif isinstance(schema, list) and source.random() < 0.7:
        source.shuffle(schema)
        if len(schema) > 1 and source.random() < 0.5:
            schema.pop()
    elif not isinstance(schema, list) and not isinstance(holder, list) and source.random() < 0.5:
        holder[key] = source.choice([["null", schema], [schema]]) if schema != "null" else ["null", "int"]
    elif isinstance(schema, str) and not isinstance(holder, list):
        holder[key] = source.choice(_PRIMITIVES)
    elif isinstance(schema, dict) and "name" in schema:
        old, schema["name"] = schema["name"], names.next("N")
        if source.random() < 0.7:
            schema["aliases"] = [old]


def _change_record(source: random.Random, record: dict[str, Any]) -> None:
    fields = record["fields"]
    action = source.choice(["drop", "add", "shuffle", "rename", "unreadable"])
    if action == "drop" and fields:
        fields.pop(source.randrange(len(fields)))
    elif action == "add":
        kind, default = source.choice([("int", 5), ("string", "d"), (["null", "long"], None), ("boolean", True)])
        fields.append({"name": f"g{len(fields)}", "type": kind, "default": default})
    elif action == "shuffle":
        source.shuffle(fields)
    elif action == "rename" and fields:
        field = source.choice(fields)
        field["aliases"] = [field["name"]]
        field["name"] = f"h{len(fields)}"
    elif action == "unreadable":
        fields.append({"name": f"i{len(fields)}", "type": "int"})


def lines(count: int, seed: int) -> Iterator[str]:
    """This many pairs of schemas with an event each, as the Java program takes them."""
    source = random.Random(seed)
    made = 0
    while made < count:
        names = _Names()
        fields = [_field(source, names, 2, f"f{index}") for index in range(source.randrange(1, 4))]
        writer = {"type": "record", "name": "Root", "fields": fields}
        reader = copy.deepcopy(writer)
        for _ in range(source.choice((0, 1, 1, 2, 4))):
            if not list(_places(reader)):
                break
            _change(source, reader, names)
        try:
            event = AvroSerializer(writer).serialize(_value(source, writer))
        except SerdeError:
            continue  # of two branches of a union that take the value, the first is taken
        made += 1
        yield f"{json.dumps(writer)}\t{json.dumps(reader)}\t{event.hex()}"


def answers(pairs: list[str]) -> list[Case]:
    """Java's results for pairs."""
    java = find_java()
    jars = [str(jar) for pattern in _NEEDED for jar in _JARS.glob(f"{pattern}.jar")]
    with tempfile.TemporaryDirectory() as classes:
        path = ":".join([classes, *jars])
        compile_java(java, [_PROGRAM], Path(classes), _JARS)
        done = subprocess.run(
            [str(java.path), "-Xmx256m", *SOON_READY, "-Dfile.encoding=UTF-8", "-cp", path, "AvroResolution"],
            input="\n".join(pairs) + "\n",
            check=True,
            timeout=_SECONDS,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(pairs)
    return found


def differences(cases: list[Case]) -> Iterator[tuple[str, Case, str]]:
    """Implementation that differs from Java, the case, and the answer."""
    for case in cases:
        for name, ask in (("rows", by_rows), ("columns", by_columns)):
            try:
                found = ask(case)
            except SerdeError as error:
                found = ERROR
                reason = f"{_REFUSED if isinstance(error, SchemaError) else ''}{error.message}"
            else:
                reason = found
            if found != by_java(case):
                yield name, case, reason


def meant(who: str, case: Case, answer: str) -> bool:
    """Return True if a difference is documented."""
    # That two schemas do not fit Java says only where such a value turns up in an event; here it is said at once.
    if answer.startswith(_REFUSED):
        return True
    # So it is with a branch whose items do not fit: Java reads the event if the list is empty.
    if by_java(case) != ERROR and re.search(r"has no branch for '(array|map)'", answer):
        return True
    # A bare value of a row chooses the first branch that holds it; Java's datum knows its branch.
    return who == "rows" and not answer.startswith("invalid Avro")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=18_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    cases = answers(list(lines(options.pairs, options.seed)))
    found = [each for each in differences(cases) if not meant(*each)]
    for who, case, answer in found[:20]:
        print(f"{who}: {answer:.200}\n  Java: {by_java(case):.200}\n  {json.dumps(case):.1000}", file=sys.stderr)
    good = sum(by_java(case) != ERROR for case in cases)
    print(f"{len(cases)} pairs, {good} of them read by Java, {len(found)} differences")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
