"""The table of formats, the public names, and what importing the package costs."""

import importlib
import inspect
import pickle
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

import pravega_serde
from pravega_serde import SchemaError, SerdeError, Serializer, UnsupportedFormatError, formats, serializer_for
from pravega_serde.format_table import FORMATS, imported

AVRO = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
RECORD = pa.struct([("id", pa.int64())])
#: Needs of a serializer besides the columns in the table.
REQUIRED = {"avro": {"schema": AVRO}, "protobuf": {"schema": FieldMask}}
PACKAGES = [
    "pravega_serde",
    "pravega_serde.avro",
    "pravega_serde.columnar",
    "pravega_serde.errors",
    "pravega_serde.json",
    "pravega_serde.protobuf",
    "pravega_serde.routing",
    "pravega_serde.format_table",
    "pravega_serde.text",
]


def made(name: str) -> Serializer[Any]:
    columns = {"arrow_type": RECORD} if FORMATS[name].needs_columns else {}
    return serializer_for(name, **columns, **REQUIRED.get(name, {}))


@pytest.mark.parametrize("name", formats())
def test_each_format_is_a_serializer_that_survives_pickling(name: str) -> None:
    serializer = made(name)
    public = {member for member in vars(Serializer) if not member.startswith("_")}
    assert public == {"arrow_type", "check_encodable", "decode_column", "deserialize", "encode_column", "serialize"}
    assert all(hasattr(serializer, member) for member in public)
    again = pickle.loads(pickle.dumps(serializer))
    assert type(again) is type(serializer)
    assert again.arrow_type == serializer.arrow_type


@pytest.mark.parametrize("name", formats())
def test_a_format_is_as_the_table_says(name: str) -> None:
    declared = FORMATS[name]
    parameters = inspect.signature(imported(declared.serializer)).parameters
    required = {key for key, each in parameters.items() if each.default is inspect.Parameter.empty}
    assert {each.argument for each in declared.options} <= parameters.keys()
    assert {each.argument for each in declared.options if each.required} == required
    assert declared.needs_columns == ("arrow_type" in parameters)
    if declared.needs_columns:
        assert made(name).arrow_type == RECORD
        with pytest.raises(SchemaError):
            _ = serializer_for(name).arrow_type
    assert bool(declared.registry) == bool(declared.registry_name)
    assert all(callable(imported(place)) for place in (declared.infer, declared.registry) if place)


@pytest.mark.parametrize("name", ["Avro", " avro "])
def test_names_are_forgiving_about_case_and_space(name: str) -> None:
    assert serializer_for(name, schema=AVRO).arrow_type == pa.struct([("id", pa.int64())])


@pytest.mark.parametrize(
    ("name", "near"),
    [("avor", "avro"), ("jsn", "json"), ("utf8string", "string"), ("utf-8", "string"), ("raw", "bytes")],
)
def test_an_unknown_format_names_the_nearest(name: str, near: str) -> None:
    with pytest.raises(UnsupportedFormatError, match=f"did you mean '{near}'.*known formats: avro, bytes") as caught:
        serializer_for(name)
    assert str(caught.value).startswith("[PRAVEGA-UNSUPPORTED-FORMAT]")


def test_an_unknown_option_names_the_nearest() -> None:
    with pytest.raises(SerdeError, match="has no option 'shema'; did you mean 'schema'"):
        serializer_for("avro", shema=AVRO)


def test_a_format_is_named_by_text() -> None:
    with pytest.raises(UnsupportedFormatError, match="must be a str, not int; known formats: avro"):
        serializer_for(5)  # type: ignore[arg-type]


def test_a_missing_option_is_named() -> None:
    with pytest.raises(SerdeError, match="'avro' requires the option 'schema'"):
        serializer_for("avro")


@pytest.mark.parametrize("name", PACKAGES)
def test_public_names_are_sorted_and_there(name: str) -> None:
    module = importlib.import_module(name)
    assert list(module.__all__) == sorted(module.__all__)
    assert all(hasattr(module, public) for public in module.__all__)
    assert module.__doc__


def test_the_package_imports_nothing_heavy() -> None:
    found = _modules_after("import pravega_serde")
    assert not found & {"fastavro", "msgspec", "numpy", "polars", "pyarrow", "pyruhvro", "pyspark"}


def test_every_format_works_where_spark_and_the_fast_extras_are_missing() -> None:
    blocked = (
        "import sys\n"
        "for m in ('pyspark', 'grpc', 'polars', 'polars_avro', 'pyruhvro', 'orjson'):\n"
        "    sys.modules[m] = None\n"
    )
    use = (
        "import pyarrow as pa\nfrom pravega_serde import serializer_for\n"
        f"options = {{'avro': {{'schema': {AVRO!r}}}, 'json': {{'arrow_type': pa.struct([('id', pa.int64())])}}}}\n"
        "for name in ('avro', 'json'):\n"
        "    serializer = serializer_for(name, **options[name])\n"
        "    events = serializer.encode_column(pa.array([{'id': 7}], serializer.arrow_type))\n"
        "    assert serializer.decode_column(events).to_pylist() == [{'id': 7}]\n"
        "    assert serializer.deserialize(serializer.serialize({'id': 7})) == {'id': 7}\n"
    )
    assert "pyarrow" in _modules_after(blocked + use)


def _modules_after(code: str) -> set[str]:
    code += "\nimport sys\nprint(*(name for name, module in sys.modules.items() if module))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_errors_are_the_packages_own() -> None:
    assert pravega_serde.SerdeError.__module__ == "pravega_serde.errors"


@pytest.mark.parametrize("name", formats())
@pytest.mark.parametrize("given", [[b"a"], (b"a",), b"a", None, pa.scalar(b"a"), pa.table({"event": [b"a"]})])
def test_a_column_is_an_array(name: str, given: Any):
    serializer = made(name)
    for call in (serializer.decode_column, serializer.encode_column):
        with pytest.raises(SchemaError, match=r"a column must be a pyarrow.Array, not \w+; convert values with"):
            call(given)
