"""The Spark data source ``pravega``: its source, its sink, their options, and column functions."""
