"""Tables that notebooks show for what is in this package."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from itertools import islice

#: Rows that are shown; how many more there are is said.
_SHOWN = 20
_LONGEST = 120


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]], count: int) -> str:
    """Return HTML of a table with ``count`` rows; it shows the first ones."""
    shown = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in islice(rows, _SHOWN))
    more = f'<tr><td colspan="{len(head)}">… {count - _SHOWN:,} more</td></tr>' if count > _SHOWN else ""
    titles = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    return f"<table><caption>{html.escape(caption)}</caption><tr>{titles}</tr>{shown}{more}</table>"


def _cell(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td style="text-align:right">{value:,}</td>'
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    return f"<td>{html.escape(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…')}</td>"
