"""Spark data source ``pravega``: source, sink, their options, and column functions."""
