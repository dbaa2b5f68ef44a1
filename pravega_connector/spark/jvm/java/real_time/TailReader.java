package pravegaserde.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.CollectionAccumulator;

/**
 * Reader of one task in Spark's real-time mode: it returns the events of some segments as they arrive.
 *
 * <p>A thread follows each segment. So a wait for an event, for a server or for the Python side never delays the end of
 * the batch or of the task, and no segment waits for another one.
 */
final class TailReader implements SupportsRealTimeRead<InternalRow> {
  private static final long SLICE_NANOS = 1_000_000_000L;

  /** Consecutive events of a segment, the first one at {@code offset}; or the error with which the task must end. */
  record Arrival(int segment, long offset, List<byte[]> events, Throwable error) {}

  /**
   * Readers of the tasks of a batch.
   *
   * <p>{@code ends} gets the position of each task in its segments, as JSON. Spark's own way for it, an object of this
   * jar, would fail: the driver reads the results of tasks without the jars of the session.
   */
  record Factory(StructType columns, String support, CollectionAccumulator<String> ends) implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      return new TailReader((Task) partition, columns, support, ends);
    }
  }

  private final Task.Slice[] slices;
  private final Object[][] constants;
  private final int eventColumn;
  private final int offsetColumn;
  private final String support;
  /** Offset after the last returned event of each segment. */
  private final long[] positions;
  private final CollectionAccumulator<String> ends;
  private final List<Thread> threads = new ArrayList<>();
  private final BlockingQueue<Arrival> arrivals;
  private Arrival current;
  private int next;
  private InternalRow row;

  TailReader(Task task, StructType columns, String support, CollectionAccumulator<String> ends) {
    this.support = support;
    this.ends = ends;
    slices = task.slices;
    List<String> names = List.of(columns.fieldNames());
    eventColumn = names.indexOf("event");
    offsetColumn = names.indexOf("offset");
    positions = new long[slices.length];
    constants = new Object[slices.length][];
    for (int i = 0; i < slices.length; i++) {
      positions[i] = slices[i].start();
      constants[i] = constants(slices[i], names);
    }
    arrivals = new ArrayBlockingQueue<>(Math.max(slices.length, 1), true);
  }

  private static Object[] constants(Task.Slice slice, List<String> names) {
    Object[] values = new Object[names.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = switch (names.get(i)) {
        case "scope" -> UTF8String.fromString(slice.scope());
        case "stream" -> UTF8String.fromString(slice.stream());
        case "segment_id" -> slice.segmentId();
        default -> null;
      };
    }
    return values;
  }

  @Override
  public RecordStatus nextWithTimeout(Long start, Long timeout) throws IOException {
    if (threads.isEmpty()) {
      follow();
    }
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeout);
    while (current == null || next == current.events.size()) {
      current = await(end);
      next = 0;
      if (current == null) {
        return RecordStatus.newStatusWithoutArrivalTime(false);
      }
      if (current.error instanceof ReadException error) {
        throw error;
      }
      if (current.error != null) {
        throw new IOException(current.error);
      }
      positions[current.segment] = current.offset;
    }
    byte[] event = current.events.get(next++);
    row = row(current.segment, event);
    positions[current.segment] += EventColumns.HEADER + event.length;
    return RecordStatus.newStatusWithoutArrivalTime(true);
  }

  private void follow() {
    for (int i = 0; i < slices.length; i++) {
      SegmentTail tail = new SegmentTail(i, slices[i], new Support(support), arrivals);
      Thread thread = new Thread(tail, "pravega-tail " + slices[i].segment());
      thread.setDaemon(true);
      thread.start();
      threads.add(thread);
    }
  }

  /** Return the next events, or null if none arrive until then. */
  private Arrival await(long end) throws IOException {
    while (true) {
      long left = end - System.nanoTime();
      try {
        Arrival found = arrivals.poll(Math.max(Math.min(left, SLICE_NANOS), 0), TimeUnit.NANOSECONDS);
        if (found != null || left <= 0) {
          return found;
        }
      } catch (InterruptedException interrupt) {
        Thread.currentThread().interrupt();
      }
      StoreLink.checkTask();
    }
  }

  private InternalRow row(int segment, byte[] event) {
    Object[] values = constants[segment].clone();
    if (eventColumn >= 0) {
      values[eventColumn] = event;
    }
    if (offsetColumn >= 0) {
      values[offsetColumn] = positions[segment];
    }
    return new GenericInternalRow(values);
  }

  /** Report the positions of this task, which has ended. See {@link Factory} for the reason of the null. */
  @Override
  public PartitionOffset getOffset() {
    for (int i = 0; i < slices.length; i++) {
      ArrayNode position = Planning.JSON.createArrayNode().add(slices[i].scope() + "/" + slices[i].stream());
      ends.add(position.add(slices[i].segmentId()).add(positions[i]).toString());
    }
    return null;
  }

  @Override
  public boolean next() {
    throw new UnsupportedOperationException("nextWithTimeout is called instead");
  }

  @Override
  public InternalRow get() {
    return row;
  }

  @Override
  public void close() {
    threads.forEach(Thread::interrupt);
  }
}
