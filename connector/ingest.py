"""Exactly-once ingestion: the public names of :mod:`pravega_connector.ingest`."""

from functools import partial
from typing import TYPE_CHECKING

import pravega_connector.ingest as real

if TYPE_CHECKING:
    from pravega_connector.ingest import *
else:
    __getattr__ = partial(getattr, real)
    __dir__ = partial(dir, real)
