"""Java object streams, read and written without Java (``io.pravega.client.stream.impl.JavaSerializer``)."""
