package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeMode;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.CollectionAccumulator;

/** Scan by the JVM, planned by the driver's Python. */
final class SegmentScan implements Scan, Batch {
  private final StructType columns;
  private final ObjectNode plan;
  private final TypedPlan typed;
  private final Filter[] filters;
  private String support;
  private SegmentStream stream;

  SegmentScan(StructType columns, ObjectNode plan, TypedPlan typed, Filter[] filters) {
    this.columns = columns;
    this.plan = plan;
    this.typed = typed;
    this.filters = filters;
  }

  @Override
  public StructType readSchema() {
    return columns;
  }

  @Override
  public String description() {
    return describe() + ", PushedFilters: " + Arrays.toString(filters) + ", ReadSchema: "
        + columns.catalogString();
  }

  private String describe() {
    String decoded = typed == null ? "" : ", decoded by the JVM: " + typed.format();
    return "pravega, read by the JVM: " + plan.get("streams").asText() + decoded;
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return ReadMetric.all();
  }

  @Override
  public ColumnarSupportMode columnarSupportMode() {
    return stream != null && stream.ends != null ? ColumnarSupportMode.UNSUPPORTED : ColumnarSupportMode.SUPPORTED;
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  @Override
  public InputPartition[] planInputPartitions() {
    JsonNode answer = Planning.ask(plan.deepCopy().put("do", "batch"));
    support = answer.get("support").asText();
    return Task.all(answer.get("tasks"));
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new Readers(columns, typed, support);
  }

  @Override
  public MicroBatchStream toMicroBatchStream(String checkpoint) {
    stream = new SegmentStream(columns, typed, describe(), Planning.ask(plan.deepCopy().put("do", "stream")));
    return stream;
  }

  /** Readers of tasks. {@code support} lets a task ask the project's Python on its executor. */
  record Readers(StructType columns, TypedPlan typed, String support) implements PartitionReaderFactory {
    @Override
    public boolean supportColumnarReads(InputPartition partition) {
      return true;
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      throw new UnsupportedOperationException("rows: the reader has columns");
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
      return new SegmentReader((Task) partition, columns, typed, support);
    }
  }

  /** Offset of a stream query, in the JSON form of the Python source. */
  private static final class Cut extends Offset {
    private final String json;

    Cut(String json) {
      this.json = json;
    }

    @Override
    public String json() {
      return json;
    }
  }

  /** Stream query: the Python reader of the driver has its state. */
  private static final class SegmentStream
      implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics, SupportsRealTimeMode {
    private final StructType columns;
    private final TypedPlan typed;
    private final String description;
    private final String query;
    private final String support;
    /** Lag as last reported; null before the first report. */
    private JsonNode report;
    /** Positions of the tasks of a batch in real-time mode; null in other modes. */
    private CollectionAccumulator<String> ends;
    /** Thread that plans these batches. It is one for the query: py4j keeps a connection for each thread. */
    private ExecutorService planner;

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

    private ObjectNode request(String action, Offset start, Offset end) {
      ObjectNode request = Planning.request(action).put("query", query);
      if (start != null) {
        request.put("start", start.json());
      }
      if (end != null) {
        request.put("end", end.json());
      }
      return request;
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
      if (ends != null) {
        return start; // the tasks report where the batch has ended
      }
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
      return Task.all(ask("tasks", start, end));
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return ends == null ? new Readers(columns, typed, support) : new TailReader.Factory(columns, support, ends);
    }

    @Override
    public void prepareForRealTimeMode() {
      ask("real_time", null, null);
      planner = Executors.newSingleThreadExecutor(work -> {
        Thread thread = new Thread(work, "pravega-plan");
        thread.setDaemon(true);
        return thread;
      });
      ends = SparkSession.active().sparkContext().collectionAccumulator();
    }

    @Override
    public InputPartition[] planInputPartitions(Offset start) {
      ends.reset();
      return Task.all(Planning.askUntilInterrupted(planner, request("follow", start, null)));
    }

    @Override
    public Offset mergeOffsets(PartitionOffset[] unused) {
      ObjectNode request = request("end_of_followed", null, null);
      request.set("positions", Planning.JSON.valueToTree(ends.value()));
      return new Cut(Planning.ask(request).asText());
    }

    @Override
    public void commit(Offset end) {
      ask("commit", null, end);
    }

    @Override
    public void stop() {
      if (planner != null) {
        planner.shutdown();
      }
      if (Planning.isAvailable()) {
        ask("stop", null, null);
      }
    }
  }
}
