package io.pravega.client.stream.impl;

import io.pravega.client.segment.impl.Segment;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.ReaderGroupConfig.StreamDataRetention;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamCut;
import io.pravega.client.stream.impl.ReaderGroupState.AcquireSegment;
import io.pravega.client.stream.impl.ReaderGroupState.AddReader;
import io.pravega.client.stream.impl.ReaderGroupState.CheckpointReader;
import io.pravega.client.stream.impl.ReaderGroupState.ClearCheckpointsBefore;
import io.pravega.client.stream.impl.ReaderGroupState.CompactReaderGroupState;
import io.pravega.client.stream.impl.ReaderGroupState.CreateCheckpoint;
import io.pravega.client.stream.impl.ReaderGroupState.ReaderGroupStateInit;
import io.pravega.client.stream.impl.ReaderGroupState.ReleaseSegment;
import io.pravega.client.stream.impl.ReaderGroupState.RemoveOutstandingCheckpoints;
import io.pravega.client.stream.impl.ReaderGroupState.RemoveReader;
import io.pravega.client.stream.impl.ReaderGroupState.SegmentCompleted;
import io.pravega.client.stream.impl.ReaderGroupState.UpdateCheckpointPublished;
import io.pravega.client.stream.impl.ReaderGroupState.UpdateDistanceToTail;
import io.pravega.client.stream.impl.ReaderGroupState.UpdatingConfig;
import io.pravega.shared.NameUtils;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.function.Supplier;

/** Random values of what the Java client keeps of reader groups, by a seed: all kinds in turn. */
public final class GroupValues {
    private static final String[] STREAMS = {"a/b", "a/c", "scope.1/stream-2", "_system/_MARKx"};
    private static final String LONG_STREAM = "A-Z.0/" + "long".repeat(60);
    // Of readers and checkpoints: the classes take any text.
    private static final String[] NAMES = {"r1", "r2", "reader.3-x", "", "c", "x_SILENT_", "é", "日本", "\ud83d\ude00 two",
        "nul\0", "lone \ud800", "9b2d4e6a-1f0c-4c7b-8a55-0d5e3f6a7b8c"};
    private static final String LONG_NAME = "q".repeat(300);
    private static final long[] NUMBERS = {0, 1, -1, 5, 127, 128, 30_000, 1L << 40, Long.MAX_VALUE, Long.MIN_VALUE};

    private final Random random;

    private GroupValues(long seed) {
        random = new Random(seed);
    }

    /** A value, and the {@link GroupBytes#write kind} of its bytes. */
    public record Made(String kind, Object value) {
    }

    /** So many values. */
    public static List<Made> make(long seed, int count) {
        GroupValues values = new GroupValues(seed);
        List<Made> made = new ArrayList<>();
        for (int at = 0; at < count; at++) {
            made.add(values.next(at % 22));
        }
        return made;
    }

    private Made next(int number) {
        return switch (number) {
            case 0 -> new Made("update", init());
            case 1 -> new Made("update", state());
            case 2 -> new Made("update", new AddReader(name()));
            case 3 -> new Made("update", new RemoveReader(name(), chance() ? Map.of() : offsets()));
            case 4 -> new Made("update", new ReleaseSegment(name(), segment(), number()));
            case 5 -> new Made("update", new AcquireSegment(name(), segment()));
            case 6 -> new Made("update", new UpdateDistanceToTail(name(), number(), chance() ? null : positions()));
            case 7 -> new Made("update", new SegmentCompleted(name(), ranged(), map(this::ranged, this::ids)));
            case 8 -> new Made("update", new CheckpointReader(name(), name(), offsets()));
            case 9 -> new Made("update", new CreateCheckpoint(name()));
            case 10 -> new Made("update", new ClearCheckpointsBefore(name()));
            case 11 -> new Made("update", new UpdateCheckpointPublished(chance()));
            case 12 -> new Made("update", new UpdatingConfig(chance()));
            case 13 -> new Made("update", new RemoveOutstandingCheckpoints());
            case 14 -> new Made("init", init());
            case 15 -> new Made("init", state());
            case 16 -> new Made("entry", init());
            case 17 -> new Made("entry", state());
            case 18 -> new Made("config", config());
            case 19, 20 -> new Made("position", position());
            default -> new Made("checkpoint", new CheckpointImpl(name(), offsets()));
        };
    }

    private ReaderGroupStateInit init() {
        return new ReaderGroupStateInit(config(), positions(), offsets(), chance());
    }

    private CompactReaderGroupState state() {
        return CompactReaderGroupState.builder().config(config()).checkpointState(checkpoints())
                .distanceToTail(map(this::name, this::number))
                .futureSegments(map(this::ranged, () -> new HashSet<>(ids())))
                .assignedSegments(map(this::name, this::positions)).unassignedSegments(positions())
                .lastReadPosition(positions()).endSegments(offsets()).updatingConfig(chance()).build();
    }

    private CheckpointState checkpoints() {
        if (random.nextInt(4) == 0) {
            return new CheckpointState();
        }
        return CheckpointState.builder().checkpoints(list(this::name))
                .uncheckpointedHosts(map(this::name, () -> new ArrayList<>(new HashSet<>(list(this::name)))))
                .checkpointPositions(map(this::name, this::offsets))
                .lastCheckpointPosition(chance() ? null : offsets()).isLastCheckpointPublished(chance()).build();
    }

    private ReaderGroupConfig config() {
        ReaderGroupConfig.ReaderGroupConfigBuilder builder = ReaderGroupConfig.builder();
        Map<Stream, StreamCut> start = new HashMap<>();
        Map<Stream, StreamCut> end = new HashMap<>();
        for (int count = 1 + random.nextInt(3); count > 0; count--) {
            Stream stream = Stream.of(stream());
            Map<Segment, Long> positions = new HashMap<>();
            Map<Segment, Long> later = new HashMap<>();
            int epoch = random.nextInt(3);
            for (int number = size(); number >= 0; number--) {
                long id = NameUtils.computeSegmentId(number, epoch);
                Segment segment = new Segment(stream.getScope(), stream.getStreamName(), id);
                long offset = offset();
                positions.put(segment, offset);
                later.put(segment, offset < 0 ? -1 : offset + random.nextInt(9));
            }
            end.remove(stream);
            start.put(stream, chance() ? new StreamCutImpl(stream, positions) : StreamCut.UNBOUNDED);
            if (chance()) {
                end.put(stream, new StreamCutImpl(stream, later));
            } else if (chance()) {
                end.put(stream, StreamCut.UNBOUNDED);
            }
        }
        builder.startFromStreamCuts(start);
        if (!end.isEmpty()) {
            builder.endingStreamCuts(end);
        }
        if (chance()) {
            builder.disableAutomaticCheckpoints();
        } else if (chance()) {
            builder.automaticCheckpointIntervalMillis(number()).groupRefreshTimeMillis(number());
        }
        builder.maxOutstandingCheckpointRequest(1 + random.nextInt(chance() ? 3 : Integer.MAX_VALUE - 1));
        builder.retentionType(StreamDataRetention.values()[random.nextInt(3)]);
        return chance() ? builder.build()
                : ReaderGroupConfig.cloneConfig(builder.build(), new UUID(random.nextLong(), random.nextLong()), number());
    }

    private PositionImpl position() {
        if (chance()) {
            return new PositionImpl(map(this::ranged, () -> Math.max(-1, number() >> 2)));
        }
        Map<Segment, Long> owned = map(this::segment, () -> (long) random.nextInt(1000));
        Map<Segment, SegmentWithRange.Range> ranges = new HashMap<>();
        owned.keySet().forEach(segment -> ranges.put(segment, range()));
        List<Map.Entry<Segment, Long>> since = new ArrayList<>();
        owned.keySet().forEach(segment -> since.add(Map.entry(segment, (long) random.nextInt(5000) - 1)));
        return new PositionImpl(owned, chance() ? ranges : null, chance() ? since : null);
    }

    private Map<SegmentWithRange, Long> positions() {
        return map(this::ranged, this::number);
    }

    private Map<Segment, Long> offsets() {
        return map(this::segment, this::offset);
    }

    private List<Long> ids() {
        return list(() -> segment().getSegmentId());
    }

    private SegmentWithRange ranged() {
        return new SegmentWithRange(segment(), range());
    }

    private SegmentWithRange.Range range() {
        double one = random.nextDouble();
        double other = random.nextInt(4) / 3.0;
        return random.nextInt(3) == 0 ? null : new SegmentWithRange.Range(Math.min(one, other), Math.max(one, other));
    }

    private Segment segment() {
        String[] stream = stream().split("/");
        int number = random.nextInt(random.nextInt(8) == 0 ? Integer.MAX_VALUE : 40);
        return new Segment(stream[0], stream[1], NameUtils.computeSegmentId(number, random.nextInt(4)));
    }

    private String stream() {
        return seldom() ? LONG_STREAM : STREAMS[random.nextInt(STREAMS.length)];
    }

    private long number() {
        return chance() ? NUMBERS[random.nextInt(NUMBERS.length)] : random.nextLong() >>> random.nextInt(64);
    }

    // A cut takes no greater one.
    private long offset() {
        return random.nextInt(5) == 0 ? -1 : random.nextLong() >>> (4 + random.nextInt(59));
    }

    private String name() {
        return seldom() ? LONG_NAME : NAMES[random.nextInt(NAMES.length)];
    }

    private boolean chance() {
        return random.nextBoolean();
    }

    // What is large is as rare as a file of vectors has room for.
    private boolean seldom() {
        return random.nextInt(50) == 0;
    }

    private int size() {
        return seldom() ? 20 : random.nextInt(3);
    }

    private <T> List<T> list(Supplier<T> item) {
        List<T> items = new ArrayList<>();
        for (int count = size(); count > 0; count--) {
            items.add(item.get());
        }
        return items;
    }

    private <K, V> Map<K, V> map(Supplier<K> key, Supplier<V> value) {
        Map<K, V> map = new HashMap<>();
        for (int count = size(); count > 0; count--) {
            map.put(key.get(), value.get());
        }
        return map.isEmpty() && chance() ? Collections.emptyMap() : map;
    }
}
