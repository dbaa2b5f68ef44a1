"""Formats of other packages, by the names of their entry points or as ``package.module:name``.

Only a user's own options and arguments reach this module. A name in an event or in a registry never does: it must not
import code.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Final

from pravega_serde.errors import UnsupportedFormatError

#: Group of the entry points: a name of a format, and the ``package.module:name`` of its serializer.
GROUP: Final = "pravega_serde.formats"
_PLACE: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


@functools.cache
def installed() -> Mapping[str, str]:
    """Return the places of the formats of installed packages by name, without an import of these packages."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - 10 ms of a Spark worker, which rarely lists formats

    return {each.name.lower(): f"{each.module}:{each.attr}" for each in entry_points(group=GROUP)}


@functools.cache
def load(place: str) -> Any:
    """Return what is at ``package.module:name``: a serializer, its class, or a function that returns one.

    Raises :class:`UnsupportedFormatError` if it cannot be imported, or is something else.
    """
    if not _PLACE.fullmatch(place):
        raise UnsupportedFormatError(f"invalid format {place!r}: write package.module:name of a serializer")
    module, _, name = place.partition(":")
    try:
        found: Any = attrgetter(name)(importlib.import_module(module))
    except Exception as error:
        reason = str(error) if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: {error}"
        raise UnsupportedFormatError(
            f"the format {place!r} cannot be imported: {' '.join(reason.split())}; install its package in each process "
            "that uses it, with Spark on the driver and every executor"
        ) from error
    if not (isinstance(found, type) or is_serializer(found) or callable(found)):
        raise UnsupportedFormatError(
            f"{place!r} is a {type(found).__name__}: name a serializer, its class, or a function that returns one"
        )
    return found


def is_serializer(found: Any) -> bool:
    """Return True for an object, or a class of objects, that writes or reads events."""
    return any(callable(getattr(found, name, None)) for name in ("serialize", "deserialize"))


def is_object(found: Any) -> bool:
    """Return True for a serializer that exists, not its class or a function that returns one."""
    return not isinstance(found, type) and is_serializer(found)


def lacks_columns(found: Any) -> bool:
    """Return True for a serializer, or a class of serializers, that defines no Arrow type of its events."""
    return is_serializer(found) and inspect.getattr_static(found, "arrow_type", None) is None
