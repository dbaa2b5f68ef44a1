package pravegaserde.spark;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** Metric of a scan in Spark's plan and UI: the sum over the tasks. */
public final class ReadMetric extends CustomSumMetric {
  /** Numbers that a task counts. */
  enum Kind {
    EVENTS("eventsReceived", "events received"),
    BYTES("bytesReceived", "bytes of segments received"),
    RETRIES("retries", "failed attempts that were retried"),
    RECONNECTS("reconnects", "connections to segment stores that were lost and reopened"),
    LOST_BYTES("lostBytes", "bytes of lost data that were skipped");

    final String text;
    final String description;

    Kind(String text, String description) {
      this.text = text;
      this.description = description;
    }
  }

  /** Numbers of one task so far. */
  static final class Counts {
    private final long[] values = new long[Kind.values().length];

    void add(Kind kind, long number) {
      values[kind.ordinal()] += number;
    }

    CustomTaskMetric[] values() {
      CustomTaskMetric[] found = new CustomTaskMetric[values.length];
      for (Kind kind : Kind.values()) {
        found[kind.ordinal()] = new TaskValue(kind.text, values[kind.ordinal()]);
      }
      return found;
    }
  }

  private record TaskValue(String name, long value) implements CustomTaskMetric {}

  private final String name;
  private final String description;

  /** Spark's UI creates a metric without arguments, to add the values of tasks. */
  public ReadMetric() {
    this("", "");
  }

  private ReadMetric(String name, String description) {
    this.name = name;
    this.description = description;
  }

  /** Return all metrics; none if Spark's UI cannot load this class: it would log a warning about each query. */
  static CustomMetric[] all() {
    if (ReadMetric.class.getClassLoader() == Session.jarClassLoader()) {
      return new CustomMetric[0];
    }
    CustomMetric[] found = new CustomMetric[Kind.values().length];
    for (Kind kind : Kind.values()) {
      found[kind.ordinal()] = new ReadMetric(kind.text, kind.description);
    }
    return found;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String description() {
    return description;
  }
}
