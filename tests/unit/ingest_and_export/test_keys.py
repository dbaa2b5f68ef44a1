"""Routing keys out of the bytes of events."""

import os

import pyarrow as pa
import pytest

from pravega_connector.errors import ConfigError
from pravega_connector.operations.pipe import ByJsonField, ByPattern


def keys(router, *events):
    return router.keys(pa.RecordBatch.from_arrays([pa.array(events, pa.large_binary())], ["event"])).to_pylist()


def test_a_field_of_json():
    router = ByJsonField("order.customer")
    events = [b'{"order": {"customer": "ann"}}', b'{"order": {"customer": 7}}', b'{"order": {"customer": true}}']
    assert keys(router, *events) == ["ann", "7", "true"]


@pytest.mark.parametrize(
    "event", [b"no json", b"{}", b'{"order": null}', b'{"order": 1}', b'{"order": {"customer": []}}']
)
def test_an_unknown_field_is_not_a_key(event):
    assert keys(ByJsonField("order.customer"), event) == [None]


@pytest.mark.parametrize(
    ("pattern", "key"),
    [("[0-9]+", "42"), ("id=([0-9]+)", "42"), ("(?P<x>id)=(?P<key>[0-9]+)", "42"), ("nothing", None), ("id(x)?", None)],
)
def test_what_a_pattern_finds(pattern, key):
    assert keys(ByPattern(pattern), b"id=42 of \xff 43") == [key]


def test_a_key_that_is_not_text_is_fixed():
    assert keys(ByPattern("^(..)"), b"\xffa", "✓".encode()) == ["\ufffda", "\ufffd"]


@pytest.mark.parametrize("pattern", ["(", "\ud800"])
def test_what_is_not_a_pattern(pattern):
    with pytest.raises(ConfigError, match="invalid regular expression"):
        ByPattern(pattern)


def test_a_field_with_an_unpaired_surrogate_is_not_a_key():
    assert keys(ByJsonField("k"), b'{"k": "\\ud800"}', b'{"k": "ann"}') == [None, "ann"]


def test_a_pattern_of_bytes_that_are_not_text():
    assert keys(ByPattern(os.fsdecode(b"\xff(.)")), b"\xffann") == ["a"]
