"""What the processes of a query hand to each other, from one version of the project to another."""

import pickle

import pytest
from pyspark import cloudpickle
from pyspark.sql.types import BinaryType, StructField, StructType

from connector.data_source import PravegaDataSource
from connector.errors import VersionMismatchError
from connector.exchange import VERSION

COLUMNS = StructType([StructField("event", BinaryType())])
START = {"streams": {"a/b": {"0.#epoch.0": 0}}, "version": 1}
END = {"streams": {"a/b": {"0.#epoch.0": 90}}, "version": 1}


@pytest.fixture
def exchanged():
    """A reader and one of its partitions; no server is asked."""
    options = {"controller": "tcp://127.0.0.1:1", "stream": "a/b", "columns": "event"}
    reader = PravegaDataSource(options).streamReader(COLUMNS)
    (partition,) = reader.partitions(START, END)
    return reader, partition


def test_what_is_exchanged_comes_as_it_was_sent(exchanged):
    for dumps in (pickle.dumps, cloudpickle.dumps):
        reader, partition = pickle.loads(dumps(exchanged))
        assert (partition.slice, partition.stop) == (exchanged[1].slice, None)
        assert partition.slice.end == 90
        assert reader.options == exchanged[0].options
        assert [each.slice for each in reader.partitions(START, END)] == [partition.slice]


@pytest.mark.parametrize("which", [0, 1], ids=["reader", "partition"])
def test_another_version_is_one_clear_line(exchanged, monkeypatch, which):
    monkeypatch.setattr("connector.exchange.VERSION", VERSION + 1)
    sent = cloudpickle.dumps(exchanged[which])
    monkeypatch.undo()
    # Its classes need not be there any more.
    assert b"connector.source" in sent
    sent = sent.replace(b"connector.source", b"connector.absent")
    with pytest.raises(VersionMismatchError) as error:
        pickle.loads(sent)
    text = str(error.value)
    assert text.startswith("[PRAVEGA-VERSION-MISMATCH] ")
    assert f"version {VERSION + 1}, this one version {VERSION}" in text
    assert "\n" not in text
