package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeMode;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.CollectionAccumulator;

/** Stream query in micro-batches, or in real-time mode. */
final class RealTimeStream extends SegmentStream implements SupportsRealTimeMode {
  /** Positions of the tasks of a batch in real-time mode; null in other modes. */
  private CollectionAccumulator<String> ends;
  /** Thread that plans these batches. It is one for the query: py4j keeps a connection for each thread. */
  private ExecutorService planner;

  RealTimeStream(StructType columns, TypedPlan typed, String description, JsonNode opened) {
    super(columns, typed, description, opened);
  }

  @Override
  boolean readsRows() {
    return ends != null;
  }

  @Override
  public Offset latestOffset(Offset start, ReadLimit limit) {
    return ends == null ? super.latestOffset(start, limit) : start; // the tasks report where the batch has ended
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return ends == null ? super.createReaderFactory() : new TailReader.Factory(columns, typed, support, ends);
  }

  @Override
  public void prepareForRealTimeMode() {
    Planning.ask(request("real_time", null, null));
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
    return take(Planning.askUntilInterrupted(planner, request("follow", start, null)));
  }

  @Override
  public Offset mergeOffsets(PartitionOffset[] unused) {
    ObjectNode request = request("end_of_followed", null, null);
    request.set("positions", Planning.JSON.valueToTree(ends.value()));
    return new Cut(Planning.ask(request).asText());
  }

  @Override
  public void stop() {
    if (planner != null) {
      planner.shutdown();
    }
    super.stop();
  }
}
