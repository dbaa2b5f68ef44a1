"""Errors: the public names of :mod:`pravega_connector.errors`."""

from functools import partial
from typing import TYPE_CHECKING

import pravega_connector.errors as real

if TYPE_CHECKING:
    from pravega_connector.errors import *
else:
    __getattr__ = partial(getattr, real)
    __dir__ = partial(dir, real)
