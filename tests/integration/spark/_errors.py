"""Our errors in what Spark shows."""

import re

import pytest


def one_line(error: pytest.ExceptionInfo[BaseException], code: str) -> str:
    """The last line that has a code."""
    lines = [line for line in str(error.value).splitlines() if f"[{code}]" in line]
    assert lines, f"no {code} in: {error.value}"
    return lines[-1]


def last_and_once(error: pytest.ExceptionInfo[BaseException], code: str) -> str:
    """The line with a code, which is the last one but for Spark's state, and the only one of ours."""
    text = str(error.value).partition("\n=== Streaming Query")[0]
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(" SQLSTATE")]
    assert f"[{code}]" in lines[-1], f"no {code} at the end of: {error.value}"
    assert text.count("[PRAVEGA-") == 1, text
    # Spark shows the one place that it called; what lies beneath says nothing to a user.
    places = re.findall(r"pravega_connector/([\w/]+)\.py", text)
    assert len(places) <= 1, f"places in the code: {text}"
    assert all(place.startswith("spark/") for place in places), text
    return lines[-1]
