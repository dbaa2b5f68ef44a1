"""Export of streams to files: the public names of :mod:`pravega_connector.export`."""

from functools import partial
from typing import TYPE_CHECKING

import pravega_connector.export as real

if TYPE_CHECKING:
    from pravega_connector.export import *
else:
    __getattr__ = partial(getattr, real)
    __dir__ = partial(dir, real)
