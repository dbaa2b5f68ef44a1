"""The program in docs/serialization/serializers.md does what it says, and the page names what there is."""

import re
from pathlib import Path

from pravega_serde import formats

PAGE = Path(__file__).parents[3] / "docs" / "serialization/serializers.md"


def test_the_examples_run_as_they_stand() -> None:
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    exec(compile(program, str(PAGE), "exec"), {"__name__": "serializers_page"})


def test_every_format_has_its_line() -> None:
    text = PAGE.read_text()
    table = text[text.index("## Formats") : text.index("### Values")]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == list(formats())
