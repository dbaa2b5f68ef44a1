"""Docstrings as Markdown with links, and the texts of fields and constants, which Python does not keep."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import re
import textwrap
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import msgspec

from tools.pages._links import to_pages

__all__ = ["constant_text", "field_texts", "linked", "summary", "text_of"]

#: Returns the address of a name on the page, or None.
Find = Callable[[str], str | None]
_CODE: Final = re.compile(
    r"^::\n\n(?P<block>(?: {4}.*\n|\n)+)"
    r"|:(?P<role>[a-z]+):`~?(?P<target>[^`]*)`"
    r"|``(?P<literal>(?:.|\n)+?)``"
    r"|`(?P<code>[^`]+)`",
    re.MULTILINE,
)
_NAME: Final = re.compile(r"\b[A-Z][a-z]+(?:[A-Z][a-z]*)+(?:\.[a-z_]+)?\b")
_UP: Final = "../../"


def text_of(documented: object, find: Find, owner: str = "") -> list[str]:
    """Return the docstring as lines of Markdown. Names that have an entry are links, each once."""
    return linked(inspect.cleandoc(inspect.getdoc(documented) or ""), find, owner).splitlines()


def summary(documented: object, find: Find, owner: str = "") -> str:
    """Return the first paragraph of the docstring in one line, for a cell of a table."""
    first = (inspect.getdoc(documented) or "").split("\n\n")[0]
    return " ".join(linked(first, find, owner).split()).replace("|", "\\|")


def linked(text: str, find: Find, owner: str = "") -> str:
    """Return a text as Markdown. ``owner`` is the class whose methods have short names in it."""
    seen = set[str]()

    def link(shown: str, *names: str) -> str:
        address = next((found for name in names if (found := find(name)) is not None), None)
        if address is None or address in seen:
            return shown
        seen.add(address)
        return f"[{shown}]({address})"

    def code(found: re.Match[str]) -> str:
        if found["block"]:
            return f"```py\n{textwrap.dedent(found['block']).strip()}\n```\n\n"
        target = found["target"] or found["literal"] or found["code"]
        shown = found["target"].rpartition("~")[2] if found["role"] else target
        if found["role"] and found["role"] != "meth":
            shown = re.sub(r"^[a-z_.]+\.(?=[A-Z])", "", shown)
        plain = target.removesuffix("()")
        is_name = found["role"] or plain[:1].isupper() or target.endswith("()")
        names = (f"{owner}.{plain}", plain, plain.rpartition(".")[2]) if found["role"] else (plain,)
        return link(f"`{shown}`", *names) if is_name and re.fullmatch(r"[\w.]+", plain) else f"`{shown}`"

    def words(plain: str) -> str:
        return to_pages(_NAME.sub(lambda found: link(found[0], found[0]), plain), _UP)

    parts, end = [], 0
    for found in _CODE.finditer(text):
        parts += [words(text[end : found.start()]), code(found)]
        end = found.end()
    return "".join([*parts, words(text[end:])])


@functools.cache
def field_texts(kind: type) -> dict[str, str]:
    """Return the text under each field of a class and its bases."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        is_struct = issubclass(base, msgspec.Struct) and base is not msgspec.Struct
        if dataclasses.is_dataclass(base) or hasattr(base, "_fields") or is_struct:
            found |= _texts_in(textwrap.dedent(inspect.getsource(base)))
    return found


def _texts_in(source: str) -> dict[str, str]:
    body = ast.parse(source).body[0].body  # type: ignore[attr-defined]
    found: dict[str, str] = {}
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            value = text.value.value if isinstance(text.value, ast.Constant) else None
            if isinstance(value, str):
                found[field.target.id] = " ".join(value.split())
    return found


def constant_text(module: Any, name: str) -> tuple[str, str]:
    """Return the definition of a constant or an alias, and the comment ``#:`` above it."""
    source = inspect.getsource(module)
    node = next(each for each in ast.parse(source).body if name in _names(each))
    lines = source.splitlines()
    comment: list[str] = []
    for line in reversed(lines[: node.lineno - 1]):
        if not line.startswith("#:"):
            break
        comment.insert(0, line.removeprefix("#:").strip())
    value = ast.unparse(node.value) if isinstance(node, ast.Assign | ast.AnnAssign) and node.value else ""
    return value, " ".join(comment)


def _names(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [each.id for each in targets if isinstance(each, ast.Name)]
