"""The client for asyncio. It needs the extra ``async``."""

from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.aio.objects import AsyncLeaseKeeper

__all__ = ["AsyncLeaseKeeper", "AsyncPravegaClient"]
