"""Public names of a package, each loaded on first access, and hints for unknown names.

A package takes its ``__getattr__``, ``__dir__`` (PEP 562) and ``__all__`` from :func:`public_names`. A module that has
loaded its names takes its ``__getattr__`` from :func:`unknown_names`. An unknown name raises an AttributeError that
names the right one, so ``hasattr``, copies and pickles work as for any module. ``from package import name`` drops an
AttributeError, so that statement gets an ImportError with the same hint. The names of other clients are in
:mod:`pravega_serde.foreign_names`.
"""

from __future__ import annotations

import opcode
import pkgutil
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import FrameType
from typing import Any, Final

from pravega_serde.foreign_names import ELSEWHERE
from pravega_serde.suggestions import UnknownNameError, by_words, nearest

# Packages loaded until now, with their public names. Few programs have loaded pyspark_pravega when they need this.
_PUBLIC: Final[dict[str, list[str]]] = {"pyspark_pravega": ["configure", "register_functions", "register_streams"]}
_MOST: Final = 3  # names in a hint
_NEEDS_SPARK: Final = "it requires Spark; install it with: pip install 'pravega-serde[spark]'"


def public_names(
    package: str, places: Mapping[str, str], there: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    ``places`` is module -> its public names, separated by blanks. The modules can be asked for by their last
    name, too. ``there`` are further public names, which the package has already.
    """
    where = {name: f"{package}.{module}" for module, names in places.items() for name in names.split()}
    modules = {place.rpartition(".")[2]: f"{package}.{place}" for place in places}
    public = sorted({*where, *there}, key=lambda name: (not name.isupper(), name[0].islower(), name))
    _PUBLIC[package] = public

    def load(name: str) -> Any:
        if name in where:
            try:
                value = getattr(import_module(where[name]), name)
            except ModuleNotFoundError as error:
                if (error.name or "").partition(".")[0] != "pyspark":
                    raise
                # Not an AttributeError: ``from package import name`` would drop its text.
                raise ModuleNotFoundError(f"{package} has no {name}: {_NEEDS_SPARK}", name="pyspark") from error
        elif name in modules:
            value = import_module(modules[name])
        else:
            raise unknown_name(package, name, sys._getframe(1))
        vars(sys.modules[package])[name] = value
        return value

    def known() -> list[str]:
        own = vars(sys.modules[package])
        return sorted({*public, *modules, *(name for name in own if name.startswith("__"))})

    return load, known, public


def unknown_names(package: str) -> Callable[[str], Any]:
    """``__getattr__`` of a module that has loaded all its names."""

    def refuse(name: str) -> Any:
        raise unknown_name(package, name, sys._getframe(1))

    return refuse


def unknown_name(package: str, name: str, caller: FrameType) -> UnknownNameError | ImportError:
    """Return the error for a name that a module lacks. ``caller`` is the frame that asks for it."""
    # A module that is being imported is not yet an attribute of its package: the interpreter then finds it itself.
    if f"{package}.{name}" not in sys.modules and _imports(caller) and (text := _text(package, name)):
        return ImportError(f"cannot import name {name!r} from {package!r}: {text}", name=package)
    return UnknownNameError(name, lambda: _text(package, name) or f"module {package!r} has no attribute {name!r}")


def _imports(caller: FrameType) -> bool:
    """Return True if the frame executes ``from package import name``, not ``hasattr`` or an attribute."""
    return caller.f_code.co_code[caller.f_lasti] == opcode.opmap["IMPORT_FROM"]


def _text(package: str, name: str) -> str:
    """One line on a name that a module does not have; empty for names that only tools ask for."""
    return "" if name.startswith("_") else f"{package} has no {name}: {_meaning(package, name)}"


def _meaning(package: str, name: str) -> str:
    for names, meant in (pair for table in ELSEWHERE.values() for pair in table.items()):
        if name in names.split():
            return meant.replace("`", "")
    for other, public in _PUBLIC.items():
        if name in public and other != package:
            return f"write from {other} import {name}"
    module = sys.modules[package]
    own = _PUBLIC.get(package) or module.__all__
    modules = pkgutil.iter_modules(module.__path__) if package in _PUBLIC else ()  # those inside others are not public
    known = [*own, *(each.name for each in modules)]
    if near := nearest(name, [each for each in known if not each.startswith("_")]):
        return f"did you mean {near}?"
    for other, public in _PUBLIC.items():
        if near := nearest(name, public):
            return f"did you mean {near}? Write from {other} import {near}"
    if similar := by_words(name, list(own)):
        return f"did you mean {' or '.join(similar[:_MOST])}?"
    return f"unknown name; dir({package}) lists the names"
