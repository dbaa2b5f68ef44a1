"""Parts that the whole client uses: deadlines, retries, blocking operations, connections, arguments and values."""
