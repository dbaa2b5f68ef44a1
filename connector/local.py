"""Local Pravega servers: the public names of :mod:`pravega_connector.local`."""

from functools import partial
from typing import TYPE_CHECKING

import pravega_connector.local as real

if TYPE_CHECKING:
    from pravega_connector.local import *
else:
    __getattr__ = partial(getattr, real)
    __dir__ = partial(dir, real)
