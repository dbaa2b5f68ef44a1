"""Exactly-once protocols: batches of the Spark sink, and work that proceeds in steps."""
