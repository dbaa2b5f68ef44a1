"""Export of streams to files: the public names of :mod:`pravega_connector.operations.export`."""

from functools import partial
from typing import TYPE_CHECKING

import pravega_connector.operations.export as real

if TYPE_CHECKING:
    from pravega_connector.operations.export import *
else:
    __getattr__ = partial(getattr, real)
    __dir__ = partial(dir, real)
