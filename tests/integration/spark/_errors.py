"""Our errors in what Spark shows."""

import pytest


def one_line(error: pytest.ExceptionInfo[BaseException], code: str) -> str:
    """The last line that has a code."""
    lines = [line for line in str(error.value).splitlines() if f"[{code}]" in line]
    assert lines, f"no {code} in: {error.value}"
    return lines[-1]
