"""Events of one size, for tests that count bytes."""

from pravega_connector.client import PravegaClient, StreamCut
from pravega_connector.wire import StreamName

SIZE = 100  # of an event with its header


def write_events(client: PravegaClient, stream: StreamName, count: int) -> StreamCut:
    """Write this many events of SIZE bytes with their headers, each with its own key; the tail after them."""
    with client.writer(stream) as writer:
        for i in range(count):
            writer.write(b".".ljust(SIZE - 8), routing_key=str(i))
    return client.tail(stream)
