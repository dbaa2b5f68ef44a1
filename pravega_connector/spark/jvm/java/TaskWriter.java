package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Writer of the rows of a task: it frames them, and appends them in blocks to the segments that Python has named.
 *
 * <p>After any failure, the project's Python on the executor takes over the blocks that are not acknowledged. It asks
 * the segments for the last event of this writer, so no event is lost or repeated, and it follows sealed segments.
 */
final class TaskWriter implements DataWriter<InternalRow> {
  private static final int HEADER = 8;
  private static final int BLOCK = 1 << 20;
  private static final int SMALLEST_BLOCK = 1 << 16;
  /** Bytes that are not acknowledged, and bytes of all blocks that are being filled. */
  private static final int WINDOW = 16 << 20;
  private static final int PIECE = 4 << 20;
  /** Take-overs without an acknowledgement between them, after which a further failure ends the task. */
  private static final int TAKE_OVERS = 3;
  private static final String[] PROPERTIES = {"sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id"};

  private final Support support;
  private final int eventColumn;
  private final int keyColumn;
  private final int largest;
  private final RowTotal total = new RowTotal();
  private final ArrayDeque<Block> sent = new ArrayDeque<>();
  private final ArrayDeque<byte[]> free = new ArrayDeque<>();
  private final Map<String, StoreLink> links = new HashMap<>();
  private final double constant;
  private byte[] key = new byte[64];
  private int keySize = -1;
  private double unrouted = ThreadLocalRandom.current().nextDouble();
  private Segment[] segments;
  private Segment asked;
  private int blockSize;
  private long inFlight;
  private long requests;
  /** Take-overs since the last acknowledgement. */
  private int takeOvers;

  /** Segment of the stream or of the transaction. Events are numbered for each writer id and segment. */
  private static final class Segment {
    final UUID writer = UUID.randomUUID();
    final JsonNode place;
    final byte[] name;
    final double high;
    StoreLink link;
    Block filling;
    long number;
    boolean ready;

    Segment(JsonNode place) {
      this.place = place;
      name = place.get("name").asText().getBytes(StandardCharsets.UTF_8);
      high = place.get("high").asDouble();
    }
  }

  private static final class Block {
    final Segment segment;
    byte[] data;
    int size;
    double[] positions = new double[256];
    int count;
    long last;

    Block(Segment segment, byte[] data) {
      this.segment = segment;
      this.data = data;
    }
  }

  TaskWriter(JsonNode plan) {
    support = new Support(plan.get("support").asText());
    eventColumn = plan.get("event").asInt();
    keyColumn = plan.get("key").asInt();
    largest = plan.get("largest").asInt();
    if (!plan.get("constant").isNull()) {
      setKey(UTF8String.fromString(plan.get("constant").asText()));
    }
    constant = keySize < 0 ? -1 : total.position(key, keySize);
  }

  // ---- rows ----

  @Override
  public void write(InternalRow row) throws IOException {
    UTF8String event = value(row, eventColumn);
    double position = constant;
    if (keyColumn >= 0) {
      setKey(value(row, keyColumn));
      position = keySize < 0 ? -1 : total.position(key, keySize);
    }
    if (event == null || Double.isNaN(position)) {
      support.ask(request("write_refused").put("row", total.rows).put("null", event == null));
    }
    if (segments == null) {
      open(support.ask(request("write_open")));
    }
    int size = event.numBytes();
    if (size > largest) {
      writeLarge(event.getBytes());
      return;
    }
    Segment segment = segmentOf(position < 0 ? unrouted : position);
    while (segment.filling != null && segment.filling.data.length - segment.filling.size < HEADER + size) {
      send(segment);
      unrouted = ThreadLocalRandom.current().nextDouble();
      segment = segmentOf(position < 0 ? unrouted : position); // there are others after a failure
    }
    if (segment.filling == null) {
      segment.filling = new Block(segment, buffer(HEADER + size));
    }
    Block block = segment.filling;
    if (block.count == block.positions.length) {
      block.positions = Arrays.copyOf(block.positions, 4 * block.count);
    }
    block.positions[block.count++] = position < 0 ? unrouted : position;
    ByteBuffer.wrap(block.data, block.size, HEADER).putInt(0).putInt(size);
    event.writeToMemory(block.data, Platform.BYTE_ARRAY_OFFSET + block.size + HEADER);
    total.add(block.data, block.size + HEADER, size, key, keySize);
    block.size += HEADER + size;
  }

  /** Return a text or bytes without a copy: rows have both in the same form. */
  private static UTF8String value(InternalRow row, int column) {
    boolean isBytes = !(row instanceof UnsafeRow) && row.get(column, null) instanceof byte[];
    return row.isNullAt(column) ? null : isBytes ? UTF8String.fromBytes(row.getBinary(column)) : row.getUTF8String(column);
  }

  private void setKey(UTF8String text) {
    keySize = text == null ? -1 : text.numBytes();
    if (keySize > key.length) {
      key = new byte[2 * keySize];
    }
    if (keySize > 0) {
      text.writeToMemory(key, Platform.BYTE_ARRAY_OFFSET);
    }
  }

  private Segment segmentOf(double position) {
    int last = segments.length - 1;
    int found = 0;
    while (found < last && position >= segments[found].high) {
      found++;
    }
    return segments[found];
  }

  private byte[] buffer(int size) {
    byte[] kept = size > blockSize ? null : free.poll();
    return kept == null ? new byte[Math.max(size, blockSize)] : kept;
  }

  /** Let Python write an event that does not fit into one message, after all events before it. */
  private void writeLarge(byte[] event) throws IOException {
    total.add(event, 0, event.length, key, keySize);
    flush();
    for (int at = 0; at < event.length; at += PIECE) {
      support.ask(request("write_piece").put("data", encoded(event, at, Math.min(PIECE, event.length - at))));
    }
    String text = keySize < 0 ? null : new String(key, 0, keySize, StandardCharsets.UTF_8);
    open(support.ask(request("write_large").put("key", text)));
  }

  // ---- blocks ----

  private void open(JsonNode answer) {
    JsonNode places = answer.get("segments");
    segments = new Segment[places.size()];
    for (int i = 0; i < segments.length; i++) {
      segments[i] = new Segment(places.get(i));
    }
    blockSize = Math.max(SMALLEST_BLOCK, Math.min(BLOCK, WINDOW / segments.length));
    free.removeIf(each -> each.length != blockSize);
  }

  private void send(Segment segment) {
    Block block = segment.filling;
    segment.filling = null;
    block.last = segment.number += block.count;
    sent.add(block);
    inFlight += block.size;
    try {
      asked = segment;
      if (segment.link == null) {
        bind(segment);
      }
      transmit(segment, block);
      while (inFlight > WINDOW) {
        asked = sent.peek().segment;
        receive(asked.link);
      }
    } catch (IOException error) {
      takeOver(error);
    }
  }

  /** Send all rows, and wait until the segments have them. */
  private void flush() {
    for (Segment each : segments == null ? new Segment[0] : segments) {
      if (each.filling != null) {
        send(each);
      }
    }
    try {
      while (!sent.isEmpty()) {
        asked = sent.peek().segment;
        receive(asked.link);
      }
    } catch (IOException error) {
      takeOver(error);
    }
  }

  private void bind(Segment segment) throws IOException {
    String place = segment.place.get("host").asText() + ":" + segment.place.get("port").asInt();
    StoreLink link = links.get(place);
    if (link == null) {
      String host = segment.place.get("host").asText();
      link = StoreLink.open(host, segment.place.get("port").asInt(), support.tls(), support.quiet());
      links.put(place, link);
      link.greet(place, "write");
    }
    byte[] token = segment.place.get("token").asText().getBytes(StandardCharsets.UTF_8);
    link.setUpAppend(++requests, segment.writer, segment.name, token);
    while (!segment.ready) {
      receive(link);
    }
    segment.link = link;
  }

  private void transmit(Segment segment, Block block) throws IOException {
    segment.link.append(segment.writer, ByteBuffer.wrap(block.data, 0, block.size), block.count, block.last, ++requests);
  }

  private void receive(StoreLink link) throws IOException {
    ByteBuffer header = ByteBuffer.allocate(HEADER);
    ByteBuffer body;
    long since = System.nanoTime();
    do {
      if ((System.nanoTime() - since) / 1e9 > support.quiet()) {
        throw new SocketTimeoutException("only keep-alives for " + Math.round(support.quiet()) + " s");
      }
      link.read(header.clear());
      body = ByteBuffer.allocate(header.getInt(4));
      link.read(body);
    } while (header.getInt(0) == StoreLink.KEEP_ALIVE);
    switch (header.getInt(0)) {
      case StoreLink.DATA_APPENDED -> acknowledged(new UUID(body.getLong(0), body.getLong(8)), body.getLong(16));
      case StoreLink.APPEND_SETUP -> {
        int writer = 10 + body.getShort(8);
        asked.ready = asked.writer.equals(new UUID(body.getLong(writer), body.getLong(writer + 8)));
      }
      default -> throw new IOException("it answered an append with message " + header.getInt(0));
    }
  }

  private void acknowledged(UUID writer, long number) {
    sent.removeIf(block -> {
      boolean durable = block.last <= number && block.segment.writer.equals(writer);
      if (durable) {
        takeOvers = 0;
        inFlight -= block.size;
        if (block.data.length == blockSize) {
          free.add(block.data);
        }
      }
      return durable;
    });
  }

  /** Let Python make all rows durable, those that were sent and those that were not. Go on with its segments. */
  private void takeOver(IOException error) {
    closeLinks();
    checkTask(); // a killed task has lost its connections by its interrupt
    for (Segment each : segments) {
      if (each.filling != null) {
        each.filling.last = each.number += each.filling.count;
        sent.add(each.filling);
        each.filling = null; // flush() may be on its way through these segments
      }
    }
    for (Block block : sent) {
      ByteBuffer positions = ByteBuffer.allocate(8 * block.count);
      positions.asDoubleBuffer().put(block.positions, 0, block.count);
      ObjectNode request = request("write_block").put("segment", block.segment.place.get("id").asLong());
      request.put("writer", block.segment.writer.toString()).put("before", block.last - block.count);
      request.put("positions", encoded(positions.array(), 0, positions.capacity()));
      support.ask(request.put("data", encoded(block.data, 0, block.size)));
    }
    sent.clear();
    inFlight = 0;
    ObjectNode request = request("write_take_over").put("segment", asked.place.get("id").asLong());
    request.put("fails", ++takeOvers > TAKE_OVERS);
    open(support.ask(request.put("text", error.getMessage() == null ? error.toString() : error.getMessage())));
  }

  private static void checkTask() {
    try {
      StoreLink.checkTask();
    } catch (InterruptedIOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static String encoded(byte[] data, int from, int size) {
    return StandardCharsets.ISO_8859_1.decode(Base64.getEncoder().encode(ByteBuffer.wrap(data, from, size))).toString();
  }

  private static ObjectNode request(String action) {
    ObjectNode request = Planning.request(action);
    TaskContext task = TaskContext.get();
    ObjectNode properties = request.put("partition", task.partitionId()).putObject("properties");
    for (String name : PROPERTIES) {
      properties.put(name, task.getLocalProperty(name));
    }
    return request;
  }

  // ---- end ----

  @Override
  public WriterCommitMessage commit() {
    flush();
    ObjectNode request = request("write_finish").put("rows", total.rows).put("bytes", total.bytes);
    return PravegaWrite.message(support.ask(request.put("first", total.lanes[0]).put("second", total.lanes[1])).asText());
  }

  /** Python drops the rows of a task that did not finish, see {@link #close}. */
  @Override
  public void abort() {}

  @Override
  public void close() {
    closeLinks();
    support.ended();
  }

  private void closeLinks() {
    links.values().forEach(StoreLink::close);
    links.clear();
  }
}
