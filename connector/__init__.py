"""Short name of the package :mod:`pravega_connector`: the same objects, and its public modules under short names.

A user's own ``connector.py`` next to a script hides this package. Write ``pravega_connector`` where that can happen.
"""

from functools import partial
from typing import TYPE_CHECKING

import pravega_connector

if TYPE_CHECKING:
    from pravega_connector import *
else:
    __all__ = pravega_connector.__all__
    __getattr__ = partial(getattr, pravega_connector)
    __dir__ = partial(dir, pravega_connector)
