"""Comparisons with the other Pravega clients and connectors: see ``python -m benchmarks --help``."""
