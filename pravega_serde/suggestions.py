"""Hints for unknown names: the nearest known name, and errors that name the right one.

The tables of names are elsewhere: with the classes based on :class:`HintedNames`, with the packages of
:mod:`pravega_serde.public_names`, and with options and arguments, which use :func:`did_you_mean` for words and
:func:`which_name` for names of several words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

_MOST: Final = 2  # typing errors; a name with more of them is another name
_NAMES: Final = 3  # most names in a hint
# Fewest letters of a name for one typing error and for two; shorter names allow none: 'host' is not 'path'.
_ONE_EDIT: Final = 4
_TWO_EDITS: Final = 8
_SEPARATORS: Final = str.maketrans("-. ", "___")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that differs from ``word`` by a typing error or two, or None. Case does not matter.

    Longer differences are other words: ``copy_stream`` is not ``scale_stream``.
    """
    wanted = word.strip().lower()
    found = [(edits, each) for each in known if (edits := _typing_errors(wanted, each.lower())) is not None]
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _typing_errors(word: str, known: str) -> int | None:
    """Number of typing errors between two words; None if they are different words.

    Two at most, none in a first letter (``subscribe``, ``unsubscribe``), and in each part of a name one for every four
    letters (``read_all``, ``head_all``); an underscore too many or too few is one.
    """
    if word[:1] != known[:1]:
        return None
    parts, others = (each.translate(_SEPARATORS).split("_") for each in (word, known))
    if len(parts) != len(others):
        return 1 if "".join(parts) == "".join(others) else None
    found = [distance(part, other) for part, other in zip(parts, others, strict=True)]
    near = all(edits <= len(other) // 4 for edits, other in zip(found, others, strict=True))
    return sum(found) if near and sum(found) <= _MOST else None


def distance(word: str, other: str) -> int:
    """Letters to insert, drop, replace or swap with their neighbor."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(word, 1):
        line = [row]
        for column, counterpart in enumerate(other, 1):
            best = min(last[column] + 1, line[-1] + 1, last[column - 1] + (letter != counterpart))
            if row > 1 and column > 1 and letter == other[column - 2] and word[row - 2] == counterpart:
                best = min(best, before[column - 2] + 1)
            line.append(best)
        before, last = last, line
    return last[-1]


def did_you_mean(word: str, known: Iterable[str], meant: Mapping[str, str] | None = None) -> str:
    """Return the hint after an unknown word: what ``meant`` has for it, else the nearest; empty without one."""
    known = list(known)
    here = (meant or {}).get(word)
    found = here if here in known else nearest(word, known)
    return f"; did you mean {found!r}?" if found is not None else ""


def which_name(name: str, known: Iterable[str], meant: Mapping[str, str] | None = None) -> str:
    """Return the hint after an unknown name of an option or an argument, with up to three names; empty without one.

    They are the names that ``meant`` has for it, separated by blanks. Otherwise the nearest by spelling. Otherwise
    names with all its words, or names that have at least half of them and no other. Case and separators do not count,
    because Spark passes ``startStreamCut`` in lower case.
    """
    known = list(known)
    letters = _letters(name)
    own = next((names for each, names in (meant or {}).items() if _letters(each) == letters), "")
    found = [each for each in own.split() if each in known]
    found = found or _by_spelling(name, known) or by_words(name, known)
    names = [repr(each) for each in found[:_NAMES]]
    return f"; did you mean {' or '.join(filter(None, (', '.join(names[:-1]), names[-1])))}?" if names else ""


def _by_spelling(name: str, known: list[str]) -> list[str]:
    letters = _letters(name)
    allowed = (len(letters) >= _ONE_EDIT) + (len(letters) >= _TWO_EDITS)
    edits = [distance(letters, _letters(each)) for each in known]
    fewest = min(edits, default=allowed + 1)
    return [each for each, count in zip(known, edits, strict=True) if count == fewest <= allowed]


def by_words(name: str, known: list[str]) -> list[str]:
    """Return the names with all words of ``name``, or else those with at least half of them and no other."""
    words = set(_words(name))
    own = {each: set(_words(each)) for each in known}
    letters = _letters(name)
    wider = [
        each
        for each in known
        if words <= own[each] or (len(letters) >= _ONE_EDIT and _letters(each).startswith(letters))
    ]
    if wider:
        return sorted(wider, key=lambda each: len(own[each]))
    narrower = [each for each in known if own[each] <= words and 2 * len(own[each]) >= len(words)]
    return sorted(narrower, key=lambda each: -len(own[each]))


def _words(name: str) -> list[str]:
    return [word for word in _in_snake_case(name).lower().translate(_SEPARATORS).split("_") if word]


def _letters(name: str) -> str:
    return "".join(_words(name))


class UnknownNameError(AttributeError):
    """Something has no such attribute. What is meant is found when the text is read: copies and pickles ask in vain."""

    def __init__(self, name: str, text: Callable[[], str]) -> None:
        # With a name and no object, the interpreter adds no guess.
        super().__init__(name=name)
        self._text = text

    def __str__(self) -> str:
        return self._text()

    def __reduce__(self) -> tuple[type[AttributeError], tuple[str]]:
        return AttributeError, (str(self),)


class HintedNames:
    """Base of classes whose objects name the right attribute in the error for an unknown one.

    Only objects do: an unknown attribute of the class raises Python's own error. ``hasattr`` stays cheap, because the
    table is used only when the text of the AttributeError is read.
    """

    __slots__ = ()

    _meant: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Class -> names that it does not have, in snake case, separated by blanks -> what is meant."""

    if not TYPE_CHECKING:  # a type checker would accept any name

        def __getattr__(self, name: str) -> Any:
            raise _unknown(self, name)


def _unknown(owner: HintedNames, name: str) -> AttributeError:
    kind = type(owner)
    text = f"{kind.__name__} has no {name!r}"
    if name.startswith("_"):  # asked for by copy, pickle and notebooks, not by people
        return AttributeError(text)
    return UnknownNameError(name, lambda: f"{text}: {_hint(owner, kind, name)}")


def _hint(owner: HintedNames, kind: type[HintedNames], name: str) -> str:
    meant: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        for names, text in kind._meant.get(each.__name__, {}).items():
            meant |= dict.fromkeys(names.split(), text)
    there = [each for each in dir(owner) if not each.startswith("_")]
    if name in there:
        return "it is not set, or its property failed"
    words = _in_snake_case(name)
    for word in (words, words.removeprefix("get_")):  # Java's getters
        if word in there:
            return f"write {word}"
        if word in meant:
            return meant[word]
    near = nearest(words, [*there, *meant])
    if near is None:
        return f"unknown name; help({kind.__name__}) lists the names"
    return meant.get(near) or f"did you mean {near!r}?"


def _in_snake_case(name: str) -> str:
    return name.lower() if name.isupper() else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
