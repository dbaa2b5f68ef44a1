"""Events as rows of columns, without Spark: options, encoding, decoding, positions and target streams.

Spark's source and sink, ingestion, export and the command line share it. It imports no ``pyspark``, except for the two
functions that convert to Spark's types.
"""
