"""Configuration of a cluster: the public names of :mod:`pravega_connector.config`."""

from functools import partial
from typing import TYPE_CHECKING

import pravega_connector.config as real

if TYPE_CHECKING:
    from pravega_connector.config import *
else:
    __getattr__ = partial(getattr, real)
    __dir__ = partial(dir, real)
