package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

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
    return describe() + ", PushedFilters: " + Arrays.toString(filters) + ", ReadSchema: " + columns.catalogString();
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
    return stream != null && stream.readsRows() ? ColumnarSupportMode.UNSUPPORTED : ColumnarSupportMode.SUPPORTED;
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
    stream = SegmentStream.of(columns, typed, describe(), Planning.ask(plan.deepCopy().put("do", "stream")));
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
}
