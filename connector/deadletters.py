"""The dead-letter queue: the public names of :mod:`pravega_connector.deadletters`."""

from functools import partial
from typing import TYPE_CHECKING

import pravega_connector.deadletters as real

if TYPE_CHECKING:
    from pravega_connector.deadletters import *
else:
    __getattr__ = partial(getattr, real)
    __dir__ = partial(dir, real)
