"""Comparisons with the other Pravega clients and connectors; ``python -m benchmarks --help`` says more."""
