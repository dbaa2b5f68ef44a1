"""The check of the language finds what it names, at its line, and nothing in code."""

from pathlib import Path

import pytest

from tools.prose import CHECKED, PENDING, PHRASES, findings_in

PAGE = Path("page.md")
MODULE = Path("module.py")


def found(path, text):
    return [(each.line, each.text) for each in findings_in(path, text)]


def test_phrases_of_a_page_have_their_line_and_replacement():
    text = "# Title\n\nThe query\ngoes\non with it.\n\n- Mend it.\n\n| a | who is in trouble |\n"
    assert found(PAGE, text) == [
        (4, "'goes on': continue, resume"),
        (7, "'Mend': fix, recover"),
        (9, "'in trouble': outage, error, unreachable"),
    ]


def test_code_is_left_out():
    assert found(PAGE, "Call `x.goes on` now.\n\n```python\n# it goes on anew; a; b\n```\n") == []
    assert found(MODULE, '"""Call ``goes on`` now."""\nanew = "goes on"\n') == []
    assert found(MODULE, '"""Bytes::\n\n    it goes on\n\n    a; b; c\n"""\n') == []
    assert found(MODULE, '"""Bytes::\n\n    it goes on\n\nIt goes on.\n"""\n') == [(5, "'goes on': continue, resume")]


def test_docstrings_comments_and_messages_of_a_module():
    text = '"""What it does."""\n\n# it goes\n# on\nx = 1\nraise ValueError(f"the file {x} was not there, made anew")\n'
    assert found(MODULE, text) == [
        (1, "begin a docstring with a verb or with the noun that the thing is"),
        (3, "'goes on': continue, resume"),
        (6, "'anew': again, recreate"),
    ]


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("The " + "word " * 32 + ".", "a sentence of 33 words: split it"),
        ("See [operations.md](operations.md).", "link label operations.md: write words"),
        ("One; two; three.", "more than one semicolon in a paragraph: use sentences or a list"),
    ],
)
def test_other_rules(text, finding):
    assert found(PAGE, text) == [(1, finding)]


def test_a_list_of_names_is_no_sentence():
    assert found(PAGE, "Writer " * 33 + ".") == []


def test_rules_have_a_replacement_and_paths_exist():
    assert all(PHRASES.values())
    assert all((Path(__file__).parents[2] / path).exists() for path in (*CHECKED, *PENDING))
