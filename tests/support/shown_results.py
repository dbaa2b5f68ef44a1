"""Run a block of Python from a page, and compare the results that its comments show.

A statement that is directly followed by comment lines in its column, or an expression with a comment on its last line,
shows its result: standard output, or the representation of an expression's value. ``...`` matches any text, and white
space is normalized. The comment is an explanation if the statement prints nothing, and if the comment is not a literal.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import tokenize
from collections.abc import Iterator
from typing import Any, Final

__all__ = ["run"]

_OPTIONS: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_NAME: Final = "__shown_results__"
#: Calls that print: a comment after them is always a result.
_PRINTS: Final = frozenset({"print", "pprint", "show", "printSchema"})


def run(text: str, page: str, line: int, names: dict[str, Any]) -> None:
    """Execute ``text``, which begins after ``line`` of ``page``, with ``names`` as its global names.

    Raises AssertionError if a shown result differs from the actual one, and any error of the block.
    """
    tree = ast.parse("\n" * line + text, page)
    results = _Results(page)
    _insert(tree, _comments(text, line))
    names[_NAME] = results
    try:
        with contextlib.redirect_stdout(results.output):
            # This module's `from __future__ import annotations` does not apply to a page.
            exec(compile(ast.fix_missing_locations(tree), page, "exec", dont_inherit=True), names)
    finally:
        del names[_NAME]


class _Results:
    """Standard output of a block, and the comparison of parts of it."""

    def __init__(self, page: str) -> None:
        self.page = page
        self.output = io.StringIO()
        self._begun: dict[int, int] = {}

    def begin(self, number: int) -> None:
        self._begun[number] = self.output.tell()

    def end(self, number: int, shown: str, prints: bool, value: object = None) -> object:
        actual = self.output.getvalue()[self._begun[number] :]
        if not (actual or prints):
            if value is None or not _is_representation(shown, value):
                return value
            actual = repr(value)
        if not doctest.OutputChecker().check_output(shown + "\n", actual.rstrip() + "\n", _OPTIONS):
            raise AssertionError(f"{self.page}:{number} shows\n{shown}\nand the result is\n{actual}")
        return value


def _is_representation(shown: str, value: object) -> bool:
    return (
        shown[0] in "[({<'\"-0123456789" or shown in ("True", "False") or shown.startswith(f"{type(value).__name__}(")
    )


def _comments(text: str, line: int) -> dict[int, tuple[int, str, bool]]:
    """Return column, text and whether the line has nothing else, for each comment by its line in the page."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {
        token.start[0] + line: (token.start[1], token.string[1:].strip(), token.line.lstrip().startswith("#"))
        for token in tokens
        if token.type == tokenize.COMMENT
    }


def _shown(statement: ast.stmt, comments: dict[int, tuple[int, str, bool]]) -> str | None:
    last = statement.end_lineno or statement.lineno
    if isinstance(statement, ast.Expr) and last in comments:
        return comments[last][1]
    lines = []
    while (comment := comments.get(last + 1)) and comment[2] and comment[0] == statement.col_offset:
        lines.append(comment[1])
        last += 1
    return "\n".join(lines) or None


def _insert(tree: ast.AST, comments: dict[int, tuple[int, str, bool]]) -> None:
    """Insert a comparison after each statement that shows a result."""
    for node in ast.walk(tree):
        for body in _bodies(node):
            found: list[ast.stmt] = []
            for statement in body:
                shown = _shown(statement, comments)
                if shown is None or not isinstance(statement, ast.Expr | ast.For | ast.AsyncFor | ast.While | ast.With):
                    found.append(statement)
                    continue
                begin = _call("begin", statement, ast.Constant(statement.lineno))
                prints = any(isinstance(each, ast.Call) and _called(each) in _PRINTS for each in ast.walk(statement))
                end = [ast.Constant(statement.lineno), ast.Constant(shown), ast.Constant(prints)]
                if isinstance(statement, ast.Expr):
                    found += [begin, _call("end", statement, *end, statement.value)]
                else:
                    found += [begin, statement, _call("end", statement, *end)]
            body[:] = found


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if isinstance(body, list):
            yield body


def _call(method: str, at: ast.stmt, *arguments: ast.expr) -> ast.stmt:
    function = ast.Attribute(ast.Name(_NAME, ast.Load()), method, ast.Load())
    return ast.copy_location(ast.Expr(ast.Call(function, list(arguments), [])), at)


def _called(call: ast.Call) -> str:
    function = call.func
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
