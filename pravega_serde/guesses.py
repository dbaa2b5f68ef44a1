"""Names that people guess: the nearest known one, and errors that say what an unknown name is called here.

Whoever has such names has a table of them, and nothing else: the classes of :class:`HintedNames`, the packages of
:mod:`pravega_serde.public_names`, and options and arguments, by :func:`did_you_mean`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

__all__ = ["HintedNames", "UnknownNameError", "did_you_mean", "nearest"]

_NEAR: Final = 0.5  # for a hint, which may be wrong


def nearest(word: str, known: Iterable[str], *, least: float = _NEAR) -> str | None:
    """The nearest known word, whatever its case, if it is like ``word`` to at least a degree (1: equal)."""
    import difflib  # noqa: PLC0415 - needed by errors alone

    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(word.strip().lower(), by_lower, n=1, cutoff=least)
    return by_lower[near[0]] if near else None


def did_you_mean(word: str, known: Iterable[str], meant: Mapping[str, str] | None = None) -> str:
    """Hint behind an unknown word: what ``meant`` has for it, if known, else the nearest; empty if none is near."""
    known = list(known)
    here = (meant or {}).get(word)
    found = here if here in known else nearest(word, known)
    return f"; did you mean {found!r}?" if found is not None else ""


class UnknownNameError(AttributeError):
    """Something has no such attribute. What is meant is found when the text is read: copies and pickles ask in vain."""

    def __init__(self, name: str, text: Callable[[], str]) -> None:
        # With a name and no object, the interpreter adds no guess of its own.
        super().__init__(name=name)
        self._text = text

    def __str__(self) -> str:
        return self._text()

    def __reduce__(self) -> tuple[type[AttributeError], tuple[str]]:
        return AttributeError, (str(self),)


class _HintedType(type):
    if not TYPE_CHECKING:  # a type checker would take any name for known

        def __getattr__(cls, name: str) -> Any:
            raise _unknown(cls, name)


class HintedNames(metaclass=_HintedType):
    """Base of classes whose unknown names are told what they are called here.

    They lack an attribute as any class does, and ``hasattr`` costs what it always did: the table is looked up when the
    text of the AttributeError is read.
    """

    __slots__ = ()

    _meant: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Class -> name that it does not have, in snake case -> what is meant."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise _unknown(self, name)


def _unknown(owner: Any, name: str) -> AttributeError:
    kind = owner if isinstance(owner, type) else type(owner)
    text = f"{kind.__name__} has no {name!r}"
    if name.startswith("_"):  # asked for by copy, pickle and notebooks, not by people
        return AttributeError(text)
    return UnknownNameError(name, lambda: f"{text}: {_hint(owner, kind, name)}")


def _hint(owner: Any, kind: type[HintedNames], name: str) -> str:
    meant: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        meant |= kind._meant.get(each.__name__, {})
    there = [each for each in dir(owner) if not each.startswith("_")]
    if name in there:
        return "it is not set, or its property failed"
    words = _in_snake_case(name)
    if words in there:
        return f"write {words}"
    if words in meant:
        return meant[words]
    near = nearest(words, [*there, *meant], least=0.6)
    if near is None:
        return f"help({kind.__name__}) lists what there is"
    return meant.get(near) or f"did you mean {near!r}?"


def _in_snake_case(name: str) -> str:
    import re  # noqa: PLC0415 - needed by errors alone

    return name.lower() if name.isupper() else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
