"""Questions to Spark about the JVM reader: its plans, and its metrics as the UI shows them."""

from pyspark.sql import DataFrame, SparkSession

RECEIVED = "events received"


def is_read_by_the_jvm(frame: DataFrame) -> bool:
    return "read by the JVM" in frame._jdf.queryExecution().toString()


def shown_queries(spark: SparkSession) -> int:
    """Return the number of queries in the SQL tab."""
    return int(spark._jsparkSession.sharedState().statusStore().executionsCount())


def shown_metrics(spark: SparkSession, first: int) -> list[dict[str, str]]:
    """Return the metrics of the JVM reader in the SQL tab by description, for each query from ``first`` on."""
    store = spark._jsparkSession.sharedState().statusStore()
    queries = store.executionsList(first, 1000)
    found = []
    for number in range(queries.size()):
        query = queries.apply(number)
        values = store.executionMetrics(query.executionId())
        metrics = [query.metrics().apply(each) for each in range(query.metrics().size())]
        named = {each.name(): values.apply(each.accumulatorId()) for each in metrics if _is_known(values, each)}
        if RECEIVED in named:
            found.append(named)
    return found


def _is_known(values: object, metric: object) -> bool:
    return bool(values.contains(metric.accumulatorId()))  # type: ignore[attr-defined]
