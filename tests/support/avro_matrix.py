"""``python -m tests.support.avro_matrix``: Avro's schema resolution in three implementations, case by case.

The cases are from ``vectors/avro_resolution.jsonl``, with Java's results. Two answers are equal if the
values, written again with the reader's schema, have the same bytes, or if both are errors. Where the three differ
stands below, with the reason; the tests hold this list to be complete.
"""

from __future__ import annotations

import collections
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest import mock

import fastavro
import pyarrow as pa

from pravega_serde import SerdeError
from pravega_serde.avro import AvroSerializer
from pravega_serde.columnar import base
from tests.vectors.generate.avro_resolution import INNER, default, fixed, record

__all__ = ["DIFFERENCES", "ERROR", "FASTAVRO", "OURS", "Case", "by_columns", "by_fastavro", "by_rows", "cases", "known"]

GOLDEN: Final = Path(__file__).parents[1] / "vectors/avro_resolution.jsonl"
ERROR: Final = "error"
OURS: Final = "ours"
FASTAVRO: Final = "fastavro"

Case = Mapping[str, Any]

_A: Final = record(("a", "int"))


@dataclass(frozen=True, slots=True)
class Difference:
    """A case with an answer different from Java's, and the reason."""

    who: str
    writer: Any
    reader: Any
    event: str
    why: str


def _by_default(kind: Any, value: str) -> Any:
    return record(("d", kind, default(value)), ("a", "int"))


_BYTES: Final = "fastavro takes the default of bytes and fixed for text; in JSON it is one letter for each byte"
_NAMES: Final = "Java and we do not mind the names of two records that stand for each other outside of unions"
_SHAPE: Final = "Java and we take the reader's record with the same fields where none has the name; fastavro takes none"
_DECIMAL: Final = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}

DIFFERENCES: Final[list[Difference]] = [
    Difference(
        OURS,
        {"type": "array", "items": "string"},
        {"type": "array", "items": "int"},
        "00",
        "Java says that items cannot be resolved when it meets one; we refuse the schemas before any event is read",
    ),
    Difference(
        OURS,
        record(("a", "int"), ("b", "int")),
        record(("b", "int", {"aliases": ["a"]})),
        "0204",
        "Java cannot apply an alias if the field's own name is there, too; we and fastavro let the own name win",
    ),
    Difference(FASTAVRO, "long", "float", "828080808084808020", "fastavro rounds by way of double, Java at once"),
    Difference(
        FASTAVRO,
        "int",
        ["float", "long", "int"],
        "0a",
        "fastavro takes the first branch to which int can be promoted, Java and we the int",
    ),
    Difference(FASTAVRO, INNER, ["null", record(("x", "int"), name="Different")], "02", _SHAPE),
    Difference(
        FASTAVRO,
        record(("x", "int"), name="a.Inner"),
        [record(("x", "int"), name="b.Inner"), record(("x", "int"), name="a.Inner")],
        "02",
        "fastavro takes the first branch with the name, Java and we the one with the full name",
    ),
    Difference(FASTAVRO, record(("a", "int"), name="X"), record(("a", "int"), name="Y"), "02", _NAMES),
    Difference(
        FASTAVRO,
        record(("a", "int"), name="X"),
        record(("a", "int"), name="m.Y", aliases=[".X"]),
        "02",
        "fastavro does not know that an alias with a leading point is in no namespace",
    ),
    Difference(
        FASTAVRO,
        INNER,
        [record(("x", "int"), name="Z"), record(("x", "int"), name="Y", aliases=["Inner"])],
        "02",
        "fastavro does not look at the aliases of a union's branches, Java and we do",
    ),
    Difference(FASTAVRO, _A, _by_default("bytes", "\u00ff\u0001"), "02", _BYTES),
    Difference(FASTAVRO, _A, _by_default(fixed(2), "\u00fe\u0000"), "02", _BYTES),
    Difference(FASTAVRO, _A, _by_default(_DECIMAL, "\u0001"), "02", _BYTES),
]


def cases() -> list[Case]:
    """All cases, in the order of the file."""
    with GOLDEN.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def known(case: Case) -> list[Difference]:
    """The differences that are listed for a case."""
    key = case["writer"], case["reader"], case["hex"]
    return [each for each in DIFFERENCES if (each.writer, each.reader, each.event) == key]


def by_java(case: Case) -> str:
    """Java's result for a case: bytes in hex, or ERROR."""
    return str(case.get("result", ERROR))


def by_rows(case: Case) -> str:
    """Our row, written again; raises the errors of our reader."""
    value = AvroSerializer(case["writer"], reader_schema=case["reader"]).deserialize(bytes.fromhex(case["hex"]))
    return AvroSerializer(case["reader"]).serialize(value).hex()


def by_columns(case: Case) -> str:
    """Our column, written again; raises the errors of our reader."""
    serializer = AvroSerializer(case["writer"], reader_schema=case["reader"])
    event = bytes.fromhex(case["hex"])
    with mock.patch.object(base, "FEW_ROWS", 0):
        column = serializer.decode_column(pa.array([event, event]))
    column.validate(full=True)
    assert column.type == serializer.arrow_type == AvroSerializer(case["reader"]).arrow_type
    writer = AvroSerializer(case["reader"]).column_writer
    return {writer._write_row(value).hex() for value in writer.stored(column).to_pylist()}.pop()


def by_us(case: Case) -> str:
    """Our result for a case: by columns, which keep a union's branch; by rows where Arrow has no type."""
    try:
        return (
            by_rows(case) if "List" in str(case["reader"]) or '"L"' in json.dumps(case["reader"]) else by_columns(case)
        )
    except SerdeError:
        return ERROR


def by_fastavro(case: Case) -> str:
    """fastavro's result for a case."""
    try:
        writer, reader = fastavro.parse_schema(case["writer"]), fastavro.parse_schema(case["reader"])
        value = fastavro.schemaless_reader(io.BytesIO(bytes.fromhex(case["hex"])), writer, reader)
        out = io.BytesIO()
        fastavro.schemaless_writer(out, reader, value)
    except Exception:
        return ERROR
    return out.getvalue().hex()


def _kind(case: Case) -> str:
    """Subject of a case."""
    writer, reader = case["writer"], case["reader"]
    text = json.dumps(reader)
    if isinstance(writer, str) and isinstance(reader, str):
        return "promotions: every primitive to every primitive"
    for word, kind in (('"aliases"', "aliases"), ('"default"', "defaults")):
        if word in text:
            return kind
    if isinstance(writer, list) or isinstance(reader, list):
        return "unions"
    return "named types, arrays, maps, fields"


def main() -> None:
    rows: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    unlisted = []
    for case in cases():
        answers = {OURS: by_us(case), FASTAVRO: by_fastavro(case)}
        differing = {who for who, answer in answers.items() if answer != by_java(case)}
        rows[_kind(case)].update({"cases": 1, "read": "result" in case, "equal": not differing})
        rows[_kind(case)].update(differing)
        if differing - {each.who for each in known(case)} - ({FASTAVRO} if OURS in differing else set()):
            unlisted.append(case)
    print(
        "| cases | number | Java reads | all three equal | ours ≠ Java | fastavro ≠ Java |\n|---|---|---|---|---|---|"
    )
    for kind, counted in [*rows.items(), ("all", sum(rows.values(), collections.Counter()))]:
        print(
            "|", " | ".join([kind, *(str(counted[name]) for name in ("cases", "read", "equal", OURS, FASTAVRO))]), "|"
        )
    print()
    for each in DIFFERENCES:
        print(f"- {each.who}: {json.dumps(each.writer)} -> {json.dumps(each.reader)}: {each.why}")
    if unlisted:
        raise SystemExit(f"\n{len(unlisted)} differences that are not listed: {unlisted}")


if __name__ == "__main__":
    main()
