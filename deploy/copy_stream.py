"""A Spark job: copies a stream to another one, exactly once, until it is stopped; with ``--once``, what is there now.

    spark-submit … copy_stream.py shop/orders shop/copy --checkpoint /checkpoints/copy

Where the servers are, and who asks, comes from the environment of the driver: ``PRAVEGA_CONTROLLER_URI`` and so on.
"""

import argparse

from pyspark.sql import SparkSession


def main() -> None:
    """Run the query."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="SCOPE/SOURCE")
    parser.add_argument("target", metavar="SCOPE/TARGET")
    parser.add_argument("--checkpoint", required=True, help="folder that outlives the driver")
    parser.add_argument("--rows", type=int, default=100_000, help="at most, of a batch")
    parser.add_argument("--once", action="store_true", help="end when all is copied that is there now")
    arguments = parser.parse_args()

    spark = SparkSession.builder.appName(f"{arguments.source} to {arguments.target}").getOrCreate()
    events = (
        spark.readStream.format("pravega")
        .option("start_stream_cut", "earliest")
        .option("max_rows_per_trigger", arguments.rows)
        .load(arguments.source)
    )
    # Events of a segment keep their order under one key: the keys that they were written with are not in the stream.
    keyed = events.selectExpr("event", "CAST(segment_id AS STRING) AS routing_key")
    writer = (
        keyed.writeStream.format("pravega")
        .option("allow_create_stream", "true")
        .option("checkpointLocation", arguments.checkpoint)
    )
    trigger = {"availableNow": True} if arguments.once else {"processingTime": "1 second"}
    writer.trigger(**trigger).start(arguments.target).awaitTermination()


if __name__ == "__main__":
    main()
