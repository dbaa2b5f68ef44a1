"""Mirrors of streams: the public names of :mod:`pravega_connector.operations.mirror`."""

from functools import partial
from typing import TYPE_CHECKING

import pravega_connector.operations.mirror as real

if TYPE_CHECKING:
    from pravega_connector.operations.mirror import *
else:
    __getattr__ = partial(getattr, real)
    __dir__ = partial(dir, real)
