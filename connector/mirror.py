"""Mirrors of streams: the public names of :mod:`pravega_connector.mirror`."""

from functools import partial
from typing import TYPE_CHECKING

import pravega_connector.mirror as real

if TYPE_CHECKING:
    from pravega_connector.mirror import *
else:
    __getattr__ = partial(getattr, real)
    __dir__ = partial(dir, real)
