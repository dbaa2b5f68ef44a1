"""Options of formats: which belongs to which, and the serializers that they make."""

import base64
import datetime as dt
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from pravega_connector.errors import ConfigError, UnknownOptionError
from pravega_connector.rows.options import FormatOptions, known_names, parse_options
from pravega_connector.rows.options.encryption import EncryptionOptions
from pravega_connector.rows.options.framing import FramingOptions
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.rows.pickled import Pickled
from pravega_serde import SchemaError, UnsupportedFormatError, formats
from pravega_serde.java import ClassDescriptor, JavaSerializer

ORDER = ClassDescriptor.of("shop.Order", 3, {"id": "long", "item": "java.lang.String", "tags": "java.util.List"})
EVENT = JavaSerializer().serialize(ORDER.new(id=1, item="tea"))
FIELDS = pa.struct([("item", pa.string()), ("id", pa.int64())])


def made(**options: str) -> FormatOptions:
    return parse_options(FormatOptions, options)


def test_every_option_belongs_to_a_format_and_every_format_can_be_chosen():
    shared = {"format", *EncryptionOptions.__dataclass_fields__, *FramingOptions.__dataclass_fields__}
    named = {each.metadata["format"] for each in FormatOptions.__dataclass_fields__.values() if each.name not in shared}
    assert named <= set(formats())
    assert {made(format=name.upper()).format for name in formats()} == set(formats())
    assert known_names(FormatOptions).keys() <= known_names(SourceOptions).keys() & known_names(SinkOptions).keys()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "json", "avro_schema": '"long"'}, "belongs to format 'avro', but the format is 'json'"),
        ({"java_type": "byte[]"}, "'java_type' belongs to format 'java', but no format is set"),
        ({"format": "java", "java_sample": "aced00"}, "java_sample"),
        ({"format": "java", "java_type": "byte[]", "java_sample": EVENT.hex()}, "java_type and java_sample both"),
        ({"format": "java", "java_sample": "aced0005zz"}, "invalid hex or base64"),
        ({"format": "java", "java_sample": "rO0AB!"}, "invalid hex or base64"),
        ({"format": "java", "java_sample": "/no/such/file"}, "'/no/such/file' cannot be read: No such file"),
    ],
)
def test_options_that_cannot_be(options: dict[str, str], words: str):
    with pytest.raises(ConfigError, match=words):
        made(**options)


def test_an_unknown_format_names_the_known_ones():
    with pytest.raises(UnsupportedFormatError, match=r"'xml'.*avro.*json"):
        made(format="xml")
    with pytest.raises(UnsupportedFormatError, match=r"'jsn'.*did you mean 'json'"):
        made(format="jsn")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "avro"}, "requires option 'avro_schema': schema of the written events"),
        ({"format": "protobuf"}, "requires option 'protobuf_descriptor': path of a file descriptor set"),
    ],
)
def test_a_missing_option_is_named_with_its_meaning(options: dict[str, str], words: str):
    with pytest.raises(ConfigError, match=words):
        made(**options).serializer()


@pytest.mark.parametrize(("name", "words"), [("json", r"\.schema"), ("java", r"java_type.*java_sample.*\.schema")])
def test_columns_without_types(name: str, words: str):
    made(format=name).serializer()
    with pytest.raises(ConfigError, match=f"format '{name}' do not name their columns.*{words}"):
        made(format=name).column_serializer()


def test_avro_by_another_schema(tmp_path: Path):
    path = tmp_path / "int.avsc"
    path.write_text('"int"')
    serializer = made(format="avro", avro_schema=str(path), avro_reader_schema='"double"').column_serializer()
    assert serializer.arrow_type == pa.float64()
    assert serializer.deserialize(b"\x02") == 1.0


def test_json_by_its_schema():
    serializer = made(format="json", json_schema='{"required": ["id"]}').column_serializer(FIELDS)
    column = pa.array([b'{"id": 1}', b'{"item": "x"}'])
    errors: list[Exception] = []
    assert serializer.decode_column(column, on_error=errors.append).to_pylist() == [{"item": None, "id": 1}, None]
    assert "id" in str(errors[0])


@pytest.mark.parametrize(
    ("java_type", "value", "kind"),
    [
        ("java.lang.String", "ключ", pa.string()),
        ("java.lang.Long", 5, pa.int64()),
        ("byte[]", b"x", pa.binary()),
        ("java.time.LocalDate", dt.date(2026, 1, 1), pa.date32()),
    ],
)
def test_java_by_the_name_of_its_type(java_type: str, value: object, kind: pa.DataType):
    serializer = made(format="java", java_type=java_type).column_serializer()
    events = serializer.encode_column(pa.array([value], kind))
    assert serializer.arrow_type == kind
    assert serializer.decode_column(events).to_pylist() == [value]


@pytest.mark.parametrize("form", ["hex", "HEX", "base64", "path"])
def test_java_by_a_sample(tmp_path: Path, form: str):
    path = tmp_path / "order"
    path.write_bytes(EVENT)
    text = {
        "hex": EVENT.hex(),
        "HEX": EVENT.hex().upper(),
        "base64": base64.b64encode(EVENT).decode(),
        "path": str(path),
    }
    options = made(format="java", java_sample=text[form])
    # A field whose type no Arrow type follows from does not matter when it is not asked for.
    serializer = options.column_serializer(FIELDS)
    path.unlink()
    again = pickle.loads(pickle.dumps(Pickled(serializer))).get()
    assert again.decode_column(pa.array([EVENT])).to_pylist() == [{"item": "tea", "id": 1}]
    assert again.encode_column(again.decode_column(pa.array([EVENT]))).to_pylist() == [EVENT]
    with pytest.raises(SchemaError, match="tags"):
        options.column_serializer()


def test_java_objects_of_any_class_by_the_names_of_their_fields():
    serializer = made(format="java").column_serializer(FIELDS)
    assert serializer.decode_column(pa.array([EVENT])).to_pylist() == [{"item": "tea", "id": 1}]


def test_portable_serializers_are_made_once_for_each_process():
    portable = Pickled(made(format="avro", avro_schema='"long"').serializer())
    copies = [pickle.loads(pickle.dumps(portable)).get() for _ in range(3)]
    assert all(copy is copies[0] for copy in copies)


def test_sparks_name_for_the_corrupt_record_is_known():
    options = parse_options(SourceOptions, {"columnNameOfCorruptRecord": "bad"})
    assert options.column_name_of_corrupt_record == "bad"
    with pytest.raises(UnknownOptionError, match=r"'columnnameofcorrupt'; did you mean .*'columnnameofcorruptrecord'"):
        parse_options(SourceOptions, {"columnNameOfCorrupt": "bad"})
