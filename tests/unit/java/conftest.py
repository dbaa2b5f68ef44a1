"""Columns of few rows go by column here, or most tests of the columnar paths would look at the rows twice."""

from collections.abc import Iterator
from unittest import mock

import pytest

from pravega_serde.columnar import base


@pytest.fixture(autouse=True, scope="module")
def always_by_column() -> Iterator[None]:
    """See :data:`pravega_serde.columnar.base.FEW_ROWS`."""
    with mock.patch.object(base, "FEW_ROWS", 0):
        yield
