"""What Spark calls, with errors that end in one line.

Spark shows the user the text of an exception of a Python source, and that is its traceback. Of this project's errors
the place in the code and the causes say nothing that their line does not; without them the line comes last, and once.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from pravega_serde import PravegaError

__all__ = ["in_one_line"]

_log: Final = logging.getLogger(__name__)

Kind = TypeVar("Kind", bound=type)


def in_one_line(*names: str) -> Callable[[Kind], Kind]:
    """Decorator of a class: what its methods of these names raise has neither traceback nor causes.

    The log has both, at level DEBUG. What is not of this project stays as it is.
    """

    def decorate(kind: Kind) -> Kind:
        for name in names:
            setattr(kind, name, _told(vars(kind)[name]))
        return kind

    return decorate


def _told(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def told(*args: Any, **kwargs: Any) -> Any:
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
