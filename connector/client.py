"""The Pravega client: the public names of :mod:`pravega_connector.client`."""

from functools import partial
from typing import TYPE_CHECKING

import pravega_connector.client as real

if TYPE_CHECKING:
    from pravega_connector.client import *
else:
    __getattr__ = partial(getattr, real)
    __dir__ = partial(dir, real)
