"""JSON text, byte for byte as Jackson writes it."""

from pravega_serde.json._serializer import JsonSerializer

__all__ = ["JsonSerializer"]
