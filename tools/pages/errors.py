"""``docs/errors.md``: every error with its code, base classes before what is derived from them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from connector import errors as of_connector
from connector.cli.exit_codes import exit_code
from pravega_serde import errors as of_serializers
from pravega_serde.errors import PravegaError

_HEAD = """\
# Errors

Made by `python -m tools.pages` from the classes. The text of an error is one line and begins with the code:
`[PRAVEGA-STREAM-NOT-FOUND] stream demo/fligths does not exist: …`. Codes are stable; where an error comes through
Spark, the text is all that is left of it. `except ControllerError` takes what is derived from it as well.

`fault` says whose it is: the caller's or the machine's (local), the server's or the network's (remote), or the events'
(data). `retriable`: the same call may succeed later; a client has tried again itself until its time was up. `exit` is
the code with which a command of `pravega-serde` ends: [cli.md](cli.md).
"""
_SECTIONS = {"Serializers and the schema registry": of_serializers, "Client, Spark, ingestion, servers": of_connector}


def page(_: str) -> str:
    """The whole page."""
    parts = [_HEAD]
    for title, module in _SECTIONS.items():
        rows = [_row(kind) for kind in _derived(PravegaError) if inspect.getmodule(kind) is module]
        head = ["| code | class | what it says | fault | retriable | exit |", "|---|---|---|---|---|--:|"]
        parts.append("\n".join(["", f"## {title}", "", *head, *rows, ""]))
    return "".join(parts)


def _derived(kind: type[PravegaError]) -> Iterator[type[PravegaError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _derived(each)


def _row(kind: type[PravegaError]) -> str:
    base = "".join(f", a `{each.__name__}`" for each in kind.__bases__ if each is not Exception)
    text = " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split()).rstrip(".").replace("``", "`")
    again = "yes" if kind.retriable else ""
    code = int(exit_code(kind.__new__(kind)))
    return f"| `{kind.code}` | `{kind.__name__}`{base} | {text} | {kind.fault} | {again} | {code} |"
