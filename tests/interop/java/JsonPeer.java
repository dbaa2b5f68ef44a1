import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;

/**
 * A program that is asked: one JSON request a line on standard input, one JSON answer a line on standard
 * output, {"value": ...} or {"error": TEXT}. Requests that go to a server have "controller", "scope" and "stream".
 */
abstract class JsonPeer {
    private static final Gson GSON = new GsonBuilder().serializeNulls().create();

    private record Failure(String error) {
    }

    private record Done(Object value) {
    }

    /** The value of the answer. */
    abstract Object answer(JsonObject request) throws Exception;

    /** Answer until the input ends, and end the process. */
    final void serve() throws IOException {
        PrintStream answers = System.out;
        System.setOut(System.err); // whatever the client prints must not mix with the answers
        answers.println("{\"ready\": \"java " + Runtime.version() + "\"}");
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.println(ascii(GSON.toJson(done(GSON.fromJson(line, JsonObject.class)))));
            answers.flush();
        }
        System.exit(0);
    }

    // Whatever the output's encoding, and for text that has none.
    private static String ascii(String json) {
        if (json.chars().allMatch(c -> c < 0x7f)) {
            return json;
        }
        StringBuilder escaped = new StringBuilder();
        json.chars().forEach(c -> escaped.append(c < 0x7f ? String.valueOf((char) c) : String.format("\\u%04x", c)));
        return escaped.toString();
    }

    private Object done(JsonObject request) {
        try {
            return new Done(answer(request));
        } catch (Exception e) {
            e.printStackTrace();
            return new Failure(e.toString());
        }
    }

    static IllegalArgumentException unknown(JsonObject request) {
        return new IllegalArgumentException("no such request: " + request);
    }

    /** Null where it is missing, or null. */
    static String text(JsonObject request, String name) {
        JsonElement value = request.get(name);
        return value == null || value.isJsonNull() ? null : value.getAsString();
    }

    static ClientConfig config(JsonObject request) {
        return ClientConfig.builder().controllerURI(URI.create(text(request, "controller"))).build();
    }

    static EventStreamClientFactory factory(JsonObject request) {
        return EventStreamClientFactory.withScope(text(request, "scope"), config(request));
    }

    interface EventTarget {
        void write(String key, String event) throws Exception;
    }

    /** Give the request's "events", [[KEY, EVENT]...], to a writer or a transaction. */
    static void writeAll(JsonObject request, EventTarget target) throws Exception {
        for (JsonElement pair : request.get("events").getAsJsonArray()) {
            target.write(pair.getAsJsonArray().get(0).getAsString(), pair.getAsJsonArray().get(1).getAsString());
        }
    }
}
