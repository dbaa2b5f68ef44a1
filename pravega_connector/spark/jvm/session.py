"""Set-up of the JVM reader in a Spark session."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.versions import jvm_reader_obstacle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pravega_connector.spark.jvm.planner import Planner

#: The compiled reader. A checkout or wheel that was built without a Java compiler does not have it.
JAR: Final = Path(__file__).with_name("pravega-reader.jar")

_log: Final = logging.getLogger(__name__)
_planner: Planner | None = None  # one for the driver: its JVM has one place for it


def use_jvm_reader(spark: SparkSession, source: type[PravegaDataSource] = PravegaDataSource) -> bool:
    """Read raw events inside the JVM in this session, and return True. ``source`` has the session's default options.

    Return False, and log the reason, if only the Python reader is possible.
    """
    global _planner  # noqa: PLW0603 - see above
    reason = _obstacle(spark)
    if reason is not None:
        _log.info("events are read by Python, not inside the JVM: %s", reason)
        return False
    from pyspark.java_gateway import ensure_callback_server_started  # noqa: PLC0415 - not part of every PySpark

    from pravega_connector.spark.jvm.planner import Planner  # noqa: PLC0415 - loads the source

    context = spark.sparkContext
    _add_jar(spark)
    ensure_callback_server_started(context._gateway)
    if _planner is None or _planner.context is not context:
        _planner = Planner(context)
        context._jvm.pravegaserde.spark.Planning.set(_planner)
    _planner.plan_for(spark._jsparkSession.sessionUUID(), source)
    return True


def _add_jar(spark: SparkSession) -> None:
    """Load the reader in the driver and the executors."""
    from py4j.java_gateway import is_instance_of  # type: ignore[import-untyped]  # noqa: PLC0415 - not everywhere

    # Spark's UI loads the classes of metrics from the application's jars only, not from those of ADD JAR.
    application = spark._jsparkSession.sharedState().jarClassLoader().getParent()
    if is_instance_of(spark.sparkContext._gateway, application, "org.apache.spark.util.MutableURLClassLoader"):
        application.addURL(spark._jvm.java.net.URI.create(JAR.as_uri()).toURL())
    spark.sql(f"ADD JAR '{JAR}'")


def _obstacle(spark: SparkSession) -> str | None:
    if not JAR.is_file():
        return f"{JAR.name} was not built: run ./run jvm in the checkout"
    if not hasattr(spark, "_jsparkSession"):
        return "this is a session of Spark Connect"
    return jvm_reader_obstacle()
