"""Results in the comments of a page are compared with what its code returns and prints."""

import textwrap

import pytest

from tests.support.shown_results import run


@pytest.mark.parametrize(
    "block",
    [
        "1 + 1  # 2",
        "print('a b')\n# a  b",
        "[1, 2, 3]  # [1, ..., 3]",
        "for each in (1, 2):\n    print(each)\n# 1\n# 2",
        "with open('/dev/null') as file:\n    print(file.read() or 'empty')\n    # empty",
        "x = 1  # an explanation",
        "(1).bit_length()  # an explanation: no literal",
        "[].append(1)  # an explanation: there is no result",
        "import asyncio\nasync def main():\n    print(await asyncio.sleep(0, 5))\n    # 5\nasyncio.run(main())",
        "'a'\n\n# An explanation after an empty line.",
    ],
)
def test_right_results_pass(block: str):
    run(block, "page.md", 3, {})


@pytest.mark.parametrize(
    "block",
    [
        "1 + 1  # 3",
        "1 == 1  # False",
        "__import__('fractions').Fraction(1)  # Fraction(2, 1)",
        "print('a')\n# b",
        "for each in ():\n    print(each)\n# 1",
        "if True:\n    print('a')\n    # b",
        "print('a')\n# a\n# b",
    ],
)
def test_wrong_results_fail(block: str):
    with pytest.raises(AssertionError, match=r"page\.md:\d"):
        run(block, "page.md", 3, {})


def test_names_and_lines_are_those_of_the_page():
    names = {"start": 1}
    run("more = start + 1", "page.md", 3, names)
    assert names["more"] == 2
    with pytest.raises(ZeroDivisionError) as raised:
        run(textwrap.dedent("more\n# 2\n1 / 0"), "page.md", 3, names)
    assert raised.traceback[-1].lineno == 5
    assert set(names) == {"start", "more", "__builtins__"}
