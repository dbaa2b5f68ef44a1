"""Tests that are loops over data: one test for all cases, which reports every failed case."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

__all__ = ["each_case"]

_SHOWN = 20


def each_case(cases: Iterable[tuple[str, Any]], check: Callable[[Any], object]) -> None:
    """Run ``check`` with every case, and fail at the end with the names and errors of the failed ones.

    It also fails without cases, so that missing data does not pass.
    """
    count, failed = 0, []
    for name, case in cases:
        count += 1
        try:
            check(case)
        # pytest.raises fails with the second one.
        except (Exception, pytest.fail.Exception) as error:
            failed.append(f"{name}: {type(error).__name__}: {str(error)[:500]}")
    assert count, "there are no cases"
    more = [f"... and {len(failed) - _SHOWN} more"] if len(failed) > _SHOWN else []
    assert not failed, "\n".join([f"{len(failed)} of {count} cases failed:", *failed[:_SHOWN], *more])
