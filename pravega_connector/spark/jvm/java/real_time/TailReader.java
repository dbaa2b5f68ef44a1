package pravegaserde.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.CollectionAccumulator;

/**
 * Reader of one task in Spark's real-time mode: it returns the events of some segments as they arrive.
 *
 * <p>A thread follows each segment. So a wait for an event, for a server or for the Python side never delays the end of
 * the batch or of the task, and no segment waits for another one.
 */
final class TailReader implements SupportsRealTimeRead<InternalRow> {
  private static final long SLICE_NANOS = 1_000_000_000L;

  /** Consecutive events of a segment with their headers, from {@code offset} on; or the error that ends the task. */
  record Arrival(int segment, long offset, byte[] frames, Throwable error) {}

  /**
   * Readers of the tasks of a batch.
   *
   * <p>{@code ends} gets the position of each task in its segments, as JSON. Spark's own way for it, an object of this
   * jar, would fail: the driver reads the results of tasks without the jars of the session.
   */
  record Factory(StructType columns, TypedPlan typed, String support, CollectionAccumulator<String> ends)
      implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      return new TailReader((Task) partition, columns, typed, support, ends);
    }
  }

  private final Task.Slice[] slices;
  private final StructType columns;
  private final TypedPlan typed;
  private final String settings;
  private final Support support;
  /** Offset after the last returned event of each segment. */
  private final long[] positions;
  private final CollectionAccumulator<String> ends;
  private final List<Thread> threads = new ArrayList<>();
  private final BlockingQueue<Arrival> arrivals;
  private Arrival current;
  private ByteBuffer frames = ByteBuffer.allocate(0);
  /** Position of the next event's header in {@code frames}, and its number. */
  private int at;
  private int next;
  /** Columns of all events of {@code frames}; if one of them is in doubt, of one event at a time. */
  private final EventColumns rows;
  private boolean together;
  /** Row that Python has decoded; null for others. */
  private PythonRows python;
  private InternalRow row;

  TailReader(
      Task task, StructType columns, TypedPlan typed, String settings, CollectionAccumulator<String> ends) {
    this.columns = columns;
    this.typed = typed;
    this.settings = settings;
    this.ends = ends;
    support = new Support(settings);
    rows = new EventColumns(columns, typed);
    slices = task.slices;
    positions = new long[slices.length];
    for (int i = 0; i < slices.length; i++) {
      positions[i] = slices[i].start();
    }
    arrivals = new ArrayBlockingQueue<>(Math.max(slices.length, 1), true);
  }

  @Override
  public RecordStatus nextWithTimeout(Long start, Long timeout) throws IOException {
    if (threads.isEmpty()) {
      follow();
    }
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeout);
    while (true) {
      while (at < frames.capacity()) {
        if (advance()) {
          return RecordStatus.newStatusWithoutArrivalTime(true);
        }
      }
      current = await(end);
      if (current == null) {
        return RecordStatus.newStatusWithoutArrivalTime(false);
      }
      if (current.error instanceof ReadException error) {
        throw error;
      }
      if (current.error != null) {
        throw new IOException(current.error);
      }
      begin();
    }
  }

  /** Decode the events that have arrived. */
  private void begin() {
    positions[current.segment] = current.offset;
    frames = ByteBuffer.wrap(current.frames);
    rows.begin(slices[current.segment]);
    rows.data = frames;
    rows.base = current.offset;
    rows.count = 0;
    for (at = 0; at < frames.capacity(); at += size()) {
      rows.add(at, size() - EventColumns.HEADER);
    }
    at = next = 0;
    together = rows.count > 0 && rows.decode();
  }

  /** Bytes of the next event with its header. */
  private int size() {
    return EventColumns.HEADER + frames.getInt(at + 4);
  }

  /** Pass the next event. Return false if it has no row. */
  private boolean advance() throws IOException {
    python = PythonRows.closed(python);
    int size = size();
    if (!together) {
      rows.data = frames.slice(at, size);
      rows.base = current.offset + at;
      rows.count = 0;
      rows.add(0, size - EventColumns.HEADER);
      next = 0;
    }
    at += size;
    positions[current.segment] = current.offset + at;
    if (together || rows.decode()) {
      row = rows.batch().getRow(next++);
      return true;
    }
    // A repeated batch may end elsewhere: the dead letters of a segment are of one range.
    python = PythonRows.of(rows, typed, columns, support, 0, rows.slice.end());
    ColumnarBatch found = python.next();
    row = found == null || found.numRows() == 0 ? null : found.getRow(0);
    return row != null;
  }

  private void follow() {
    for (int i = 0; i < slices.length; i++) {
      SegmentTail tail = new SegmentTail(i, slices[i], new Support(settings), arrivals);
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
    python = PythonRows.closed(python);
    support.ended();
  }
}
