package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;

/**
 * Follower of one segment, in a thread of its own: it passes on events as they arrive, until the segment is sealed and
 * read, or the thread is interrupted.
 *
 * <p>The segment store holds a read at the tail until there are bytes. A quiet store must answer a keep-alive. A read
 * that was held for long is sent again on a new connection, in case the store has lost it. For failures, see {@link
 * Support}.
 */
final class SegmentTail implements Runnable {
  private static final int SEGMENT_IS_SEALED = 51;
  private static final double PING_SECONDS = 5;
  private static final double HELD_SECONDS = 60;
  /** Pause after an answer without bytes: a store that is shutting down sends them at once. */
  private static final long PAUSE_MILLIS = 100;

  private final int number;
  private final Task.Slice slice;
  private final byte[] segment;
  private final Support support;
  private final BlockingQueue<TailReader.Arrival> arrivals;
  private final ByteBuffer head = ByteBuffer.allocate(4096);

  private StoreLink link;
  private String host;
  private int port;
  private byte[] token;
  private double renewal;
  private double quiet;
  /** Offset of the next byte to come. */
  private long position;
  /** Bytes before {@code position} that belong to an event whose rest is still to come. */
  private byte[] data = new byte[1 << 16];
  private int carried;
  private boolean ended;

  SegmentTail(int number, Task.Slice slice, Support support, BlockingQueue<TailReader.Arrival> arrivals) {
    this.number = number;
    this.slice = slice;
    this.support = support;
    this.arrivals = arrivals;
    segment = slice.segment().getBytes(StandardCharsets.UTF_8);
    position = slice.start();
    quiet = support.quiet();
    if (slice.host() != null) {
      at(slice.host(), slice.port(), slice.token(), slice.renewal());
    }
  }

  @Override
  public void run() {
    try {
      while (!ended && position < slice.end()) {
        follow();
      }
      if (carried > 0) {
        recover(support.frame(position - carried, Arrays.copyOf(data, Math.min(carried, EventColumns.HEADER))));
      }
    } catch (InterruptedException | InterruptedIOException interrupt) {
      // The task has ended: it has all events that it wanted.
    } catch (Throwable error) {
      fail(error);
    } finally {
      unlink();
      support.ended();
    }
  }

  private void fail(Throwable error) {
    try {
      pass(position - carried, List.of(), error);
    } catch (InterruptedException interrupt) {
      // The task has ended, also because of another error.
    }
  }

  private void pass(long first, List<byte[]> events, Throwable error) throws InterruptedException {
    arrivals.put(new TailReader.Arrival(number, first, events, error));
  }

  private void follow() throws IOException, InterruptedException {
    try {
      receive();
    } catch (SegmentReader.Refusal refusal) {
      recover(refusal.failure);
    } catch (InterruptedIOException error) {
      if (!(error instanceof SocketTimeoutException)) {
        throw error;
      }
      recover(support.lost(error));
    } catch (IOException error) {
      recover(support.lost(error));
    }
    List<byte[]> events = new ArrayList<>();
    long first = position - carried;
    parse(events);
    if (!events.isEmpty()) {
      pass(first, events, null);
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

  private void unlink() {
    if (link != null) {
      link.close();
      link = null;
    }
  }

  /** Ask the Python side about this segment. Throws what it returns as an error. */
  private JsonNode ask(ObjectNode request) {
    request.put("scope", slice.scope()).put("stream", slice.stream()).put("segment_id", slice.segmentId());
    return support.ask(request.put("event", position - carried));
  }

  /** Tell the Python side of a failure, and continue as it says. */
  private void recover(ObjectNode failure) throws InterruptedException {
    unlink();
    failure.put("start", slice.start()).put("end", slice.end()).put("store", host + ":" + port);
    JsonNode answer = ask(failure.put("position", position));
    quiet = answer.get("quiet").asDouble();
    at(answer);
    long event = answer.get("event").asLong();
    if (event >= slice.end()) {
      ended = true; // the rest of the segment is lost: the next batch resumes after it
      carried = 0;
    } else if (event != position - carried) {
      carried = 0;
      position = event;
      pass(position, List.of(), null);
    }
  }

  // ---- requests and answers ----

  private void connect() throws IOException {
    link = StoreLink.open(host, port, support.tls(), quiet);
    link.greet(host + ":" + port, "read");
  }

  /** Append the next bytes of the segment to {@code data}; none if the read was held for long. */
  private void receive() throws IOException, InterruptedException {
    if (host == null || System.currentTimeMillis() / 1000.0 >= renewal) {
      at(ask(support.place()));
      unlink();
    }
    if (link == null) {
      connect();
    }
    int wanted = (int) Math.min(SegmentReader.CHUNK, slice.end() - position);
    link.requestRead(segment, position, wanted, token);
    long since = System.nanoTime();
    while (awaitMessage(since)) {
      int type = head.getInt(0);
      int length = head.getInt(4);
      int limit = type == SegmentReader.SEGMENT_READ ? SegmentReader.CHUNK + (1 << 17) : SegmentReader.MAX_REPLY;
      if (length < 0 || length > limit) {
        throw new IOException("a message of " + length + " bytes");
      }
      if (type == SegmentReader.SEGMENT_READ) {
        int size = answer(length, wanted);
        if (size == 0 && !ended) {
          Thread.sleep(PAUSE_MILLIS);
        }
        return;
      }
      byte[] message = new byte[length];
      link.read(ByteBuffer.wrap(message));
      if (type != StoreLink.KEEP_ALIVE) {
        refused(type, message, wanted);
        return;
      }
    }
    unlink();
  }

  /** Read the header of the next message; return false if the store has held the read for long. */
  private boolean awaitMessage(long since) throws IOException {
    boolean pinged = false;
    head.clear().limit(8);
    while ((System.nanoTime() - since) / 1e9 < HELD_SECONDS) {
      try {
        link.quiet = pinged || head.position() > 0 ? quiet : PING_SECONDS;
        link.read(head);
        link.quiet = quiet;
        return true;
      } catch (SocketTimeoutException silence) {
        if (pinged || head.position() > 0) {
          throw silence;
        }
        link.write(ByteBuffer.allocate(8).putInt(StoreLink.KEEP_ALIVE).putInt(0).flip());
        pinged = true;
      }
    }
    return false;
  }

  /** Read the answer to the read, and return the number of its bytes. */
  private int answer(int length, int wanted) throws IOException {
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
    boolean ours = Arrays.equals(segment, Arrays.copyOf(head.array(), name)) && offset == position;
    int most = Math.min(Math.max(wanted, SegmentReader.LEAST_ANSWER), length - fixed - 10);
    if (!ours || size < 0 || size > most) {
      throw new SegmentReader.Refusal(support.answered(head, name, offset, size, ours ? wanted : null, sealedEnd));
    }
    int kept = Math.min(size, wanted);
    if (data.length < carried + kept) {
      data = Arrays.copyOf(data, Math.max(carried + kept, Math.min(2 * data.length, SegmentReader.MAX_EVENT)));
    }
    link.read(ByteBuffer.wrap(data, carried, kept));
    link.read(ByteBuffer.allocate(length - 2 - fixed - kept - 8));
    readHead(8);
    if (head.getLong(0) != offset) {
      throw new IOException("an answer to request " + head.getLong(0) + " came for request " + offset);
    }
    carried += kept;
    position += kept;
    ended = sealedEnd;
    support.progressed();
    return size;
  }

  private void refused(int type, byte[] reply, int wanted) throws SegmentReader.Refusal {
    if (type == SEGMENT_IS_SEALED && reply.length >= 8 && ByteBuffer.wrap(reply).getLong() == position) {
      ended = true;
      return;
    }
    String text = Base64.getEncoder().encodeToString(reply);
    throw new SegmentReader.Refusal(support.replied(type, text, Map.of(position, wanted)));
  }

  private void readHead(int size) throws IOException {
    link.read(head.clear().limit(size));
  }

  // ---- events ----

  /** Take the complete events from the beginning of {@code data}. */
  private void parse(List<byte[]> events) throws InterruptedException {
    ByteBuffer bytes = ByteBuffer.wrap(data, 0, carried);
    int at = 0;
    while (at + EventColumns.HEADER <= carried) {
      int length = bytes.getInt(at + 4);
      if (bytes.getInt(at) != 0 || length < 0 || length > SegmentReader.MAX_EVENT) {
        ended = true; // run() reports the invalid frame
        break;
      }
      if (length > carried - at - EventColumns.HEADER) {
        break;
      }
      at += EventColumns.HEADER + length;
      events.add(Arrays.copyOfRange(data, at - length, at));
    }
    System.arraycopy(data, at, data, 0, carried - at);
    carried -= at;
  }
}
