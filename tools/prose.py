"""Check the language of pages, docstrings, comments and messages: ``python -m tools.prose [PATH]...``.

Each finding names the place, the phrase and its replacement. The rules follow CONTRIBUTING.md: the field's words, one
idea in a sentence, and words as link labels. ``--count`` prints the number of findings per path.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Finding", "findings_in", "main"]

_ROOT: Final = Path(__file__).resolve().parents[1]
_LONGEST: Final = 32  # words of a sentence; most should have at most 20
_MESSAGE: Final = 5  # words of a string that is a message

#: Phrase -> its replacement. Phrases are regular expressions; upper and lower case are equal.
PHRASES: Final = {
    r"mend(s|ed|ing)?": "fix, recover",
    r"(go|goes|went|going) on\b(?! to)": "continue, resume",
    r"begins? again": "restart",
    r"anew": "again, recreate",
    r"whoever|whatever": "name the actor or thing",
    r"somebody|everybody|nobody": "name the actor",
    r"meanwhile": "in the meantime, or drop it",
    r"beforehand": "first, or drop it",
    r"beside": "next to, in addition to, compared with",
    r"(is|are|was|were) told|tells? (of|how|what|which|that)": "report, return; see",
    r"(is|are|was|were) (gone|away)": "was deleted, is unavailable",
    r"data (are|go|have|were)": "data is, or: events are",
    r"of (which|whom)": "split the sentence",
    r"of (its|their|one's|your|our) own": "its own, a separate",
    r"so many|so long as|for so long": "N; while",
    r"its like|a kind of its": "similar, related",
    r"cannot be right": "is invalid",
    r"stands? (in|beside|for|at|there|behind)|lies? (in|beside|behind|between|beyond)": "is in, is after",
    r"a look|looks? (every|at it|for new)": "a check; polls",
    r"(in )?trouble": "outage, error, unreachable",
    r"(gives|given) (by|a|an|the|what)": "return, pass",
    r"makes? of|made of (it|them|a)": "map, build",
    r"the way of (an?|the)": "path",
    r"(was|were|been) tried": "tested",
    r"where it stands|as it stands": "position, or drop it",
    r"holds? good|for good": "permanently",
    r"knows? of|says? of|says? so": "know, report",
    r"takes? for|taken for": "treat as",
    r"none of (its|their|them)": "no …",
    r"hitherto|thereby|therein|thereof|wherein": "drop it",
}


def _spaced(phrase: str) -> str:
    """Return the phrase so that it matches across a line break."""
    return phrase.replace(" ", r"\s+")


_PHRASES: Final = re.compile(
    "|".join(rf"(?P<p{number}>\b(?:{_spaced(phrase)})\b)" for number, phrase in enumerate(PHRASES)), re.IGNORECASE
)
_REPLACEMENTS: Final = tuple(PHRASES.values())
_QUESTION_WORD: Final = re.compile(r"(What|Whose|Whether|Who)\b")
_FILE_LABEL: Final = re.compile(r"\[`?([\w/-]+\.md)`?\]\(")
_CODE: Final = re.compile(r"``.+?``|`[^`\n]+`|:\w+:`[^`]+`|https?://\S+|(?<=\])\([^)\s]*\)")
_WORDS: Final = re.compile(r"[^\W\d_][\w'’-]*")


@dataclass(frozen=True, slots=True)
class Finding:
    """A place, and what to write there instead."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def findings_in(path: Path, source: str) -> Iterator[Finding]:
    """Findings in a Markdown page or a Python module, in the order of their lines."""
    # Strings of tests are data, and strings of this file are phrases.
    messages = path.parts[0] != "tests" and path.name != Path(__file__).name
    blocks = _page(source) if path.suffix == ".md" else sorted(_module(source, messages=messages))
    for line, text, is_docstring in blocks:
        plain = _CODE.sub("x", text)
        for found in _PHRASES.finditer(plain):
            number = int((found.lastgroup or "p0")[1:])
            at = line + plain.count("\n", 0, found.start())
            yield Finding(path, at, f"{' '.join(found[0].split())!r}: {_REPLACEMENTS[number]}")
        for found in _FILE_LABEL.finditer(text):
            yield Finding(path, line + text.count("\n", 0, found.start()), f"link label {found[1]}: write words")
        if is_docstring and _QUESTION_WORD.match(plain):
            yield Finding(path, line, "begin a docstring with a verb or with the noun that the thing is")
        for sentence in re.split(r"(?<=[.!?:;])\s+|\n\s*\n", plain):
            words = _WORDS.findall(sentence)
            is_list = all(word[0].isupper() or word == "x" for word in words)  # of names, or of code, which is x
            if len(words) > _LONGEST and not is_list:
                at = line + plain.count("\n", 0, plain.index(sentence))
                yield Finding(path, at, f"a sentence of {len(words)} words: split it")
        if any(paragraph.count(";") > 1 for paragraph in re.split(r"\n\s*\n", plain)):
            yield Finding(path, line, "more than one semicolon in a paragraph: use sentences or a list")


def _page(source: str) -> Iterator[tuple[int, str, bool]]:
    """Paragraphs, items and cells of a page, without code blocks."""
    start, lines, in_code = 0, list[str](), False
    for number, each in enumerate([*source.splitlines(), ""], 1):
        if each.lstrip().startswith("```"):
            in_code = not in_code
        begins = re.match(r"\s*([-*|#>]|\d+\.) ?|\s*```|$", each)
        if lines and (begins or in_code):
            yield start, "\n".join(lines), False
            lines = []
        if in_code or not each.strip() or each.lstrip().startswith("```"):
            continue
        if each.lstrip().startswith("|"):
            yield from ((number, cell, False) for cell in each.split("|"))
            continue
        if not lines:
            start = number
        lines.append(each)


def _module(source: str, *, messages: bool) -> Iterator[tuple[int, str, bool]]:
    """Docstrings, comments and, if ``messages``, the longer strings of a module."""
    tree = ast.parse(source)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text is not None:
                constant = node.body[0].value  # type: ignore[attr-defined]
                docstrings.add(constant)
                yield from _docstring(constant.lineno, text)
    for node in ast.walk(tree) if messages else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            text = node.value
            if "\n" not in text and len(_WORDS.findall(text)) >= _MESSAGE:
                yield node.lineno, text, False
    start, lines = 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and "noqa" not in token.string:
            if not lines:
                start = token.start[0]
            lines.append(token.string.lstrip("#: "))
        elif lines and token.type not in (tokenize.NL, tokenize.NEWLINE):
            yield start, "\n".join(lines), False
            lines = []


def _docstring(line: int, text: str) -> Iterator[tuple[int, str, bool]]:
    """Paragraphs and items of a docstring, and the cells of its tables, without literal blocks."""
    margin = None  # columns before the paragraph that ended with "::"
    for number, each in enumerate(re.split(r"\n[ ]*\n|\n(?=[ ]*- )", text)):
        columns = len(each) - len(each.lstrip())
        if margin is not None and columns > margin:
            pass
        elif each.lstrip().startswith(("|", "===")):
            for below, row in enumerate(each.splitlines()):
                yield from ((line + below, cell, False) for cell in re.split(r"\||[ ]{2,}", row))
        else:
            yield line, each, number == 0
        if margin is None or columns <= margin:
            margin = columns if each.endswith("::") else None
        line += each.count("\n") + (2 if f"{each}\n\n" in text else 1)


def _files(paths: list[Path]) -> Iterator[Path]:
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *map(str, paths)],
        cwd=_ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    for name in names:
        path = Path(name)
        if path.suffix in (".md", ".py") and not path.name.endswith("_pb2.py") and (_ROOT / path).is_file():
            yield path


def main() -> int:
    """Print the findings below the paths; 1 if there is any."""
    parser = argparse.ArgumentParser(prog="python -m tools.prose", description=__doc__)
    parser.add_argument(
        "paths", nargs="*", type=Path, help="files or folders; without one, those that ./run check checks"
    )
    parser.add_argument("--count", action="store_true", help="print the number of findings per path")
    arguments = parser.parse_args()
    paths = [path.resolve().relative_to(_ROOT) for path in arguments.paths] or [Path(name) for name in CHECKED]
    found = [finding for path in _files(paths) for finding in findings_in(path, (_ROOT / path).read_text("utf-8"))]
    if not arguments.paths:
        pending = {finding.path for finding in found if str(finding.path) in PENDING}
        found = [finding for finding in found if finding.path not in pending]
        found += [
            Finding(Path(name), 1, "is revised: take it out of PENDING")
            for name in sorted(PENDING)
            if Path(name) not in pending
        ]
    if arguments.count:
        for path, count in Counter(finding.path for finding in found).most_common():
            print(f"{count:6} {path}")
        print(f"{len(found):6} findings")
        return 0
    for finding in found:
        print(finding)
    return 1 if found else 0


#: Paths that ./run check checks.
CHECKED: Final = (
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "connector",
    "benchmarks/results",
    "docs",
    "pravega_connector",
    "pravega_serde",
    "pyspark_pravega",
    "tests",
    "tools",
)
#: Files that are not revised yet, most of them for a runtime message. A file with no finding must not be here.
PENDING: Final = frozenset(
    (
        "benchmarks/results/cluster-faults.md",
        "pravega_serde/atomic_file.py",
        "pravega_connector/operations/cli/recover.py",
        "pravega_connector/operations/cli/registry.py",
        "pravega_connector/controller/methods.py",
        "pravega_connector/local/download.py",
        "pravega_connector/spark/sql_tables.py",
        "pravega_connector/spark/source/data_loss.py",
        "pravega_serde/java/jdk_classes.py",
    )
)

if __name__ == "__main__":
    sys.exit(main())
