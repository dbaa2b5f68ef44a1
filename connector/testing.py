"""In-process servers for tests: the public names of :mod:`pravega_connector.testing`."""

from functools import partial
from typing import TYPE_CHECKING

import pravega_connector.testing as real

if TYPE_CHECKING:
    from pravega_connector.testing import *
else:
    __getattr__ = partial(getattr, real)
    __dir__ = partial(dir, real)
