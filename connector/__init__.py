"""A segment-level Pravega client in Python, and Spark's source and sink on it."""

__all__: list[str] = []
