package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * What the readers of segments have in common: where a segment is, how answers look, and how a failure is reported.
 *
 * <p>It knows three messages: Hello, ReadSegment and SegmentRead. Whatever else happens goes to {@link Support}: the
 * project's Python decides what an answer means, pauses, finds the segment again, or returns an error.
 */
abstract class SegmentClient {
  static final int SEGMENT_READ = 10;

  /** Bytes of one request. */
  static final int CHUNK = 1 << 20;
  /** Bytes that a server may answer with although fewer were requested. */
  private static final int LEAST_ANSWER = 8;
  /** Largest event, in bytes, as in the Python reader. */
  static final int MAX_EVENT = 128 << 20;
  /** Largest message other than an answer to a read. */
  private static final int MAX_REPLY = 1 << 20;

  final Support support;
  final ByteBuffer head = ByteBuffer.allocateDirect(4096);
  Task.Slice slice;
  byte[] segment;
  /** Segment store of the segment; null if it is to be found. */
  Task.Place place;
  StoreLink link;
  double quiet;
  /** Offset of the next byte to come. */
  long position;
  /** Bytes before {@code position} that belong to an event whose rest is still to come. */
  int carried;

  SegmentClient(Support support) {
    this.support = support;
    quiet = support.quiet();
  }

  void begin(Task.Slice next) {
    slice = next;
    segment = next.segment().getBytes(StandardCharsets.UTF_8);
    place = next.place();
    position = next.start();
    carried = 0;
  }

  final void unlink() {
    if (link != null) {
      link.close();
      link = null;
    }
  }

  /** Ask the Python side about this slice. Throws what it returns as an error. */
  final JsonNode ask(ObjectNode request) {
    request.put("scope", slice.scope()).put("stream", slice.stream()).put("segment_id", slice.segmentId());
    return support.ask(request.put("event", position - carried));
  }

  /** Find the segment if its place is not known or the token expires. Return true if it was necessary. */
  final boolean locate() {
    if (place != null && System.currentTimeMillis() / 1000.0 < place.renewal()) {
      return false;
    }
    place = Task.Place.of(ask(Planning.request("place")));
    return true;
  }

  /** Tell the Python side of a failure, and return its answer: how to continue. */
  final JsonNode report(ObjectNode failure) {
    unlink();
    failure.put("start", slice.start()).put("end", slice.end()).put("store", place.address());
    JsonNode answer = ask(failure.put("position", position));
    quiet = answer.get("quiet").asDouble();
    place = Task.Place.of(answer);
    return answer;
  }

  // ---- messages ----

  final void readHead(int size) throws IOException {
    if (size > head.capacity()) {
      throw new IOException("a field of " + size + " bytes");
    }
    link.read(head.clear().limit(size));
  }

  /** Return the length of the message whose header was read. */
  final int messageLength() throws IOException {
    int length = head.getInt(4);
    int limit = head.getInt(0) == SEGMENT_READ ? CHUNK + (1 << 17) : MAX_REPLY;
    if (length < 0 || length > limit) {
      throw new IOException("a message of " + length + " bytes");
    }
    return length;
  }

  /** Answer to a read. Its {@code size} bytes of the segment come next, and are the first of {@code rest} bytes. */
  record Answer(long offset, int wanted, int size, boolean sealedEnd, int rest) {
    int kept() {
      return Math.min(size, wanted);
    }
  }

  /** Return the length of the request for bytes at an offset, or null if there is none. */
  abstract Integer wanted(long offset);

  /**
   * Read an answer up to its bytes. Throws Refusal if it is not the answer to a request. Unless it {@code mayBeShort},
   * also if it has no bytes, or ends the segment before the wanted ones.
   */
  final Answer readAnswer(int length, boolean mayBeShort) throws IOException {
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
    Integer wanted = wanted(offset);
    int rest = length - 2 - fixed - 8;
    boolean valid = ours && wanted != null && size >= 0 && size <= Math.max(wanted, LEAST_ANSWER) && size <= rest;
    if (!valid || !mayBeShort && (size == 0 || size < wanted && sealedEnd)) {
      throw new Refusal(support.answered(head, name, offset, size, wanted, sealedEnd));
    }
    return new Answer(offset, wanted, size, sealedEnd, rest);
  }

  /** Read what follows the bytes of an answer that were wanted. */
  final void readEnd(Answer answer) throws IOException {
    for (int left = answer.rest() - answer.kept(); left > 0; left -= head.capacity()) {
      readHead(Math.min(left, head.capacity()));
    }
    readHead(8);
    if (head.getLong(0) != answer.offset()) {
      throw new IOException("an answer to request " + head.getLong(0) + " came for request " + answer.offset());
    }
  }

  void received(int size) {
    carried += size;
    position += size;
    support.progressed();
  }

  static boolean isFrame(ByteBuffer data, int at) {
    int length = data.getInt(at + 4);
    return data.getInt(at) == 0 && length >= 0 && length <= MAX_EVENT;
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
