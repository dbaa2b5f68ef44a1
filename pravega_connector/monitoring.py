"""Lag, scaling history and stream cuts: the public names of :mod:`pravega_connector.operations.monitoring`."""

from functools import partial
from typing import TYPE_CHECKING

import pravega_connector.operations.monitoring as real

if TYPE_CHECKING:
    from pravega_connector.operations.monitoring import *
else:
    __getattr__ = partial(getattr, real)
    __dir__ = partial(dir, real)
