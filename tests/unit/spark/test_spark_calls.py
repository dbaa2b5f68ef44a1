"""Errors as Spark shows them, and what is done in Spark's processes alone."""

import gc
import importlib.machinery
import inspect
import itertools
import logging
import sys
import traceback
from collections.abc import Iterator

import pytest

from pravega_connector.errors import ConfigError, StreamNotFoundError
from pravega_connector.spark import boundary
from pravega_connector.spark.boundary import called_by_spark
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.source import BrokenStreamReader, PravegaStreamReader


@called_by_spark("now", "later", "fails")
class Calls:
    def now(self, limit: int = 1) -> None:
        try:
            raise ConfigError("the cause")
        except ConfigError as error:
            raise StreamNotFoundError("no stream") from error

    def later(self) -> Iterator[int]:
        yield 1
        self.now()

    def fails(self) -> None:
        raise ZeroDivisionError


def shown(error: BaseException) -> list[str]:
    return "".join(traceback.format_exception(error)).splitlines()


def test_the_line_comes_last_and_nothing_stands_before_it_but_the_call(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    calls = Calls()
    for run in (calls.now, lambda: list(calls.later())):
        with pytest.raises(StreamNotFoundError) as error:
            run()
        lines = shown(error.value)
        assert lines[-1].endswith("[PRAVEGA-STREAM-NOT-FOUND] no stream")
        assert "the cause" not in "\n".join(lines)
        assert "the cause" in caplog.text, "the log has all of it"
    with pytest.raises(ZeroDivisionError) as foreign:
        calls.fails()
    assert "in fails" in "\n".join(shown(foreign.value))
    found = calls.later()
    assert next(found) == 1


def test_spark_sees_the_parameters_of_what_it_calls():
    assert list(inspect.signature(PravegaStreamReader.latestOffset).parameters) == ["self", "start", "limit"]
    assert list(inspect.signature(PravegaDataSource.writer).parameters) == ["self", "schema", "overwrite"]


def test_a_stream_reader_that_cannot_be_made_says_so_when_it_is_asked():
    schema = PravegaDataSource({"path": "a/b", "metadata": "Streams"}).schema()
    reader = PravegaDataSource({"path": "a/b", "metadata": "Streams"}).streamReader(schema)
    assert isinstance(reader, BrokenStreamReader)
    for ask in (reader.initialOffset, reader.latestOffset, lambda: reader.partitions({}, {})):
        with pytest.raises(ConfigError, match="metadata=Streams is for batch reads"):
            ask()


def test_garbage_collections_in_spark_s_workers_pass_over_modules(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(boundary, "_spared", 0)
    assert list(itertools.islice(Calls().later(), 1)) == [1]
    assert gc.get_freeze_count() == 0, "this process is the user's"
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", importlib.machinery.ModuleSpec("pyspark.daemon", None))
    try:
        assert list(itertools.islice(Calls().later(), 1)) == [1]
        spared = gc.get_freeze_count()
        assert spared > len(sys.modules)
        later: list[object] = []
        assert list(itertools.islice(Calls().later(), 1)) == [1]
        assert gc.get_freeze_count() <= spared, "nothing was loaded meanwhile"
        assert any(each is later for each in gc.get_objects())
    finally:
        gc.unfreeze()
