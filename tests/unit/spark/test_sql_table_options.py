"""Options that a table's columns carry."""

from dataclasses import fields

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType, VarcharType

from pravega_connector.errors import ColumnTypeError, ConfigError, UnknownOptionError
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.sql_tables import (
    explains_alterations,
    is_table,
    options_to_read,
    options_to_write,
    own_options,
    with_options,
)

COLUMNS = StructType([StructField("id", LongType(), metadata={"k": "v"}), StructField("item", StringType())])
SECRETS = dict.fromkeys(
    [each.name for kind in (SourceOptions, SinkOptions) for each in fields(kind) if each.metadata.get("secret")],
    "secret",
)
OPTIONS = {"stream": "a/b", **SECRETS, "provider": "pravega", "path": "/warehouse/t"}
# As Spark passes them when the table is created: each option twice, next to the properties of the table.
CREATED = {
    **OPTIONS,
    **{f"option.{name}": OPTIONS[name] for name in ("stream", *SECRETS)},
    "comment": "orders of the shop",
    "owner": "ann",
    "team": "sales",
}
VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"


def as_spark_has_it(schema: StructType, *, fitted: bool) -> StructType:
    """A table's columns as Spark hands them on: a VARCHAR is a string with a mark, which fitting takes away."""
    fields = []
    for field in schema:
        text = isinstance(field.dataType, VarcharType)
        mark = {VARCHAR: field.dataType.simpleString()} if text and not fitted else {}
        kind = StringType() if text else field.dataType
        fields.append(StructField(field.name, kind, field.nullable, {**field.metadata, **mark}))
    return StructType(fields)


def test_options_travel_with_the_columns_but_secrets_do_not():
    assert is_table(CREATED)
    carried = with_options(COLUMNS, own_options(CREATED))
    assert StructType.fromJson(carried.jsonValue()) == carried
    assert "also_registry_password" in SECRETS
    assert "secret" not in carried.json()
    assert carried[0].metadata["k"] == "v"
    for fitted in (True, False):
        read = options_to_read({"start_stream_cut": "latest", "path": "/warehouse/t"},
                               as_spark_has_it(carried, fitted=fitted))  # fmt: skip
        assert read == {"stream": "a/b", "start_stream_cut": "latest"}


def test_an_option_of_a_query_replaces_another_name_of_it_in_the_table():
    table = with_options(COLUMNS, {"stream": "a/b", "max_bytes_per_trigger": "9", "keycloak_file": "/k.json"})
    given = {"approx_bytes_per_trigger": "5", "username": "ann", "password": "p"}
    assert options_to_read(given, table) == {"stream": "a/b", **given}


@pytest.mark.parametrize("kind", [ConfigError, ColumnTypeError, UnknownOptionError])
def test_only_errors_about_columns_advise_to_undo_alterations(kind: type[ConfigError]):
    of_a_table = with_options(COLUMNS, OPTIONS)
    for schema, is_explained in ((COLUMNS, False), (of_a_table, kind is not UnknownOptionError)):
        with pytest.raises(ConfigError, match="reason") as found, explains_alterations(schema):
            raise kind("reason")
        assert ("undo ALTER TABLE" in str(found.value)) is is_explained
        assert is_explained or type(found.value) is kind


def test_properties_of_a_table_are_not_options_of_it():
    assert own_options(CREATED) == OPTIONS
    assert options_to_read(CREATED, StructType()) == OPTIONS  # the JVM reader reads the options of a new table
    assert own_options({"stream": "a/b", "team": "sales"}) == {"stream": "a/b", "team": "sales"}  # not a table


def test_tables_of_other_options_have_other_types():
    one, two, again = (with_options(COLUMNS, {"stream": name})[1].dataType for name in ("a/b", "a/c", "a/b"))
    assert one == again != two


def test_a_write_takes_the_options_of_columns_that_were_fitted_to_its_table():
    table = with_options(COLUMNS, OPTIONS)
    assert options_to_write({}, as_spark_has_it(table, fitted=True)) == {"stream": "a/b"}
    more = options_to_write({"txn_app_id": "x"}, as_spark_has_it(table, fitted=True))
    assert more == {"stream": "a/b", "txn_app_id": "x"}


@pytest.mark.parametrize("given", [{}, {"checkpointlocation": "/c", "queryname": "q"}])
def test_a_write_never_takes_those_of_what_it_reads(given: dict[str, str]):
    table = with_options(COLUMNS, OPTIONS)
    read = as_spark_has_it(table, fitted=False)
    one_computed = StructType([read[0], StructField("item", StringType())])
    numbers = StructType([with_options(COLUMNS, OPTIONS)[0]])
    for columns in (read, StructType([read[1]]), one_computed, numbers, COLUMNS):
        with pytest.raises(ConfigError, match=r"no stream is set, such as start\(.*which table is meant.* WITH"):
            options_to_write(given, columns)
        for told in ({"stream": "c/d"}, {"path": "c/d"}):
            assert options_to_write(told, columns) == told


def test_rows_that_name_their_streams_need_no_options():
    assert options_to_write({}, StructType([*COLUMNS, StructField("target_stream", StringType())])) == {}


def test_a_table_with_a_list_of_columns_has_lost_its_options():
    with pytest.raises(ConfigError, match="omit the columns"):
        options_to_read({}, COLUMNS)


def test_columns_name_no_code_to_import():
    carried = with_options(COLUMNS, {"stream": "a/b", "format": "package.module:name"})
    with pytest.raises(ConfigError, match="metadata must not choose code to import: set option 'format'"):
        options_to_read({}, carried)
    assert options_to_read({"format": "package.module:name"}, carried)["format"] == "package.module:name"
