import com.google.gson.JsonObject;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamCut;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeSet;

/**
 * What an ordinary Java application does with reader groups, through the public Java client, for the interoperability
 * tests.
 *
 * <pre>
 *   {"do": "create", "group": G}                 a group that publishes its position by hand, as our subscribers are
 *   {"do": "look", "group": G}                   what ReaderGroupManager.getReaderGroup tells of a group
 *   {"do": "publish", "group": G, "at": CUT}     updateRetentionStreamCut
 * </pre>
 *
 * Asked as JsonPeer says.
 */
public final class GroupPeer extends JsonPeer {
    private GroupPeer() {
    }

    public static void main(String[] args) throws IOException {
        new GroupPeer().serve();
    }

    @Override
    Object answer(JsonObject request) throws Exception {
        try (ReaderGroupManager manager = ReaderGroupManager.withScope(text(request, "scope"), config(request))) {
            String name = text(request, "group");
            Stream stream = Stream.of(text(request, "scope"), text(request, "stream"));
            return switch (text(request, "do")) {
                case "create" -> manager.createReaderGroup(name, ReaderGroupConfig.builder().stream(stream)
                        .retentionType(ReaderGroupConfig.StreamDataRetention.MANUAL_RELEASE_AT_USER_STREAMCUT).build());
                case "look" -> look(manager.getReaderGroup(name));
                case "publish" -> publish(manager.getReaderGroup(name), stream, StreamCut.from(text(request, "at")));
                default -> throw unknown(request);
            };
        }
    }

    private static Map<String, Object> look(ReaderGroup group) {
        Map<String, Object> found = new HashMap<>();
        found.put("streams", new TreeSet<>(group.getStreamNames()));
        found.put("readers", new TreeSet<>(group.getOnlineReaders()));
        found.put("unread", group.getMetrics().unreadBytes());
        found.put("cuts", new TreeSet<>(group.getStreamCuts().values().stream().map(StreamCut::asText).toList()));
        return found;
    }

    private static Object publish(ReaderGroup group, Stream stream, StreamCut cut) {
        group.updateRetentionStreamCut(Map.of(stream, cut));
        return null;
    }
}
