import com.google.gson.JsonObject;
import io.pravega.client.admin.StreamManager;
import io.pravega.client.stream.ScalingPolicy;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamConfiguration;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/**
 * Less common calls of the Java client, for the interoperability tests.
 *
 * <pre>
 *   {"do": "create", "tags": [TAG...]}  creates a stream of one segment
 *   {"do": "tagged", "tag": TAG}        names of the streams of a scope with a tag
 *   {"do": "tags"}                      tags of a stream
 * </pre>
 *
 * Asked as JsonPeer says.
 */
public final class ClientPeer extends JsonPeer {
    private ClientPeer() {
    }

    public static void main(String[] args) throws IOException {
        new ClientPeer().serve();
    }

    @Override
    Object answer(JsonObject request) throws Exception {
        return switch (text(request, "do")) {
            case "create", "tagged", "tags" -> manage(request);
            default -> throw unknown(request);
        };
    }

    private static Object manage(JsonObject request) {
        String scope = text(request, "scope");
        String stream = text(request, "stream");
        try (StreamManager manager = StreamManager.create(config(request))) {
            return switch (text(request, "do")) {
                case "create" -> manager.createStream(scope, stream, StreamConfiguration.builder()
                        .scalingPolicy(ScalingPolicy.fixed(1)).tags(texts(request, "tags")).build());
                case "tagged" -> {
                    List<String> names = new ArrayList<>();
                    for (var found = manager.listStreams(scope, text(request, "tag")); found.hasNext(); ) {
                        Stream each = found.next();
                        names.add(each.getStreamName());
                    }
                    yield names;
                }
                default -> manager.getStreamTags(scope, stream);
            };
        }
    }

    private static Collection<String> texts(JsonObject request, String name) {
        List<String> found = new ArrayList<>();
        request.get(name).getAsJsonArray().forEach(each -> found.add(each.getAsString()));
        return found;
    }
}
