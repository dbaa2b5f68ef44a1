package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Reader of the ranges of one task. A batch has the complete events of one answer of a segment store.
 *
 * <p>It knows three messages: Hello, ReadSegment and SegmentRead. Whatever else happens goes to {@link Support}: the
 * project's Python decides what an answer means, pauses, finds the segment again, or returns an error.
 */
final class SegmentReader implements PartitionReader<ColumnarBatch> {
  static final int SEGMENT_READ = 10;

  /** Bytes of one request, and requests in flight. */
  static final int CHUNK = 1 << 20;
  private static final int DEPTH = 2;
  /** Bytes that a server may answer with although fewer were requested. */
  static final int LEAST_ANSWER = 8;
  /** Largest event, in bytes, as in the Python reader. */
  static final int MAX_EVENT = 128 << 20;
  /** Largest message other than an answer to a read. */
  static final int MAX_REPLY = 1 << 20;

  private final Task task;
  private final EventColumns rows;
  private final StructType columns;
  private final TypedPlan typed;
  /** Rows of the batch that Python has decoded; null if it has not. */
  private PythonRows python;
  private ColumnarBatch batch;
  private final Support support;
  private final ReadMetric.Counts counts = new ReadMetric.Counts();
  private final ByteBuffer head = ByteBuffer.allocateDirect(4096);
  private ByteBuffer data = ByteBuffer.allocateDirect(CHUNK + (1 << 16));
  private ByteBuffer spare = ByteBuffer.allocateDirect(CHUNK + (1 << 16));
  /** Bytes at the beginning of {@code data} that belong to an event whose rest is still to come. */
  private int carried;

  private int nextSlice;
  private Task.Slice slice;
  private byte[] segment;
  private StoreLink link;
  private String linkedTo;
  private boolean lostLink;
  private String host;
  private int port;
  private byte[] token;
  private double renewal;
  private double quiet;
  /** Offset of the next byte to come, and of the next byte to request. */
  private long position;
  private long requested;
  /** Lengths of the requests in flight and answers that came early, by offset. */
  private final TreeMap<Long, Integer> inFlight = new TreeMap<>();
  private final TreeMap<Long, Integer> gaps = new TreeMap<>();
  private final TreeMap<Long, byte[]> early = new TreeMap<>();

  SegmentReader(Task task, StructType columns, TypedPlan typed, String support) {
    this.task = task;
    this.columns = columns;
    this.typed = typed;
    this.rows = new EventColumns(columns, typed);
    this.support = new Support(support);
    quiet = this.support.quiet();
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
        closePython();
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
      if (carried >= EventColumns.HEADER && !isFrame(0)) {
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
      if (rows.count > 0) {
        decodeInPython();
      }
    }
  }

  /** Let Python decode a batch with an event in doubt. Throws the error that it returns for the event. */
  private void decodeInPython() throws IOException {
    ObjectNode request = PythonRows.request(rows, typed.rows(), columns);
    request.set("places", Planning.JSON.valueToTree(slice.places()));
    request.set("lows", Planning.JSON.valueToTree(slice.lows()));
    request.set("highs", Planning.JSON.valueToTree(slice.highs()));
    python = new PythonRows(Base64.getDecoder().decode(ask(request).get("rows").asText()));
  }

  private void closePython() {
    if (python != null) {
      python.close();
      python = null;
    }
  }

  // ---- one slice ----

  private void begin(Task.Slice next) {
    slice = next;
    segment = next.segment().getBytes(StandardCharsets.UTF_8);
    rows.begin(next);
    carried = 0;
    restartAt(next.start());
    if (next.host() != null) {
      at(next.host(), next.port(), next.token(), next.renewal());
    } else {
      host = null;
    }
  }

  private void end() {
    if (carried > 0) {
      recover(support.frame(position - carried, bytesOfCarried()));
    }
    support.ended();
    slice = null;
    if (!inFlight.isEmpty()) {
      unlink();
    }
  }

  private void at(String newHost, int newPort, String newToken, double newRenewal) {
    host = newHost;
    port = newPort;
    token = newToken.getBytes(StandardCharsets.UTF_8);
    renewal = newRenewal;
  }

  private void at(JsonNode answer) {
    at(answer.get("host").asText(), answer.get("port").asInt(), answer.get("token").asText(),
        answer.get("renewal").asDouble());
  }

  private void restartAt(long offset) {
    position = requested = offset;
    inFlight.clear();
    gaps.clear();
    early.clear();
  }

  private void unlink() {
    if (link != null) {
      link.close();
      link = null;
    }
  }

  /** Ask the Python side about this slice. Throws what it returns as an error. */
  private JsonNode ask(ObjectNode request) {
    request.put("scope", slice.scope()).put("stream", slice.stream()).put("segment_id", slice.segmentId());
    return support.ask(request.put("event", position - carried));
  }

  /** Tell the Python side of a failure of this slice, and continue as it says. */
  private void recover(ObjectNode failure) {
    lostLink |= link != null;
    unlink();
    failure.put("start", slice.start()).put("end", slice.end()).put("store", host + ":" + port);
    JsonNode answer = ask(failure.put("position", position));
    quiet = answer.get("quiet").asDouble();
    counts.add(ReadMetric.Kind.RETRIES, answer.get("retries").asLong());
    long event = answer.get("event").asLong();
    if (event != position - carried) {
      // Lost data is skipped: the next event begins after it.
      counts.add(ReadMetric.Kind.LOST_BYTES, event - (position - carried));
      carried = 0;
      position = event;
    }
    restartAt(position);
    at(answer);
  }

  // ---- requests and answers ----

  private void connect() throws IOException {
    String place = host + ":" + port;
    if (link != null && place.equals(linkedTo)) {
      return;
    }
    unlink();
    restartAt(position);
    link = StoreLink.open(host, port, support.tls(), quiet);
    counts.add(ReadMetric.Kind.RECONNECTS, lostLink ? 1 : 0);
    lostLink = false;
    linkedTo = place;
    link.greet(place, "read");
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
      link.requestRead(segment, offset, length, token);
    }
  }

  /** Append the next bytes of the segment to {@code data}. */
  private void receive() throws IOException {
    if (host == null || System.currentTimeMillis() / 1000.0 >= renewal) {
      at(ask(support.place()));
    }
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
      int length = readHeader();
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
          refused(head.getInt(0), reply);
          return;
        }
      }
    }
  }

  /** Read an answer to a request. Return true if its bytes are the next ones of the segment. */
  private boolean answer(int length) throws IOException {
    readHead(2);
    int name = head.getShort(0) & 0xffff;
    int fixed = name + 8 + 1 + 1 + 4;
    if (2 + fixed + 8 > length || fixed > head.capacity()) {
      throw new IOException("an answer of " + length + " bytes to a read is too short");
    }
    readHead(fixed);
    long offset = head.getLong(name);
    boolean sealedEnd = head.get(name + 9) != 0;
    int size = head.getInt(name + 10);
    boolean ours = name == segment.length;
    for (int i = 0; ours && i < name; i++) {
      ours = head.get(i) == segment[i];
    }
    Integer wanted = inFlight.get(offset);
    boolean valid = ours && wanted != null && size >= 0 && size <= Math.max(wanted, LEAST_ANSWER) && size <= length - fixed - 10;
    if (!valid || size == 0 || (size < wanted && sealedEnd)) {
      ObjectNode failure = support.answered(head, name, offset, size, wanted, sealedEnd);
      throw new Refusal(failure);
    }
    inFlight.remove(offset);
    int kept = Math.min(size, wanted);
    byte[] stash = offset == position ? null : new byte[kept];
    if (stash == null) {
      data = roomFor(data, carried, kept);
      data.limit(carried + kept).position(carried);
      link.read(data);
    } else {
      link.read(ByteBuffer.wrap(stash));
      early.put(offset, stash);
    }
    skip(length - 2 - fixed - kept - 8);
    readHead(8);
    if (head.getLong(0) != offset) {
      throw new IOException("an answer to request " + head.getLong(0) + " came for request " + offset);
    }
    if (kept < wanted) {
      gaps.put(offset + kept, wanted - kept);
    }
    if (stash != null) {
      return false;
    }
    received(kept);
    return true;
  }

  private void received(int size) {
    carried += size;
    position += size;
    counts.add(ReadMetric.Kind.BYTES, size);
    support.progressed();
  }

  private void refused(int type, byte[] reply) throws Refusal {
    throw new Refusal(support.replied(type, Base64.getEncoder().encodeToString(reply), inFlight));
  }

  private int readHeader() throws IOException {
    readHead(8);
    int length = head.getInt(4);
    int limit = head.getInt(0) == SEGMENT_READ ? CHUNK + (1 << 17) : MAX_REPLY;
    if (length < 0 || length > limit) {
      throw new IOException("a message of " + length + " bytes");
    }
    return length;
  }

  private void readHead(int size) throws IOException {
    if (size > head.capacity()) {
      throw new IOException("a field of " + size + " bytes");
    }
    head.clear().limit(size);
    link.read(head);
  }

  private void skip(int size) throws IOException {
    for (int left = size; left > 0; left -= head.capacity()) {
      readHead(Math.min(left, head.capacity()));
    }
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
      if (!isFrame(at)) {
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

  private boolean isFrame(int at) {
    int length = data.getInt(at + 4);
    return data.getInt(at) == 0 && length >= 0 && length <= MAX_EVENT;
  }

  private byte[] bytesOfCarried() {
    byte[] header = new byte[Math.min(carried, EventColumns.HEADER)];
    data.get(0, header);
    return header;
  }

  @Override
  public void close() {
    closePython();
    unlink();
    support.ended();
  }

  /** Answer that the Python side has to judge. */
  static final class Refusal extends IOException {
    private static final long serialVersionUID = 1L;
    final transient ObjectNode failure;

    Refusal(ObjectNode failure) {
      super("refused");
      this.failure = failure;
    }
  }
}
