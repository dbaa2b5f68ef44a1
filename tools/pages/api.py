"""``docs/api-….md``: the public names of the packages, with signatures and docstrings."""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

__all__ = ["API", "page", "public"]

#: Page -> its title, and the modules whose public names it has.
API: Final = {
    "reference/api-connector.md": ("The API of pravega_connector", ("pravega_connector",)),
    "reference/api-serializers.md": ("The API of pravega_serde", ("pravega_serde", "pravega_serde.registry")),
    "reference/api-modules.md": (
        "The API of further modules",
        (
            "pravega_connector.monitoring",
            "pravega_connector.ingest",
            "pravega_connector.metrics",
            "pravega_connector.testing",
            "pyspark_pravega",
        ),
    ),
}
_OURS: Final = ("pravega_connector", "pravega_serde", "pyspark_pravega")


def page(name: str) -> Callable[[str], str]:
    """What makes a page."""
    return lambda _: _page(*API[name])


def public(module: str) -> list[tuple[str, Any]]:
    """Public names of a module, without errors, which have a page of their own, and plain values."""
    loaded = importlib.import_module(module)
    found = ((name, getattr(loaded, name)) for name in sorted(loaded.__all__))
    return [(name, each) for name, each in found if inspect.isroutine(each) or _is_documented_class(each)]


def _is_documented_class(each: object) -> bool:
    return inspect.isclass(each) and not issubclass(each, BaseException)


def _page(title: str, modules: tuple[str, ...]) -> str:
    lines = [
        f"# {title}",
        "",
        "Made by `python -m tools.pages` from the docstrings. Errors are on [a page of their own](errors.md).",
    ]
    seen = set[int]()
    for module in modules:
        lines += ["", f"## Module {module}"]
        for name, each in public(module):
            if id(each) not in seen:
                seen.add(id(each))
                lines += _class(name, each) if inspect.isclass(each) else _function("###", name, each)
    return "\n".join(lines) + "\n"


def _class(name: str, kind: type) -> list[str]:
    lines = ["", f"### {name}", ""]
    if issubclass(kind, enum.Enum):
        return [*lines, *_text(kind), "", "Members: " + ", ".join(f"`{member}`" for member in kind.__members__) + "."]
    names = {name for _, modules in API.values() for module in modules for name, _ in public(module)}
    public_bases = [f"`{base.__name__}`" for base in kind.__bases__ if base.__name__ in names]
    if _has_own_signature(kind):
        lines += [f"`{name}{_signature(kind)}`", ""]
    lines += _text(kind)
    if public_bases:
        lines += ["", f"A {', '.join(public_bases)}."]
    members = list(_members(kind))
    properties = [(each, _summary(member)) for each, member in members if not _is_call(_plain(member))]
    if any(summary for _, summary in properties):
        lines += ["", "| attribute | what it is |", "|---|---|"]
        lines += [f"| `{each}` | {summary} |" for each, summary in properties if summary]
    for each, member in members:
        if _is_call(_plain(member)):
            lines += _function("####", f"{name}.{each}", _plain(member))
    return lines


def _has_own_signature(kind: type) -> bool:
    made = dataclasses.is_dataclass(kind) or "__init__" in vars(kind)
    return made and not getattr(kind, "_is_protocol", False)


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public members that our code defines, those of bases too, in the order of their definition."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.partition(".")[0] in _OURS:
            found.update((name, each) for name, each in vars(base).items() if not name.startswith("_"))
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    yield from ((name, each) for name, each in found.items() if name not in fields and _is_shown(each))


def _is_shown(member: object) -> bool:
    plain = _plain(member)
    return bool(inspect.getdoc(plain)) and (_is_call(plain) or isinstance(plain, property | functools.cached_property))


def _is_call(member: object) -> bool:
    return inspect.isroutine(member) and not isinstance(member, functools.cached_property)


def _plain(member: Any) -> Any:
    return member.__func__ if isinstance(member, classmethod | staticmethod) else member


def _function(level: str, name: str, function: Any) -> list[str]:
    before = "await " if inspect.iscoroutinefunction(function) else ""
    return [
        "",
        f"{level} {name}",
        "",
        f"`{before}{name.rpartition('.')[2]}{_signature(function)}`",
        "",
        *_text(function),
    ]


def _signature(function: Any) -> str:
    signature = inspect.signature(function)
    parameters = [
        each.replace(annotation=_as_written(each.annotation))
        for each in signature.parameters.values()
        if each.name not in ("self", "cls")
    ]
    text = str(signature.replace(parameters=parameters, return_annotation=_as_written(signature.return_annotation)))
    text = re.sub(r"<([A-Z]\w+\.\w+): [^<>]*>", r"\1", text)  # members of enumerations
    while (without := re.sub(r"<[^<>]*>", "…", text)) != text:  # what has no text of its own, such as a lambda
        text = without
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", text)


class _Written:
    """An annotation whose text is shown without quotes."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _as_written(annotation: Any) -> Any:
    return _Written(annotation) if isinstance(annotation, str) else annotation


def _text(documented: object) -> list[str]:
    text = inspect.cleandoc(inspect.getdoc(documented) or "")
    return _markdown(text).splitlines()


def _summary(documented: object) -> str:
    return " ".join(_markdown(inspect.getdoc(documented) or "").split("\n\n")[0].split()).replace("|", "\\|")


def _markdown(text: str) -> str:
    """A docstring as Markdown: its roles and literals as code."""
    text = re.sub(r":[a-z]+:`~?([^`]*)`", lambda role: f"`{role[1]}`", text)
    return re.sub(r"(?<!`)``(?!`)", "`", text)
