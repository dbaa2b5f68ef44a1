"""``docs/reference/errors.md``: every error with its code, cause and fix, base classes first."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from pravega_connector import errors as of_connector
from pravega_connector.cli.exit_codes import exit_code
from pravega_serde import errors as of_serializers
from pravega_serde.errors import PravegaError

__all__ = ["explained", "kinds", "page"]

_HEAD = """\
# Errors

Look up an error by its code to find its cause and its fix. The text of an error is one line and begins with the code:
`[PRAVEGA-STREAM-NOT-FOUND] stream demo/fligths does not exist: …`. Codes are stable. Spark shows only the text of an
error. To link to an error, use its code in lower case: `errors.md#pravega-stream-not-found`. An `except` clause with a
base class, such as `ControllerError`, catches its subclasses too. In Python, `help(kind)` shows the same text.

- `fault` is the side at fault: the caller or its machine (local), the server or the network (remote), or the events
  (data).
- `retriable` means that the same call may succeed later. The client has already retried until its deadline.
- `exit` is the exit code of a command of `pravega-serde`: see [exit codes](../tools/command-line.md#exit-codes).
"""
_SECTIONS = {"Serializers and the schema registry": of_serializers, "Client, Spark, ingestion, servers": of_connector}


def page(_: str) -> str:
    """The whole page."""
    parts = [_HEAD]
    for title, module in _SECTIONS.items():
        here = [kind for kind in kinds() if inspect.getmodule(kind) is module]
        head = ["| code | class | meaning | fault | retriable | exit |", "|---|---|---|---|---|--:|"]
        parts.append("\n".join(["", f"## {title}", "", *head, *map(_row, here), ""]))
        parts += map(_section, here)
    return "".join(parts)


def kinds(base: type[PravegaError] = PravegaError) -> Iterator[type[PravegaError]]:
    """A class of errors and all that are derived from it, without those that have no code of their own."""
    if "code" in vars(base):
        yield base
    for each in base.__subclasses__():
        yield from kinds(each)


def explained(kind: type[PravegaError]) -> tuple[str, str, str]:
    """What an error says, its cause and its fix. Raises ValueError where the docstring lacks one of them."""
    paragraphs = [" ".join(each.split()) for each in (inspect.getdoc(kind) or "").split("\n\n")]
    found = {
        name: each.removeprefix(f"{name}: ")
        for name in ("Cause", "Fix")
        for each in paragraphs
        if each.startswith(name)
    }
    if not paragraphs[0] or found.keys() != {"Cause", "Fix"}:
        raise ValueError(f"the docstring of {kind.__name__} has to say what it is, its Cause and its Fix")
    return tuple(map(_as_markdown, (paragraphs[0], found["Cause"], found["Fix"])))  # type: ignore[return-value]


def _as_markdown(text: str) -> str:
    text = re.sub(
        r"docs/([a-z-]+)/([a-z-]+)\.md",
        lambda page: f"[{page[2].replace('-', ' ')}](../{page[1]}/{page[2]}.md)",
        text.replace("``", "`"),
    )
    return text[0].upper() + text[1:] if text[0].isalpha() else text


def _row(kind: type[PravegaError]) -> str:
    base = "".join(f", a `{each.__name__}`" for each in kind.__bases__ if each is not Exception)
    text = explained(kind)[0].rstrip(".")
    again = "yes" if kind.retriable else ""
    code = int(exit_code(kind.__new__(kind)))
    link = f"[`{kind.code}`](#{kind.code.lower()})"
    return f"| {link} | `{kind.__name__}`{base} | {text} | {kind.fault} | {again} | {code} |"


def _section(kind: type[PravegaError]) -> str:
    text, cause, fix = explained(kind)
    return f"\n### {kind.code}\n\n{text}\n\n- **Cause.** {cause}\n- **Fix.** {fix}\n"
