package pravegaserde.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.util.Arrays;
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
final class SegmentTail extends SegmentClient implements Runnable {
  private static final int SEGMENT_IS_SEALED = 51;
  private static final double PING_SECONDS = 5;
  private static final double HELD_SECONDS = 60;
  /** Pause after an answer without bytes: a store that is shutting down sends them at once. */
  private static final long PAUSE_MILLIS = 100;
  private static final byte[] NONE = {};

  private final int number;
  private final BlockingQueue<TailReader.Arrival> arrivals;
  private byte[] data = new byte[1 << 16];
  /** Bytes that the read has requested. */
  private int requested;
  private boolean ended;

  SegmentTail(int number, Task.Slice slice, Support support, BlockingQueue<TailReader.Arrival> arrivals) {
    super(support);
    this.number = number;
    this.arrivals = arrivals;
    begin(slice);
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
      pass(position - carried, NONE, error);
    } catch (InterruptedException interrupt) {
      // The task has ended, also because of another error.
    }
  }

  private void pass(long first, byte[] frames, Throwable error) throws InterruptedException {
    arrivals.put(new TailReader.Arrival(number, first, frames, error));
  }

  private void follow() throws IOException, InterruptedException {
    try {
      receive();
    } catch (Refusal refusal) {
      recover(refusal.failure);
    } catch (InterruptedIOException error) {
      if (!(error instanceof SocketTimeoutException)) {
        throw error;
      }
      recover(support.lost(error));
    } catch (IOException error) {
      recover(support.lost(error));
    }
    long first = position - carried;
    byte[] frames = takeFrames();
    if (frames.length > 0) {
      pass(first, frames, null);
    }
  }

  /** Tell the Python side of a failure, and continue as it says. */
  private void recover(ObjectNode failure) throws InterruptedException {
    long event = report(failure).get("event").asLong();
    if (event >= slice.end()) {
      ended = true; // the rest of the segment is lost: the next batch resumes after it
      carried = 0;
    } else if (event != position - carried) {
      carried = 0;
      position = event;
      pass(position, NONE, null);
    }
  }

  // ---- requests and answers ----

  /** Append the next bytes of the segment to {@code data}; none if the read was held for long. */
  private void receive() throws IOException, InterruptedException {
    if (locate()) {
      unlink();
    }
    if (link == null) {
      link = StoreLink.open(place.host(), place.port(), support.tls(), quiet);
      link.greet(place.address(), "read");
    }
    requested = (int) Math.min(CHUNK, slice.end() - position);
    link.requestRead(segment, position, requested, place.token());
    long since = System.nanoTime();
    while (awaitMessage(since)) {
      int type = head.getInt(0);
      int length = messageLength();
      if (type == SEGMENT_READ) {
        int size = answer(length);
        if (size == 0 && !ended) {
          Thread.sleep(PAUSE_MILLIS);
        }
        return;
      }
      byte[] message = new byte[length];
      link.read(ByteBuffer.wrap(message));
      if (type != StoreLink.KEEP_ALIVE) {
        refused(type, message);
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
  private int answer(int length) throws IOException {
    Answer answer = readAnswer(length, true);
    int kept = answer.kept();
    if (data.length < carried + kept) {
      data = Arrays.copyOf(data, Math.max(carried + kept, Math.min(2 * data.length, MAX_EVENT)));
    }
    link.read(ByteBuffer.wrap(data, carried, kept));
    readEnd(answer);
    received(kept);
    ended = answer.sealedEnd();
    return answer.size();
  }

  @Override
  Integer wanted(long offset) {
    return offset == position ? requested : null;
  }

  private void refused(int type, byte[] reply) throws Refusal {
    if (type == SEGMENT_IS_SEALED && reply.length >= 8 && ByteBuffer.wrap(reply).getLong() == position) {
      ended = true;
      return;
    }
    throw new Refusal(support.replied(type, reply, Map.of(position, requested)));
  }

  // ---- events ----

  /** Take the complete events, with their headers, from the beginning of {@code data}. */
  private byte[] takeFrames() {
    ByteBuffer bytes = ByteBuffer.wrap(data, 0, carried);
    int at = 0;
    while (at + EventColumns.HEADER <= carried) {
      int length = bytes.getInt(at + 4);
      if (!isFrame(bytes, at)) {
        ended = true; // run() reports the invalid frame
        break;
      }
      if (length > carried - at - EventColumns.HEADER) {
        break;
      }
      at += EventColumns.HEADER + length;
    }
    byte[] frames = Arrays.copyOf(data, at);
    System.arraycopy(data, at, data, 0, carried - at);
    carried -= at;
    return frames;
  }
}
