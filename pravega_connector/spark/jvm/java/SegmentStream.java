package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.StructType;

/** Stream query in micro-batches: the Python reader of the driver has its state. */
class SegmentStream implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics {
  /** Loaded by its name: versions of Spark without real-time mode do not have its interfaces. */
  private static final String REAL_TIME = "pravegaserde.spark.RealTimeStream";

  final StructType columns;
  final String support;
  TypedPlan typed;
  private final String description;
  private final String query;
  /** Lag as last reported; null before the first report. */
  private JsonNode report;

  static SegmentStream of(StructType columns, TypedPlan typed, String description, JsonNode opened) {
    if (!opened.get("real_time").asBoolean()) {
      return new SegmentStream(columns, typed, description, opened);
    }
    try {
      Class<?> kind = Class.forName(REAL_TIME, true, SegmentStream.class.getClassLoader());
      return (SegmentStream) kind.getDeclaredConstructor(StructType.class, TypedPlan.class, String.class, JsonNode.class)
          .newInstance(columns, typed, description, opened);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  SegmentStream(StructType columns, TypedPlan typed, String description, JsonNode opened) {
    this.columns = columns;
    this.typed = typed;
    this.description = description;
    query = opened.get("query").asText();
    support = opened.get("support").asText();
  }

  private JsonNode ask(String action, Offset start, Offset end) {
    return Planning.ask(request(action, start, end));
  }

  final ObjectNode request(String action, Offset start, Offset end) {
    ObjectNode request = Planning.request(action).put("query", query);
    return request.put("start", start == null ? null : start.json()).put("end", end == null ? null : end.json());
  }

  @Override
  public Offset initialOffset() {
    return new Cut(ask("initial", null, null).asText());
  }

  @Override
  public Offset latestOffset() {
    throw new UnsupportedOperationException("latestOffset(Offset, ReadLimit) is called instead");
  }

  @Override
  public ReadLimit getDefaultReadLimit() {
    return ReadLimit.allAvailable();
  }

  @Override
  public Offset latestOffset(Offset start, ReadLimit limit) {
    return new Cut(ask("latest", start, null).asText());
  }

  @Override
  public Offset reportLatestOffset() {
    JsonNode found = ask("report", null, null);
    if (found.isNull()) {
      return null;
    }
    report = Planning.parse(found.asText());
    return new Cut(found.asText());
  }

  /** Return the source's description in the progress of a query. */
  @Override
  public String toString() {
    return description;
  }

  @Override
  public Map<String, String> metrics(Optional<Offset> latestConsumed) {
    Map<String, String> metrics = new HashMap<>(Map.of("reader", "jvm"));
    if (report != null && report.has("behind")) {
      metrics.put("lagBytes", report.path("behind").path("bytes").asText());
      metrics.put("lostBytes", report.path("lost").path("bytes").asText("0"));
    }
    return metrics;
  }

  @Override
  public void prepareForTriggerAvailableNow() {
    ask("available_now", null, null);
  }

  @Override
  public Offset deserializeOffset(String json) {
    return new Cut(json);
  }

  @Override
  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    return take(ask("tasks", start, end));
  }

  /** Use the decoders of an answer, if it has new ones, from this batch on. Return its tasks. */
  final InputPartition[] take(JsonNode answer) {
    typed = answer.hasNonNull("decoder") ? TypedPlan.of(answer.get("decoder")) : typed;
    return Task.all(answer.get("tasks"));
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new SegmentScan.Readers(columns, typed, support);
  }

  /** Return true if the readers of the query have rows instead of columns. */
  boolean readsRows() {
    return false;
  }

  @Override
  public void commit(Offset end) {
    ask("commit", null, end);
  }

  @Override
  public void stop() {
    if (Planning.isAvailable()) {
      ask("stop", null, null);
    }
  }

  /** Offset of a stream query, in the JSON form of the Python source. */
  static final class Cut extends Offset {
    private final String json;

    Cut(String json) {
      this.json = json;
    }

    @Override
    public String json() {
      return json;
    }
  }
}
