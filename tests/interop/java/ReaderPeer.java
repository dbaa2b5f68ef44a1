import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.stream.Checkpoint;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.Position;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.ReaderSegmentDistribution;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamCut;
import io.pravega.client.stream.impl.ByteArraySerializer;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * A Java application that shares a reader group with others, through the public Java client: readers that stay open
 * between requests, and what is done to the group from outside.
 *
 * <pre>
 *   {"do": "create", CONFIG}                              ReaderGroupManager.createReaderGroup, and its answer
 *   {"do": "reset", CONFIG or "streams": null}            resetReaderGroup, with a configuration or without
 *   {"do": "resetTo", CONFIG, "bytes": HEX}               the same, with the cuts of a checkpoint
 *   {"do": "delete"}
 *   {"do": "open", "reader": R}                           come into the group
 *   {"do": "read", "reader": R, "count": N, "ms": T}      up to N events, until there is none for T ms or a checkpoint:
 *                                                         [{"segment", "offset", "payload"} or {"checkpoint"}...], and
 *                                                         the "position" after the last one, all in {"read", "position"}
 *   {"do": "close", "reader": R, "position": HEX or null} leave the group, from a position on
 *   {"do": "offline", "reader": R, "position": HEX or null}
 *   {"do": "look"}                                        "readers", "segments" of each, "unassigned", "cuts"
 *   {"do": "unread"}                                      unreadBytes
 *   {"do": "begin", "checkpoint": C}                      initiateCheckpoint; without a name generateStreamCuts
 *   {"do": "cancel"}                                      cancelOutstandingCheckpoints
 *   {"do": "await", "checkpoint": C, "ms": T}             "cuts" and "bytes" of what was begun; null if it takes longer
 * </pre>
 *
 * Asked as JsonPeer says, all but read with "group". CONFIG is "streams": {STREAM: [START, END]...}, cuts as text or null,
 * "checkpointMs" (-1: none), "refreshMs" and "retention", a number.
 */
public final class ReaderPeer extends JsonPeer {
    private final ScheduledExecutorService executor = Executors.newScheduledThreadPool(1);
    private final Map<String, EventStreamReader<byte[]>> readers = new HashMap<>();
    private final Map<String, ReaderGroup> groups = new HashMap<>();
    private final Map<String, CompletableFuture<Map<String, Object>>> begun = new HashMap<>();
    private ReaderGroupManager manager;
    private EventStreamClientFactory factory;

    private ReaderPeer() {
    }

    public static void main(String[] args) throws IOException {
        new ReaderPeer().serve();
    }

    @Override
    Object answer(JsonObject request) throws Exception {
        if (manager == null) { // one controller and one scope
            manager = ReaderGroupManager.withScope(text(request, "scope"), config(request));
            factory = factory(request);
        }
        String group = text(request, "group");
        switch (text(request, "do")) {
            case "create":
                return manager.createReaderGroup(group, groupConfig(request).build());
            case "reset":
                reset(group(group), request);
                return null;
            case "resetTo":
                group(group).resetReaderGroup(groupConfig(request).startFromCheckpoint(Checkpoint.fromBytes(
                        bytes(text(request, "bytes")))).build());
                return null;
            case "delete":
                close(groups.remove(group));
                manager.deleteReaderGroup(group);
                return null;
            case "open":
                readers.put(text(request, "reader"), factory.createReader(text(request, "reader"), group,
                        new ByteArraySerializer(), ReaderConfig.builder().build()));
                return null;
            case "read":
                return read(readers.get(text(request, "reader")), request.get("count").getAsInt(),
                        request.get("ms").getAsLong());
            case "close":
                leave(readers.remove(text(request, "reader")), position(request));
                return null;
            case "offline":
                group(group).readerOffline(text(request, "reader"), position(request));
                return null;
            case "look":
                return look(group(group));
            case "unread":
                return group(group).getMetrics().unreadBytes();
            case "begin":
                begin(group(group), text(request, "checkpoint"));
                return null;
            case "cancel":
                group(group).cancelOutstandingCheckpoints();
                return null;
            case "await":
                return await(text(request, "checkpoint"), request.get("ms").getAsLong());
            default:
                throw unknown(request);
        }
    }

    private static ReaderGroupConfig.ReaderGroupConfigBuilder groupConfig(JsonObject request) {
        ReaderGroupConfig.ReaderGroupConfigBuilder builder = ReaderGroupConfig.builder()
                .groupRefreshTimeMillis(request.get("refreshMs").getAsLong())
                .automaticCheckpointIntervalMillis(request.get("checkpointMs").getAsLong())
                .retentionType(ReaderGroupConfig.StreamDataRetention.values()[request.get("retention").getAsInt()]);
        for (Map.Entry<String, JsonElement> stream : request.get("streams").getAsJsonObject().entrySet()) {
            builder.stream(stream.getKey(), cut(stream.getValue().getAsJsonArray().get(0)),
                    cut(stream.getValue().getAsJsonArray().get(1)));
        }
        return builder;
    }

    private static StreamCut cut(JsonElement text) {
        return text.isJsonNull() ? StreamCut.UNBOUNDED : StreamCut.from(text.getAsString());
    }

    private static Position position(JsonObject request) {
        String hex = text(request, "position");
        return hex == null ? null : Position.fromBytes(bytes(hex));
    }

    private static ByteBuffer bytes(String hex) {
        return ByteBuffer.wrap(HexFormat.of().parseHex(hex));
    }

    private static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    private static Map<String, String> texts(Map<Stream, StreamCut> cuts) {
        Map<String, String> texts = new TreeMap<>();
        cuts.forEach((stream, cut) -> texts.put(stream.getScopedName(), cut.asText()));
        return texts;
    }

    private ReaderGroup group(String name) {
        return groups.computeIfAbsent(name, manager::getReaderGroup);
    }

    private static void close(ReaderGroup group) {
        if (group != null) {
            group.close();
        }
    }

    private static void reset(ReaderGroup group, JsonObject request) {
        if (request.get("streams").isJsonNull()) {
            group.resetReaderGroup();
        } else {
            group.resetReaderGroup(groupConfig(request).build());
        }
    }

    private static void leave(EventStreamReader<byte[]> reader, Position position) {
        if (position == null) {
            reader.close();
        } else {
            reader.closeAt(position);
        }
    }

    private static Map<String, Object> read(EventStreamReader<byte[]> reader, int count, long milliseconds) {
        List<Object> read = new ArrayList<>();
        String position = null;
        while (read.size() < count) {
            EventRead<byte[]> event = reader.readNextEvent(milliseconds);
            if (event.isCheckpoint()) {
                read.add(Map.of("checkpoint", event.getCheckpointName()));
            } else if (event.getEvent() != null) {
                read.add(described(event));
            }
            position = hex(event.getPosition().toBytes());
            if (event.getEvent() == null) {
                break;
            }
        }
        Map<String, Object> answer = new HashMap<>();
        answer.put("read", read);
        answer.put("position", position);
        return answer;
    }

    private static Map<String, Object> described(EventRead<byte[]> event) {
        String pointer = event.getEventPointer().toString(); // "SEGMENT:OFFSET-LENGTH": the getters are not public
        int colon = pointer.lastIndexOf(':');
        return Map.of("segment", pointer.substring(0, colon), "offset",
                Long.parseLong(pointer.substring(colon + 1, pointer.lastIndexOf('-'))),
                "payload", HexFormat.of().formatHex(event.getEvent()));
    }

    private static Map<String, Object> look(ReaderGroup group) {
        ReaderSegmentDistribution segments = group.getReaderSegmentDistribution();
        Map<String, Object> found = new HashMap<>();
        found.put("readers", new TreeSet<>(group.getOnlineReaders()));
        found.put("segments", segments.getReaderSegmentDistribution());
        found.put("unassigned", segments.getUnassignedSegments());
        found.put("cuts", texts(group.getStreamCuts()));
        return found;
    }

    private void begin(ReaderGroup group, String checkpoint) {
        begun.put(String.valueOf(checkpoint), checkpoint == null
                ? group.generateStreamCuts(executor).thenApply(cuts -> Map.of("cuts", texts(cuts)))
                : group.initiateCheckpoint(checkpoint, executor).thenApply(ReaderPeer::described));
    }

    private static Map<String, Object> described(Checkpoint checkpoint) {
        return Map.of("bytes", hex(checkpoint.toBytes()), "cuts", texts(checkpoint.asImpl().getPositions()));
    }

    private Object await(String checkpoint, long milliseconds) throws Exception {
        try {
            return begun.get(String.valueOf(checkpoint)).get(milliseconds, TimeUnit.MILLISECONDS);
        } catch (TimeoutException late) {
            return null;
        }
    }
}
