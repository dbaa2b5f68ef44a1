package pravegaserde.spark;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;

/** Requests to the driver's Python, which plans all reads. */
public final class Planning {
  /** Rows that Python has decoded are one text. */
  static final ObjectMapper JSON = new ObjectMapper(JsonFactory.builder()
      .streamReadConstraints(StreamReadConstraints.builder().maxStringLength(Integer.MAX_VALUE).build()).build());
  private static volatile Planner planner;

  private Planning() {}

  /** Set the planner of this driver; null removes it. */
  public static void set(Planner callback) {
    planner = callback;
  }

  static boolean isAvailable() {
    return planner != null;
  }

  static ObjectNode request(String action) {
    return JSON.createObjectNode().put("do", action);
  }

  static ObjectNode request(String action, String session, Map<String, String> options, String schema) {
    ObjectNode request = request(action).put("schema", schema).put("session", session);
    request.set("options", JSON.valueToTree(options));
    return request;
  }

  /** Return the answer to a request. Throws ReadException with the text of a Python error. */
  static JsonNode ask(ObjectNode request) {
    Planner current = planner;
    if (current == null) {
      throw new ReadException(action(request), "the Python driver that planned this query has ended");
    }
    return ok(request, parse(current.call(request.toString())));
  }

  static JsonNode parse(String text) {
    try {
      return JSON.readTree(text);
    } catch (com.fasterxml.jackson.core.JsonProcessingException error) {
      throw new ReadException("the Python driver sent an invalid answer: " + error.getOriginalMessage());
    }
  }

  /**
   * Return the answer to a request that {@code thread} sends. Throws as soon as this thread is interrupted, because the
   * query stops; the answer is then unused.
   */
  static JsonNode askUntilInterrupted(ExecutorService thread, ObjectNode request) {
    Future<JsonNode> answer = thread.submit(() -> ask(request));
    try {
      return answer.get();
    } catch (InterruptedException error) {
      throw new UncheckedIOException(new InterruptedIOException("the query was stopped while it was planned"));
    } catch (ExecutionException error) {
      throw error.getCause() instanceof RuntimeException cause ? cause : new IllegalStateException(error.getCause());
    }
  }

  static JsonNode ok(ObjectNode request, JsonNode answer) {
    if (answer.has("error")) {
      throw new ReadException(action(request), answer.get("error").asText());
    }
    return answer.get("ok");
  }

  /** Return the action that an error of a request names. */
  static String action(ObjectNode request) {
    return request.get("do").asText().startsWith("write") ? "write" : "read";
  }
}
