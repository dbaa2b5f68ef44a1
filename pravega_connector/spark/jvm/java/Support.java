package pravegaserde.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.SparkFiles;
import org.apache.spark.api.python.PythonUtils;

/**
 * The project's Python on an executor, for all that is not the plain read of a range: a segment that has moved, a token
 * that expires, a lost connection, lost data.
 *
 * <p>A process is started by the first task of this JVM that needs it. It ends with the JVM.
 */
final class Support {
  private static final AtomicLong NUMBERS = new AtomicLong();
  private static final Map<String, Helper> HELPERS = new HashMap<>();

  private final JsonNode settings;
  /** Session of a slice in the Python process. */
  private long number = NUMBERS.incrementAndGet();
  private boolean progressed;
  /** Dead letters of the slice in a file that Python has not completed. */
  private long letters;
  private Helper helper;

  Support(String settings) {
    this.settings = Planning.parse(settings);
  }

  double quiet() {
    return settings.get("quiet").asDouble();
  }

  StoreLink.Tls tls() {
    JsonNode tls = settings.get("tls");
    if (tls.isNull()) {
      return null;
    }
    boolean checksHost = tls.get("checks_host").asBoolean();
    return new StoreLink.Tls(tls.get("authorities").textValue(), tls.get("server_name").textValue(), checksHost);
  }

  // ---- requests ----

  ObjectNode lost(IOException error) {
    return Planning.request("lost").put("text", error.getMessage() == null ? error.toString() : error.getMessage());
  }

  ObjectNode frame(long offset, byte[] header) {
    return Planning.request("frame").put("offset", offset).put("header", header);
  }

  ObjectNode answered(ByteBuffer head, int name, long offset, int size, Integer wanted, boolean end) {
    byte[] segment = new byte[name];
    head.get(0, segment);
    ObjectNode request = Planning.request("answered").put("segment", new String(segment, StandardCharsets.UTF_8));
    return request.put("offset", offset).put("size", size).put("wanted", wanted).put("end_of_segment", end);
  }

  ObjectNode replied(int type, byte[] reply, Map<Long, Integer> inFlight) {
    ObjectNode request = Planning.request("replied").put("type", type).put("reply", reply);
    inFlight.forEach((offset, length) -> request.withArray("in_flight").addArray().add(offset).add(length));
    return request;
  }

  /** Note that bytes of the segment have arrived: an outage is over. */
  void progressed() {
    progressed = true;
  }

  /** Note that the slice was read to its end: its dead letters are complete. */
  void completed() {
    if (letters > 0) {
      ask(Planning.request("complete").put("letters", letters));
    }
    ended();
  }

  /** Note that the slice is done. */
  void ended() {
    letters = 0;
    if (helper != null) {
      helper.send(Planning.request("end").put("session", number).toString());
      helper = null;
      number = NUMBERS.incrementAndGet();
    }
  }

  /**
   * Return the answer to a request. Throws ReadException with the text of a Python error.
   *
   * <p>Only the process that has begun a write knows its transaction, so a write ends with it. A read gets a new process.
   */
  JsonNode ask(ObjectNode request) {
    request.put("session", number).put("options", settings.get("options").asText()).put("progressed", progressed);
    progressed = false;
    String action = Planning.action(request);
    try {
      if (helper == null || action.equals("read") && !helper.process.isAlive()) {
        helper = running();
      }
      JsonNode answer = Planning.ok(request, Planning.JSON.readTree(helper.ask(request)));
      letters += answer.path("letters").asLong();
      return answer;
    } catch (IOException error) {
      throw new ReadException(action, "[PRAVEGA-CONNECTION-LOST] the Python process that helps this executor failed: "
          + error.getMessage() + ". Spark must run the task again. If the process was killed for its memory, raise "
          + "spark.executor.memoryOverhead");
    }
  }

  private Helper running() throws IOException {
    String python = settings.get("python").asText();
    synchronized (HELPERS) {
      Helper known = HELPERS.get(python);
      if (known == null || !known.process.isAlive()) {
        known = new Helper(settings);
        HELPERS.put(python, known);
      }
      return known;
    }
  }

  /** Python process that answers lines of JSON, in any order. */
  private static final class Helper {
    private final Process process;
    private final OutputStream input;
    private final Map<Long, CompletableFuture<String>> waiting = new ConcurrentHashMap<>();
    private final AtomicLong ids = new AtomicLong();

    Helper(JsonNode settings) throws IOException {
      ProcessBuilder builder = new ProcessBuilder(
          settings.get("python").asText(), "-m", "pravega_connector.spark.jvm.support");
      builder.environment().put("PYTHONPATH", path(settings));
      builder.redirectError(ProcessBuilder.Redirect.INHERIT);
      process = builder.start();
      input = process.getOutputStream();
      Thread reader = new Thread(this::read, "pravega-python-support");
      reader.setDaemon(true);
      reader.start();
      Runtime.getRuntime().addShutdownHook(new Thread(process::destroy));
    }

    /** Modules of the job: those of its worker processes. */
    private static String path(JsonNode settings) {
      List<String> places = new ArrayList<>();
      settings.get("path").forEach(each -> places.add(each.asText()));
      String files = SparkFiles.getRootDirectory();
      places.add(files);
      settings.get("includes").forEach(each -> places.add(new File(files, each.asText()).getPath()));
      places.add(PythonUtils.sparkPythonPath());
      if (System.getenv("PYTHONPATH") != null) {
        places.add(System.getenv("PYTHONPATH"));
      }
      places.removeIf(String::isEmpty);
      return String.join(File.pathSeparator, places);
    }

    private void read() {
      try (BufferedReader lines = process.inputReader(StandardCharsets.UTF_8)) {
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
          CompletableFuture<String> future = waiting.remove(Planning.JSON.readTree(line).get("id").asLong());
          if (future != null) {
            future.complete(line);
          }
        }
      } catch (IOException | RuntimeException error) {
        process.destroy();
      }
      waiting.values().forEach(each -> each.completeExceptionally(new IOException("it has ended")));
    }

    synchronized void send(String line) {
      try {
        input.write((line + "\n").getBytes(StandardCharsets.UTF_8));
        input.flush();
      } catch (IOException error) {
        process.destroy();
      }
    }

    String ask(ObjectNode request) throws IOException {
      long id = ids.incrementAndGet();
      CompletableFuture<String> future = new CompletableFuture<>();
      waiting.put(id, future);
      send(request.put("id", id).toString());
      while (true) {
        try {
          return future.get(1, TimeUnit.SECONDS);
        } catch (TimeoutException error) {
          StoreLink.checkTask();
          if (!process.isAlive() && !future.isDone()) {
            throw new IOException("it has ended");
          }
        } catch (ExecutionException error) {
          throw new IOException(error.getCause().getMessage(), error);
        } catch (InterruptedException error) {
          Thread.currentThread().interrupt();
          throw new IOException("the task was interrupted", error);
        }
      }
    }
  }
}
