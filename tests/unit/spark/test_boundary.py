"""Errors as Spark shows them, and work only in Spark's processes."""

import contextlib
import gc
import importlib.machinery
import inspect
import itertools
import logging
import sys
import traceback
import weakref
from collections.abc import Iterator

import pytest

from pravega_connector.errors import ConfigError, StreamNotFoundError
from pravega_connector.spark import boundary
from pravega_connector.spark.boundary import called_by_spark
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.source.readers import BrokenStreamReader, PravegaStreamReader


@called_by_spark("now", "later", "fails", "imports", "imports_and_fails", "imports_later")
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

    def imports(self) -> None:
        sys.modules["a_module_of_the_call"] = sys

    def imports_and_fails(self) -> None:
        self.imports()
        self.now()

    def imports_later(self) -> Iterator[int]:
        self.imports()
        yield 1


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


def test_a_stream_reader_that_cannot_be_made_reports_it_when_it_is_asked():
    schema = PravegaDataSource({"path": "a/b", "metadata": "Streams"}).schema()
    reader = PravegaDataSource({"path": "a/b", "metadata": "Streams"}).streamReader(schema)
    assert isinstance(reader, BrokenStreamReader)
    for ask in (reader.initialOffset, reader.latestOffset, lambda: reader.partitions({}, {})):
        with pytest.raises(ConfigError, match="metadata=Streams is for batch reads"):
            ask()


@pytest.fixture
def first_call(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The next call is the first one in this process."""
    monkeypatch.setattr(boundary, "_first_call", True)
    yield
    gc.unfreeze()


def in_spark(monkeypatch: pytest.MonkeyPatch, name: str = "pyspark.daemon") -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", importlib.machinery.ModuleSpec(name, None))


class Cycle:
    def __init__(self) -> None:
        self.itself = self


def call() -> None:
    assert list(itertools.islice(Calls().later(), 1)) == [1]


@pytest.mark.parametrize("name", ["pyspark.daemon", "pyspark.sql.streaming.python_streaming_source_runner"])
def test_the_first_call_in_a_process_of_spark_freezes_what_is_loaded(name, first_call, monkeypatch):
    call()
    assert gc.get_freeze_count() == 0, "this process is the user's"
    in_spark(monkeypatch, name)
    call()
    frozen = gc.get_freeze_count()
    assert frozen > len(sys.modules)
    later = Cycle()
    dropped = weakref.ref(later)
    monkeypatch.setitem(sys.modules, "a_module_that_the_user_s_function_imports", sys)
    call()
    assert gc.get_freeze_count() <= frozen
    del later
    gc.collect()
    assert dropped() is None, "an object that was created after the first call is collected"


@pytest.mark.parametrize(
    "run",
    [
        lambda: Calls().imports(),
        lambda: Calls().imports_and_fails(),
        lambda: list(Calls().imports_later()),
        lambda: next(Calls().imports_later()),
    ],
    ids=["returns", "fails", "is read to the end", "is dropped"],
)
def test_a_call_that_imports_modules_freezes_them_when_it_ends(run, first_call, monkeypatch):
    in_spark(monkeypatch)
    call()
    frozen = gc.get_freeze_count()
    monkeypatch.delitem(sys.modules, "a_module_of_the_call", raising=False)
    loaded = [Cycle() for _ in range(100)]  # means the objects of the module
    with contextlib.suppress(StreamNotFoundError):
        run()
    monkeypatch.delitem(sys.modules, "a_module_of_the_call", raising=False)
    assert gc.get_freeze_count() > frozen
    assert not any(each is one for one in loaded for each in gc.get_objects())


def test_freezing_can_be_switched_off(first_call, monkeypatch):
    in_spark(monkeypatch)
    monkeypatch.setenv(boundary.FREEZE, "0")
    call()
    assert gc.get_freeze_count() == 0
