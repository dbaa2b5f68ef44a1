"""Public names of a package, each loaded when it is first asked for, and what is said of a name that it does not have.

A package takes its ``__getattr__``, ``__dir__`` (PEP 562) and ``__all__`` from :func:`public_names`. A name that it
does not have is an AttributeError, as in any module, so that ``hasattr``, copies and pickles work. But
``from package import name`` drops that error: it looks for a submodule of the name, and ends in a text of its own. So
there is a finder of modules that is asked after all others and raises the ImportError that says what is meant. The
texts are those of :mod:`pravega_serde.elsewhere`, which is loaded when one is shown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["NoSuchNameError", "public_names"]

_PACKAGES: Final = frozenset({"pravega_serde", "pravega_connector", "pyspark_pravega"})


def public_names(
    package: str, places: Mapping[str, str], there: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    ``places`` is module -> its public names, separated by blanks; the modules can be asked for, too. ``there`` are
    further public names, which the package has already.
    """
    where = {name: f"{package}.{module}" for module, names in places.items() for name in names.split()}
    public = sorted({*where, *there}, key=lambda name: (name[0].islower(), name))

    def load(name: str) -> Any:
        loaded = vars(sys.modules[package])
        if name in loaded and name in where:  # asked for through the package's other name
            return loaded[name]
        if name in where:
            try:
                value = getattr(import_module(where[name]), name)
            except ModuleNotFoundError as error:
                if error.name != "pyspark":
                    raise
                raise NoSuchNameError(package, name) from error
        elif name in places:
            value = import_module(f"{package}.{name}")
        else:
            raise NoSuchNameError(package, name)
        loaded[name] = value
        return value

    def known() -> list[str]:
        return sorted({*vars(sys.modules[package]), *public, *places})

    return load, known, public


class NoSuchNameError(AttributeError):
    """A package has no such name. What is meant is found when the text is read: pickle asks for many names in vain."""

    def __init__(self, package: str, name: str) -> None:
        # With a name and no object, the interpreter adds no guess of its own.
        super().__init__(package, name, name=name)

    def __str__(self) -> str:
        package, name = self.args
        return _text(package, name) or f"module {package!r} has no attribute {name!r}"


def _text(package: str, name: str) -> str:
    if name.startswith("_"):  # asked for by tools, not by people
        return ""
    from pravega_serde.elsewhere import text  # noqa: PLC0415 - needed by errors alone

    return text(package, name)


class _LastOfAll:
    """Finder that finds nothing: it raises the error of a name that is known by another one."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the interface's
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if package.partition(".")[0] in _PACKAGES and (text := _text(package, name)):
            # Without the module's name in it: `from … import …` drops the errors that have that.
            raise ImportError(text) if name[0].isupper() else ModuleNotFoundError(text)
        return None


sys.meta_path.append(_LastOfAll())
