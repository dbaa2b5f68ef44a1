"""Exactly-once ingestion: the public names of :mod:`pravega_connector.operations.ingest`."""

from functools import partial
from typing import TYPE_CHECKING

import pravega_connector.operations.ingest as real

if TYPE_CHECKING:
    from pravega_connector.operations.ingest import *
else:
    __getattr__ = partial(getattr, real)
    __dir__ = partial(dir, real)
