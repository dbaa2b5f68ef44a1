"""Lines: the records are the same with any blocks."""

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.errors import BadRecordError
from pravega_connector.operations.ingest import lines as module
from pravega_connector.operations.ingest.lines import lines_of


class Blocks(io.BytesIO):
    """File that is read in blocks of up to ``block`` bytes."""

    def __init__(self, data: bytes, block: int = 1 << 20):
        super().__init__(data)
        self.block = block

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self.block if size is None or size < 0 else min(size, self.block))


def records(data: bytes, block: int = 1 << 20, **how: bool) -> list[tuple[int, str]]:
    found = []
    for lines in lines_of(Blocks(data, block), "file", **how):
        found += [(int(lines.lines[row]), lines.text(row)) for row in range(len(lines))]
    return found


ends = st.sampled_from(["\n", "\r\n"])
plain = st.text(st.characters(codec="utf-8", exclude_characters='\r\n"'), max_size=8)


@given(st.lists(st.tuples(plain, ends)), plain, st.integers(1, 12))
def test_lines_are_those_of_the_text(lines: list[tuple[str, str]], last: str, block: int):
    text = "".join(line + end for line, end in lines) + last
    expected = list(enumerate([line for line, _ in lines] + ([last] if last else []), 1))
    assert records(text.encode(), block, blanks=True) == expected
    assert records(text.encode(), block) == [(number, line) for number, line in expected if line]
    returns = text.replace("\r\n", "\n").replace("\n", "\r").encode()
    assert records(returns, block, blanks=True, returns=True) == expected
    assert records(text.encode(), block, blanks=True, returns=True) == expected


fields = st.text(st.sampled_from('ab,"\n'), max_size=5)


@given(st.lists(st.lists(fields, min_size=2, max_size=3), min_size=1), st.integers(1, 12))
def test_line_ends_inside_quotes_end_no_record(rows: list[list[str]], block: int):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    found = records(out.getvalue().encode(), block, quotes=True)
    assert [next(csv.reader(io.StringIO(text, newline=""))) for _, text in found] == rows
    lines = [1 + "\n".join(text for _, text in found[:row]).count("\n") + bool(row) for row in range(len(found))]
    assert [number for number, _ in found] == lines


def test_a_record_without_end_is_an_error_and_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MAX_RECORD", 1000)
    with pytest.raises(BadRecordError, match="file, line 2: a record of more than 1000 bytes"):
        records(b'a\n"' + b"x\n" * 2000, 100, quotes=True)


@pytest.mark.parametrize("returns", [False, True])
def test_the_bytes_of_a_long_record_are_searched_once(monkeypatch: pytest.MonkeyPatch, returns: bool):
    data = b'a,"' + b"x,\n" * 3000
    searched = []
    for name in ("_record_ends", "_line_end"):
        search = getattr(module, name)

        def counted(part: bytes, *arguments: object, search: Any = search, **named: object) -> object:
            searched.append(len(part))
            return search(part, *arguments, **named)

        monkeypatch.setattr(module, name, counted)
    assert records(data + b'"\nb', 100, quotes=True, returns=returns) == [(1, (data + b'"').decode()), (3002, "b")]
    assert sum(searched) <= 4 * len(data)
