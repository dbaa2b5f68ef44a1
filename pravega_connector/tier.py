"""Streams as tables of a lake: the public names of :mod:`pravega_connector.operations.tier`."""

from functools import partial
from typing import TYPE_CHECKING

import pravega_connector.operations.tier as real

if TYPE_CHECKING:
    from pravega_connector.operations.tier import *
else:
    __getattr__ = partial(getattr, real)
    __dir__ = partial(dir, real)
