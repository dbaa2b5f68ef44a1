"""Lines of standard input, files and TCP connections as events, as in :mod:`pravega_connector.pipe`."""

from functools import partial
from typing import TYPE_CHECKING

import pravega_connector.pipe as real

if TYPE_CHECKING:
    from pravega_connector.pipe import *
else:
    __getattr__ = partial(getattr, real)
    __dir__ = partial(dir, real)
