"""Options of streams with a registry."""

import re

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pravega_connector.errors import ConfigError, UnknownOptionError
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.reading import schema_ids_of, with_schema_ids
from pravega_serde import SerdeError

PLACE = {"path": "shop/orders", "registry": "http://localhost:9092"}
ROWS = StructType([StructField("id", LongType(), metadata={"k": "v"}), StructField("item", StringType())])


def source(**options: str) -> SourceOptions:
    return parse_options(SourceOptions, PLACE | options)


def test_the_group_is_the_streams_name_unless_it_is_given():
    assert source().registry_group() == "orders"
    assert source(group="g").registry_group() == "g"
    assert not parse_options(SourceOptions, {"path": "shop/orders"}).from_registry


def test_columns_are_decoded_without_a_format():
    assert source().metadata_columns == ()
    assert source(columns="offset,encoding_id").metadata_columns == ("offset", "encoding_id")


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (SourceOptions, {"registry_type": "a.B"}, "'registry_type' requires a schema registry"),
        (SourceOptions, {"schema_evolution": "corrupt"}, "'schema_evolution' requires a schema registry"),
        (SourceOptions, {"registry_password": "secret"}, "'registry_password' requires a schema registry"),
        (SinkOptions, {"register_schema": "true"}, "'register_schema' requires a schema registry"),
        (SinkOptions, {"format": "avro", "codec": "gzip"}, "'codec' requires a schema registry"),
        (SinkOptions, PLACE | {"format": "java"}, "formats of a registry: avro, json, protobuf"),
        (SinkOptions, PLACE | {"codec": "lzma"}, "'codec' must be one of gzip, snappy"),
        (SourceOptions, PLACE | {"format": "json", "avro_schema": '"long"'}, "belongs to format 'avro'"),
    ],
)
def test_options_that_cannot_be(kind: type[SourceOptions], options: dict[str, str], words: str):
    with pytest.raises(ConfigError, match=re.escape(words)) as error:
        parse_options(kind, options)
    assert "secret" not in str(error.value)


def test_where_the_registry_is_and_who_asks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PRAVEGA_REGISTRY_URI", "http://elsewhere:1")
    monkeypatch.setenv("PRAVEGA_REGISTRY_TOKEN", "of the environment")
    config = source(namespace="n").registry_config(2.5)
    assert (config.uri, config.namespace, config.token) == ("http://localhost:9092", "n", "of the environment")
    assert config.timeout == 2.5
    given = source(registry_username="ann", registry_password="of the options")
    config = given.registry_config(1)
    assert (config.username, config.password, config.token) == ("ann", "of the options", None)
    assert "of the options" not in repr(given)
    by_group = parse_options(SourceOptions, {"path": "shop/orders", "group": "g"})
    assert by_group.registry_config(1).uri == "http://elsewhere:1"
    with pytest.raises(SerdeError, match="both username and password"):
        source(registry_username="ann").registry_config(1)


def test_schema_ids_travel_in_the_columns():
    options = source(namespace="n")
    carried = with_schema_ids(ROWS, options, [3, 5])
    assert StructType.fromJson(carried.jsonValue()) == carried
    assert carried[0].metadata["k"] == "v"
    assert schema_ids_of(carried, options) == (3, 5)
    assert with_schema_ids(ROWS, options, None) == ROWS
    # The options of another group do not count here.
    assert schema_ids_of(carried, source()) is None
    assert schema_ids_of(ROWS, options) is None
    assert schema_ids_of(carried, parse_options(SourceOptions, {"path": "shop/orders"})) is None


def test_a_near_name_is_reported():
    with pytest.raises(UnknownOptionError, match=r"'regsitry'.*did you mean 'registry'"):
        parse_options(SourceOptions, {"path": "a/b", "regsitry": "http://x:1"})


def test_codecs_of_the_users_own_are_named_by_their_places():
    read = parse_options(SourceOptions, {**PLACE, "path": "s/t", "codecs": "app.codecs:secret, app.codecs:Other.old"})
    assert read.codecs == ("app.codecs:secret", "app.codecs:Other.old")
    assert parse_options(SinkOptions, PLACE | {"codec": "app.codecs:secret"}).codec == "app.codecs:secret"
    for wrong in ("app.codecs", "app codecs:x", "a:b:c", ""):
        with pytest.raises(ConfigError, match="codecs"):
            parse_options(SourceOptions, {**PLACE, "path": "s/t", "codecs": wrong})
