"""Comparison of the serializers with other libraries and Java: ``python -m benchmarks serde``."""

from benchmarks.serde._run import run_serde

__all__ = ["run_serde"]
