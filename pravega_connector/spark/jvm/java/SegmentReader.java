package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Reader of the ranges of one task. A batch has the complete events of one answer of a segment store.
 */
final class SegmentReader extends SegmentClient implements PartitionReader<ColumnarBatch> {
  /** Requests in flight. */
  private static final int DEPTH = 2;

  private final Task task;
  private final EventColumns rows;
  private final StructType columns;
  private final TypedPlan typed;
  /** Rows of the batch that Python has decoded; null if it has not. */
  private PythonRows python;
  private ColumnarBatch batch;
  private final ReadMetric.Counts counts = new ReadMetric.Counts();
  private ByteBuffer data = ByteBuffer.allocateDirect(CHUNK + (1 << 16));
  private ByteBuffer spare = ByteBuffer.allocateDirect(CHUNK + (1 << 16));

  private int nextSlice;
  private String linkedTo;
  private boolean lostLink;
  /** Offset of the next byte to request. */
  private long requested;
  /** Lengths of the requests in flight and answers that came early, by offset. */
  private final TreeMap<Long, Integer> inFlight = new TreeMap<>();
  private final TreeMap<Long, Integer> gaps = new TreeMap<>();
  private final TreeMap<Long, byte[]> early = new TreeMap<>();

  SegmentReader(Task task, StructType columns, TypedPlan typed, String support) {
    super(new Support(support));
    this.task = task;
    this.columns = columns;
    this.typed = typed;
    this.rows = new EventColumns(columns, typed);
  }

  @Override
  public ColumnarBatch get() {
    return batch;
  }

  @Override
  public CustomTaskMetric[] currentMetricsValues() {
    return counts.values();
  }

  @Override
  public boolean next() throws IOException {
    while (true) {
      if (python != null) {
        batch = python.next();
        if (batch != null) {
          return true;
        }
        python = PythonRows.closed(python);
      }
      if (slice == null) {
        if (nextSlice == task.slices.length) {
          return false;
        }
        begin(task.slices[nextSlice++]);
      }
      if (position >= slice.end()) {
        end();
        continue;
      }
      if (carried >= EventColumns.HEADER && !isFrame(data, 0)) {
        recover(support.frame(position - carried, bytesOfCarried()));
      }
      try {
        receive();
      } catch (Refusal refusal) {
        recover(refusal.failure);
        continue;
      } catch (IOException error) {
        recover(support.lost(error));
        continue;
      }
      parse();
      if (rows.count > 0 && rows.decode()) {
        batch = rows.batch();
        return true;
      }
      if (rows.count > 0) { // an event is in doubt
        python = PythonRows.of(rows, typed, columns, support, slice.start(), Math.min(slice.end(), task.stop));
      }
    }
  }

  // ---- one slice ----

  @Override
  void begin(Task.Slice next) {
    super.begin(next);
    rows.begin(next);
    restartAt(position);
  }

  private void end() {
    if (carried > 0) {
      recover(support.frame(position - carried, bytesOfCarried()));
    }
    support.completed();
    slice = null;
    if (!inFlight.isEmpty()) {
      unlink();
    }
  }

  private void restartAt(long offset) {
    position = requested = offset;
    inFlight.clear();
    gaps.clear();
    early.clear();
  }

  /** Tell the Python side of a failure of this slice, and continue as it says. */
  private void recover(ObjectNode failure) {
    lostLink |= link != null;
    JsonNode answer = report(failure);
    counts.add(ReadMetric.Kind.RETRIES, answer.get("retries").asLong());
    long event = answer.get("event").asLong();
    if (event != position - carried) {
      // Lost data is skipped: the next event begins after it.
      counts.add(ReadMetric.Kind.LOST_BYTES, event - (position - carried));
      carried = 0;
      position = event;
    }
    restartAt(position);
  }

  // ---- requests and answers ----

  private void connect() throws IOException {
    String address = place.address();
    if (link != null && address.equals(linkedTo)) {
      return;
    }
    unlink();
    restartAt(position);
    link = StoreLink.open(place.host(), place.port(), support.tls(), quiet);
    counts.add(ReadMetric.Kind.RECONNECTS, lostLink ? 1 : 0);
    lostLink = false;
    linkedTo = address;
    link.greet(address, "read");
  }

  private void request() throws IOException {
    while (inFlight.size() + early.size() < DEPTH) {
      long offset;
      int length;
      if (!gaps.isEmpty()) {
        Map.Entry<Long, Integer> gap = gaps.pollFirstEntry();
        offset = gap.getKey();
        length = gap.getValue();
      } else if (requested < slice.end()) {
        offset = requested;
        length = (int) Math.min(CHUNK, slice.end() - requested);
        requested += length;
      } else {
        return;
      }
      inFlight.put(offset, length);
      link.requestRead(segment, offset, length, place.token());
    }
  }

  /** Append the next bytes of the segment to {@code data}. */
  private void receive() throws IOException {
    locate();
    connect();
    link.quiet = quiet;
    long since = System.nanoTime();
    while (true) {
      byte[] kept = early.remove(position);
      if (kept != null) {
        data = roomFor(data, carried, kept.length);
        data.put(carried, kept);
        received(kept.length);
        return;
      }
      request();
      readHead(8);
      int length = messageLength();
      switch (head.getInt(0)) {
        case SEGMENT_READ -> {
          if (answer(length)) {
            return;
          }
        }
        case StoreLink.KEEP_ALIVE -> {
          if ((System.nanoTime() - since) / 1e9 > quiet) {
            throw new java.net.SocketTimeoutException("only keep-alives for " + Math.round(quiet) + " s");
          }
          StoreLink.checkTask();
          readHead(length);
        }
        default -> {
          byte[] reply = new byte[length];
          link.read(ByteBuffer.wrap(reply));
          throw new Refusal(support.replied(head.getInt(0), reply, inFlight));
        }
      }
    }
  }

  /** Read an answer to a request. Return true if its bytes are the next ones of the segment. */
  private boolean answer(int length) throws IOException {
    Answer answer = readAnswer(length, false);
    long offset = answer.offset();
    inFlight.remove(offset);
    int kept = answer.kept();
    byte[] stash = offset == position ? null : new byte[kept];
    if (stash == null) {
      data = roomFor(data, carried, kept);
      data.limit(carried + kept).position(carried);
      link.read(data);
    } else {
      link.read(ByteBuffer.wrap(stash));
      early.put(offset, stash);
    }
    readEnd(answer);
    if (kept < answer.wanted()) {
      gaps.put(offset + kept, answer.wanted() - kept);
    }
    if (stash != null) {
      return false;
    }
    received(kept);
    return true;
  }

  @Override
  Integer wanted(long offset) {
    return inFlight.get(offset);
  }

  @Override
  void received(int size) {
    super.received(size);
    counts.add(ReadMetric.Kind.BYTES, size);
  }

  private static ByteBuffer roomFor(ByteBuffer buffer, int used, int more) {
    if (buffer.capacity() >= used + more) {
      return buffer.clear();
    }
    ByteBuffer larger = ByteBuffer.allocateDirect(Math.max(used + more, (int) Math.min(2L * used, MAX_EVENT)) + CHUNK);
    larger.put(0, buffer.clear(), 0, used);
    return larger;
  }

  // ---- events ----

  /** Find the complete events at the beginning of {@code data}; the rest begins the other buffer. */
  private void parse() {
    rows.count = 0;
    rows.data = data;
    rows.base = position - carried;
    int at = 0;
    while (at + EventColumns.HEADER <= carried) {
      int length = data.getInt(at + 4);
      if (!isFrame(data, at)) {
        break; // the next call finds it at the beginning of the buffer
      }
      if (at + EventColumns.HEADER + length > carried) {
        break;
      }
      if (rows.base + at >= task.stop) {
        position = slice.end();
        carried = 0;
        counts.add(ReadMetric.Kind.EVENTS, rows.count);
        unlink();
        return;
      }
      rows.add(at, length);
      at += EventColumns.HEADER + length;
    }
    counts.add(ReadMetric.Kind.EVENTS, rows.count);
    if (rows.count == 0) {
      return; // only a part of a large event so far
    }
    // The batch stays in this buffer until the next call, so the rest moves to the other one.
    ByteBuffer other = roomFor(spare, 0, carried - at);
    other.put(0, data, at, carried - at);
    spare = data;
    data = other;
    carried -= at;
  }

  private byte[] bytesOfCarried() {
    byte[] header = new byte[Math.min(carried, EventColumns.HEADER)];
    data.get(0, header);
    return header;
  }

  @Override
  public void close() {
    python = PythonRows.closed(python);
    unlink();
    support.ended();
  }
}
