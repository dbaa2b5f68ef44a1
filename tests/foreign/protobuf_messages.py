"""Random messages of Protobuf's own test types: ``python -m tests.foreign.protobuf_messages``.

Every type of the conformance tests and of the unit tests is read and written as rows and as columns, and compared with
Google's library and with protobuf-java. Prints what differs, and exits with 1 if anything does. Columns know no message
inside itself: there the fields that lead back are left out of the type.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorSet

from pravega_serde.protobuf import ProtobufSerializer
from tests.foreign._corpora import PROTOBUF_JAVA, PROTOBUF_MESSAGES, PROTOBUF_UNIT_TESTS
from tests.fuzz._messages import Special, fill
from tests.interop.java_proto._descriptors import compile_protos
from tests.interop.java_proto._peer import ProtoPeer

__all__ = ["SETS", "Counts", "compare", "compare_with_java", "conformance", "unit_tests"]

_DEPTH: Final = 3
_WELL_KNOWN: Final = "google.protobuf."


@dataclass(slots=True)
class Counts:
    """Counts of comparisons."""

    types: int = 0
    messages: int = 0
    in_columns: int = 0
    """Messages that were also read and written as columns."""
    by_java: int = 0


def _compiled(files: Mapping[str, bytes]) -> FileDescriptorSet:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            target = Path(folder, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            # An option of the compiler's own time, which today's refuses where these files have it.
            target.write_bytes(re.sub(rb"\[\s*unverified_lazy\s*=\s*true\s*\]", b"", content))
        return compile_protos(Path(folder), *files)


def _below(members: Mapping[str, bytes], folder: str) -> dict[str, bytes]:
    return {path.partition(folder)[2]: content for path, content in members.items()}


@cache
def conformance() -> FileDescriptorSet:
    """The messages of the conformance tests."""
    return _compiled(_below(PROTOBUF_MESSAGES.members(r"/include/.*\.proto$"), "/include/"))


@cache
def unit_tests() -> FileDescriptorSet:
    """The messages of the unit tests."""
    return _compiled(_below(PROTOBUF_UNIT_TESTS.members(r"12/src/google/protobuf/\w*unittest\w*\.proto$"), "/src/"))


SETS: Final = {"conformance": conformance, "unit tests": unit_tests}


def _time(message: Any, source: random.Random) -> None:
    message.seconds = source.randrange(2_000_000_000)
    message.nanos = source.randrange(1_000_000) * 1000


def _value(message: Any, source: random.Random) -> None:
    kind = source.randrange(4)
    if kind == 0:
        message.null_value = 0
    elif kind == 1:
        message.number_value = source.choice((0.0, -1.5, 1e300))
    elif kind == 2:
        message.string_value = source.choice(("", "ü"))
    else:
        message.bool_value = source.random() < 0.5


def _list(message: Any, source: random.Random) -> None:
    for _ in range(source.randrange(3)):
        _value(message.values.add(), source)


def _struct(message: Any, source: random.Random) -> None:
    for key in source.sample(("", "a", "ü"), source.randrange(3)):
        _value(message.fields[key], source)


#: Types that have a form in JSON only with some values. Any holds nothing: its messages would have to be known.
_SPECIAL: Final[Special] = {
    f"{_WELL_KNOWN}Any": lambda message, source: None,
    f"{_WELL_KNOWN}Duration": _time,
    f"{_WELL_KNOWN}FieldMask": lambda message, source: message.paths.extend(source.choice(([], ["a", "b_c.d"]))),
    f"{_WELL_KNOWN}ListValue": _list,
    f"{_WELL_KNOWN}Struct": _struct,
    f"{_WELL_KNOWN}Timestamp": _time,
    f"{_WELL_KNOWN}Value": _value,
}


def _without_cycles(files: FileDescriptorSet, root: str) -> FileDescriptorSet:
    """The set without fields that lead from a message inside ``root`` to one that it is in, or itself."""
    copy = FileDescriptorSet.FromString(files.SerializeToString())
    types: dict[str, DescriptorProto] = {}
    left_out: list[str] = []

    def collect(prefix: str, messages: Sequence[DescriptorProto]) -> None:
        for each in messages:
            types[f"{prefix}.{each.name}"] = each
            collect(f"{prefix}.{each.name}", each.nested_type)

    for file in copy.file:
        collect(f".{file.package}", file.message_type)

    def visit(name: str, above: tuple[str, ...], done: set[str]) -> None:
        done.add(name)
        message, inside = types[name], (*above, name)
        for field in list(message.field):
            target = field.type_name
            if target in types and types[target].options.map_entry:
                target = types[target].field[1].type_name
            if target in inside:
                message.field.remove(field)
                left_out.append(field.name)
            elif target in types.keys() - done and not target.startswith(f".{_WELL_KNOWN}"):
                visit(target, inside, done)

    visit(f".{root}", (), set())
    return copy if left_out else files


def _alike(column: Any, row: Any, kind: pa.DataType) -> bool:
    """Return True if a value of a column is the natural one of a row: documents are JSON there, maps lists of pairs."""
    if column is None or row is None:
        return column is row or (column == "null" and pa.types.is_string(kind))
    if pa.types.is_struct(kind):
        return all(_alike(column[field.name], row[field.name], field.type) for field in kind)
    if pa.types.is_map(kind):
        pairs = dict(column)
        return pairs.keys() == row.keys() and all(_alike(pairs[key], row[key], kind.item_type) for key in pairs)
    if pa.types.is_list(kind):
        return len(column) == len(row) and all(_alike(*both, kind.value_type) for both in zip(column, row, strict=True))
    return bool(column == row or (pa.types.is_string(kind) and json.loads(column) == row))


def _endless(kind: Any, above: tuple[str, ...] = ()) -> bool:
    """Return True if a type has a required field that leads back to it: no message of it is ever complete."""
    inside = (*above, kind.full_name)
    required = [field.message_type for field in kind.fields if field.is_required and field.message_type is not None]
    return any(each.full_name in inside or _endless(each, inside) for each in required)


def _serializers(files: FileDescriptorSet) -> Iterator[ProtobufSerializer]:
    """One for each type that has messages."""
    for file in files.file:
        for each in file.message_type:
            serializer = ProtobufSerializer(files, message_type=f"{file.package}.{each.name}")
            if not file.package.startswith(_WELL_KNOWN[:-1]) and not _endless(serializer.message_class.DESCRIPTOR):
                yield serializer


def _messages(serializer: ProtobufSerializer, count: int, source: random.Random) -> list[Any]:
    made = []
    for _ in range(count):
        message = serializer.message_class()
        fill(message, source, _DEPTH, _SPECIAL)
        made.append(message)
    return made


def _rows(serializer: ProtobufSerializer, messages: Sequence[Any]) -> Iterator[str]:
    for message in messages:
        event = message.SerializeToString(deterministic=True)
        read = serializer.deserialize(event)
        written = serializer.serialize(read)
        if read != message or len(written) != len(event) or serializer.deserialize(written) != message:
            yield f"a row: {event.hex()} {written.hex()}"
        natural = serializer.as_dict(read)
        from_natural = serializer.serialize(natural)
        # A null of JSON is None, as a field is that is not there.
        same = from_natural == written or "NULL_VALUE" in str(message)
        if not same or serializer.as_dict(serializer.deserialize(from_natural)) != natural:
            yield f"a row of natural values: {event.hex()} {from_natural.hex()}"


def _columns(serializer: ProtobufSerializer, messages: Sequence[Any]) -> Iterator[str]:
    events = pa.array([message.SerializeToString(deterministic=True) for message in messages], pa.binary())
    column = serializer.decode_column(events)
    column.validate(full=True)
    written = serializer.encode_column(column)
    for number, message in enumerate(messages):
        event, value, row = events[number].as_py().hex(), column[number].as_py(), serializer.as_dict(message)
        if not _alike(value, row, serializer.arrow_type):
            yield f"a column: {event} {value} {row}"
        if written[number].as_py() != serializer.serialize(message):
            yield f"a column written: {event} {written[number].as_py().hex()}"


def compare(files: FileDescriptorSet, count: int, source: random.Random, counts: Counts) -> Iterator[str]:
    """Differences from Google's library in rows and columns, for this many messages of each type."""
    for serializer in _serializers(files):
        name = serializer.message_class.DESCRIPTOR.full_name
        messages = _messages(serializer, count, source)
        counts.types, counts.messages = counts.types + 1, counts.messages + count
        yield from (f"{name}: {what}" for what in _rows(serializer, messages))
        kept = _without_cycles(files, name)
        flat = serializer if kept is files else ProtobufSerializer(kept, message_type=name)
        if pa.types.is_struct(flat.arrow_type) and flat.arrow_type.num_fields:
            counts.in_columns += count
            yield from (f"{name}: {what}" for what in _columns(flat, _messages(flat, count, source)))


def compare_with_java(
    peer: ProtoPeer, files: FileDescriptorSet, count: int, source: random.Random, counts: Counts
) -> Iterator[str]:
    """Differences in what Java reads from our bytes, or writes."""
    sent: list[tuple[str, bytes, Any]] = []
    for serializer in _serializers(files):
        name = serializer.message_class.DESCRIPTOR.full_name
        sent += [(name, serializer.serialize(each), each) for each in _messages(serializer, count, source)]
    for (name, event, message), read in zip(sent, peer.verify(files, [each[:2] for each in sent]), strict=True):
        counts.by_java += 1
        if read.get("hex") != event.hex() or read["value"] != _json(message):
            yield f"{name}: Java: {event.hex()} {read} {_json(message)}"


def _json(message: Any) -> Any:
    pool = message.DESCRIPTOR.file.pool
    return json_format.MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=pool)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100, help="of each type")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    source, found = random.Random(options.seed), 0
    with tempfile.TemporaryDirectory() as folder:
        peer = ProtoPeer(Path(folder), [jar.file() for jar in PROTOBUF_JAVA])
        for name, files in SETS.items():
            counts = Counts()
            for what in compare(files(), options.messages, source, counts):
                found += 1
                print(f"{what:.1000}", file=sys.stderr)
            for what in compare_with_java(peer, files(), options.messages, source, counts):
                found += 1
                print(f"{what:.1000}", file=sys.stderr)
            print(f"{name}: {counts}", flush=True)
    print(f"{found} differences")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
