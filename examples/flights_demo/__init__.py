"""Flights through Pravega and Spark and back: three programs, and one that starts and checks them.

``produce`` and ``collect`` know no Spark; ``aggregate`` is the Spark job between them. Each can be run on its own.
"""
