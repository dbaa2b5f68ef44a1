"""The formats of registries: found through the table, loaded when they are needed."""

import subprocess
import sys
from pathlib import Path

import pytest

from pravega_serde import SchemaError, SerdeError, UnsupportedFormatError
from pravega_serde.format_table import FORMATS, registry_formats
from pravega_serde.registry import RegistryFormat, SchemaInfo, SerializationFormat, event_type, part_of, registry_format


def test_the_registry_loads_no_format_before_it_is_needed() -> None:
    code = "import sys, pravega_serde.registry; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = {entry.serializer.partition(":")[0] for entry in FORMATS.values()}
    assert set(done.stdout.split()) & modules == set()


@pytest.mark.parametrize("name", registry_formats())
def test_a_format_is_found_by_its_name_and_by_that_in_the_registry(name: str) -> None:
    part = registry_format(name)
    assert isinstance(part, RegistryFormat)
    registered = FORMATS[name].registry_name
    assert part_of(SerializationFormat(registered, registered)) is part


def test_formats_that_the_registry_does_not_have() -> None:
    assert part_of(SerializationFormat.ANY) is None
    assert part_of(SerializationFormat.custom("Avro")) is None
    with pytest.raises(UnsupportedFormatError, match="unknown registry format 'java'; known: avro, json, protobuf"):
        registry_format("java")
    with pytest.raises(UnsupportedFormatError, match="unknown registry format 'xml'; known: avro, json, protobuf"):
        event_type("<a/>", format="xml")
    with pytest.raises(SerdeError, match="set format: avro, json or protobuf"):
        event_type("{}")


@pytest.mark.parametrize("name", ["avro", "json"])
def test_a_registered_schema_names_no_file(name: str, tmp_path: Path) -> None:
    schema = {"avro": '{"type": "record", "name": "A", "fields": []}', "json": '{"type": "object"}'}[name]
    file = tmp_path / "schema"
    file.write_text(schema)
    kind = SerializationFormat(FORMATS[name].registry_name, FORMATS[name].registry_name)
    registry_format(name).payloads(SchemaInfo("A", kind, schema.encode()))
    with pytest.raises(SchemaError, match="the registered schema of 'A' is not JSON text"):
        registry_format(name).payloads(SchemaInfo("A", kind, str(file).encode()))
