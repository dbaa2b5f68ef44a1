"""Flights written to Pravega, aggregated by Spark, and read back: three programs, and one that runs and checks them.

``produce`` and ``collect`` do not use Spark. ``aggregate`` is the Spark job between them. Each can run separately.
"""
