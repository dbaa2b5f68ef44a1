"""What Spark calls: with errors that end in one line, and in processes whose modules are not looked at again and again.

Spark shows the user the text of an exception of a Python source, and that is its traceback. Of this project's errors
the place in the code and the causes say nothing that their line does not; without them the line comes last, and once.

Spark's Python processes collect garbage after each task, and Python's own collector runs while objects are made of
events. Most of what either looks at is what the modules have made, ten milliseconds of CPU each time.
"""

from __future__ import annotations

import functools
import gc
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from pravega_serde.errors import PravegaError

_log: Final = logging.getLogger(__name__)

Kind = TypeVar("Kind", bound=type)


def called_by_spark(*names: str) -> Callable[[Kind], Kind]:
    """Decorator of a class: its methods of these names are Spark's to call.

    What they raise has neither traceback nor causes; the log has both, at level DEBUG. What is not of this project
    stays as it is. A call in a worker of Spark's, not in the user's process, has the garbage collector pass over what
    is loaded.
    """

    def decorate(kind: Kind) -> Kind:
        for name in names:
            setattr(kind, name, _told(vars(kind)[name]))
        return kind

    return decorate


def _told(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def told(*args: Any, **kwargs: Any) -> Any:
        if _is_worker():
            _spare_collector()
        try:
            result = method(*args, **kwargs)
        except PravegaError as error:
            raise _bare(error) from None
        return _iterated(result) if isinstance(result, Iterator) else result

    return told


def _iterated(values: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from values
    except PravegaError as error:
        raise _bare(error) from None


def _bare(error: PravegaError) -> PravegaError:
    _log.debug("%s", error, exc_info=error)
    return error.with_traceback(None)


def _is_worker() -> bool:
    """Whether this process is one that Spark's daemon has forked."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name == "pyspark.daemon"


_spared = 0  # modules that were loaded the last time


def _spare_collector() -> None:
    """Have garbage collections pass over what there is, if modules have been loaded since the last time."""
    global _spared  # noqa: PLW0603 - as the collector has one state for the process
    if len(sys.modules) > _spared:
        gc.collect()
        gc.freeze()
        _spared = len(sys.modules)
