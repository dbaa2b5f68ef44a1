"""Metrics: the public names of :mod:`pravega_connector.metrics`."""

from functools import partial
from typing import TYPE_CHECKING

import pravega_connector.metrics as real

if TYPE_CHECKING:
    from pravega_connector.metrics import *
else:
    __getattr__ = partial(getattr, real)
    __dir__ = partial(dir, real)
