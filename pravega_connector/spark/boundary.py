"""Methods that Spark calls: their errors are one line, and modules are excluded from garbage collection.

Spark shows the traceback of an exception of a Python source. For the errors of this project, the traceback and the
causes add nothing to the message, so both go to the log.

Spark's Python processes collect garbage after each task, and Python's own collector runs while events are decoded. Most
objects that a collection visits belong to modules. This costs ten milliseconds of CPU each time.
"""

from __future__ import annotations

import functools
import gc
import logging
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from pravega_serde.errors import PravegaError

FREEZE: Final = "PRAVEGA_FREEZE_MODULES"
"""Environment variable of Spark's Python processes: ``0`` leaves the garbage collector as it is."""

_log: Final = logging.getLogger(__name__)

Kind = TypeVar("Kind", bound=type)


def called_by_spark(*names: str) -> Callable[[Kind], Kind]:
    """Decorate a class whose methods with these names are called by Spark.

    Errors of this project lose their traceback and causes, which are logged at level DEBUG. Other errors do not change.
    In a process that Spark started, the first call excludes the loaded modules from garbage collection. Each call that
    imports modules does so again when it ends. The collector of the user's own process is never changed.
    """

    def decorate(kind: Kind) -> Kind:
        for name in names:
            setattr(kind, name, _told(vars(kind)[name]))
        return kind

    return decorate


def _told(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def told(*args: Any, **kwargs: Any) -> Any:
        before = _modules_before_call()
        try:
            result = method(*args, **kwargs)
        except PravegaError as error:
            raise _bare(error) from None
        finally:
            _freeze_imported(before)
        return _iterated(result) if isinstance(result, Iterator) else result

    return told


def _iterated(values: Iterator[Any]) -> Iterator[Any]:
    before = _modules_before_call()
    try:
        yield from values
    except PravegaError as error:
        raise _bare(error) from None
    finally:
        _freeze_imported(before)


def _bare(error: PravegaError) -> PravegaError:
    _log.debug("%s", error, exc_info=error)
    return error.with_traceback(None)


def is_spark_process() -> bool:
    """Return True if Spark started this process as a worker or as a planner: it is not the user's program."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name.partition(".")[0] == "pyspark"


_first_call = True


def _modules_before_call() -> int:
    """Return the number of loaded modules; at the first call in a process of Spark, freeze them."""
    global _first_call  # noqa: PLW0603 - like the collector, it is one for the process
    if _first_call and is_spark_process():
        _first_call = False
        _freeze_modules()
    return len(sys.modules)


def _freeze_imported(before: int) -> None:
    """Freeze the modules that a call has imported. Modules that the user's functions import do not count."""
    if len(sys.modules) > before and is_spark_process():
        _freeze_modules()


def _freeze_modules() -> None:
    """Exclude the loaded modules from garbage collection, if the user permits it."""
    if os.environ.get(FREEZE) != "0":
        gc.collect()
        gc.freeze()
