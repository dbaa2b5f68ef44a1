package io.pravega.client.stream.impl;

import io.pravega.client.admin.impl.ReaderGroupManagerImpl.ReaderGroupStateInitSerializer;
import io.pravega.client.admin.impl.ReaderGroupManagerImpl.ReaderGroupStateUpdatesSerializer;
import io.pravega.client.segment.impl.Segment;
import io.pravega.client.state.InitialUpdate;
import io.pravega.client.state.Revision;
import io.pravega.client.state.Update;
import io.pravega.client.state.impl.RevisionImpl;
import io.pravega.client.state.impl.UpdateOrInitSerializer;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamCut;
import io.pravega.client.stream.impl.ReaderGroupState.CompactReaderGroupState;
import io.pravega.client.stream.impl.ReaderGroupState.ReaderGroupStateInit;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * What the Java client keeps and hands on of reader groups: its bytes, and its values as plain ones of JSON. It stands
 * in the package of the client's classes, which most of them do not leave.
 *
 * <p>A plain value has the names of the Python classes and their fields. Segments are "scope/stream/id", an unbounded
 * cut is null, a set is an object whose values are null, and a map that is null is an empty one.
 */
public final class GroupBytes {
    private static final ReaderGroupStateUpdatesSerializer UPDATES = new ReaderGroupStateUpdatesSerializer();
    private static final ReaderGroupStateInitSerializer INITS = new ReaderGroupStateInitSerializer();

    private GroupBytes() {
    }

    /** A value of one of the kinds of {@link #read}, as plain values. */
    public static Object plain(Object value) {
        if (value instanceof ReaderGroupStateInit init) {
            return fields("Init", "config", config(init.getConfig()), "start", ranged(init.getStartingSegments()),
                    "end", offsets(init.getEndSegments()), "updating", init.isUpdatingConfig());
        } else if (value instanceof CompactReaderGroupState state) {
            return state(state);
        } else if (value instanceof ReaderGroupState.AddReader update) {
            return fields("AddReader", "reader", update.getReaderId());
        } else if (value instanceof ReaderGroupState.RemoveReader update) {
            return fields("RemoveReader", "reader", update.getReaderId(), "owned", offsets(update.getOwnedSegments()));
        } else if (value instanceof ReaderGroupState.ReleaseSegment update) {
            return fields("ReleaseSegment", "reader", update.getReaderId(), "segment", name(update.getSegment()),
                    "offset", update.getOffset());
        } else if (value instanceof ReaderGroupState.AcquireSegment update) {
            return fields("AcquireSegment", "reader", update.getReaderId(), "segment", name(update.getSegment()));
        } else if (value instanceof ReaderGroupState.UpdateDistanceToTail update) {
            return fields("UpdateDistanceToTail", "reader", update.getReaderId(), "distance",
                    update.getDistanceToTail(), "last_read", ranged(update.getLastReadPositions()));
        } else if (value instanceof ReaderGroupState.SegmentCompleted update) {
            Map<SegmentWithRange, List<Long>> successors = update.getSuccessorsMappedToTheirPredecessors();
            Map<String, Object> ranges = ranges(successors.keySet());
            ranges.put(name(update.getSegmentCompleted().getSegment()), range(update.getSegmentCompleted().getRange()));
            return fields("SegmentCompleted", "reader", update.getReaderId(), "segment",
                    name(update.getSegmentCompleted().getSegment()), "successors",
                    map(successors, segment -> name(segment.getSegment()), ids -> ids), "ranges", ranges);
        } else if (value instanceof ReaderGroupState.CheckpointReader update) {
            return fields("CheckpointReader", "checkpoint", update.getCheckpointId(), "reader", update.getReaderId(),
                    "positions", offsets(update.getPositions()));
        } else if (value instanceof ReaderGroupState.CreateCheckpoint update) {
            return fields("CreateCheckpoint", "checkpoint", update.getCheckpointId());
        } else if (value instanceof ReaderGroupState.ClearCheckpointsBefore update) {
            return fields("ClearCheckpointsBefore", "checkpoint", update.getClearUpToCheckpoint());
        } else if (value instanceof ReaderGroupState.UpdateCheckpointPublished update) {
            return fields("UpdateCheckpointPublished", "published", update.isCheckpointPublishedToController());
        } else if (value instanceof ReaderGroupState.UpdatingConfig update) {
            return fields("UpdatingConfig", "updating", update.isUpdatingConfig());
        } else if (value instanceof ReaderGroupState.RemoveOutstandingCheckpoints) {
            return fields("RemoveOutstandingCheckpoints");
        } else if (value instanceof ReaderGroupConfig config) {
            return config(config);
        } else if (value instanceof PositionImpl position) {
            Map<Segment, SegmentWithRange.Range> ranges = field(position, "segmentRanges");
            return fields("Ranged", "positions", offsets(position.getOwnedSegmentsWithOffsets()), "ranges",
                    map(ranges, GroupBytes::name, GroupBytes::range));
        }
        CheckpointImpl checkpoint = (CheckpointImpl) value;
        return fields("Checkpoint", "name", checkpoint.getName(), "cuts", cuts(checkpoint.getPositions()));
    }

    /** Bytes of a value, in hexadecimal, as the client itself makes them. */
    @SuppressWarnings("unchecked")
    public static String write(String kind, Object value) {
        return hex(switch (kind) {
            case "update" -> UPDATES.serialize((Update<ReaderGroupState>) value);
            case "init" -> INITS.serialize((InitialUpdate<ReaderGroupState>) value);
            case "entry" -> entry((InitialUpdate<ReaderGroupState>) value);
            case "config" -> ((ReaderGroupConfig) value).toBytes();
            case "position" -> ((PositionImpl) value).toBytes();
            case "checkpoint" -> ((CheckpointImpl) value).toBytes();
            default -> throw new IllegalArgumentException(kind);
        });
    }

    /** The value of bytes that are of a kind: update, init, config, position or checkpoint. */
    public static Object read(String kind, String bytes) {
        ByteBuffer data = ByteBuffer.wrap(HexFormat.of().parseHex(bytes));
        return switch (kind) {
            case "update" -> UPDATES.deserialize(data);
            case "init" -> INITS.deserialize(data);
            case "config" -> ReaderGroupConfig.fromBytes(data);
            case "position" -> PositionImpl.fromBytes(data);
            case "checkpoint" -> CheckpointImpl.fromBytes(data);
            default -> throw new IllegalArgumentException(kind);
        };
    }

    /**
     * The group's state after an initial value and updates, as a compaction would write it: "state", "sizes" and
     * "ranks" of its readers, "end" of all data. Or the number of the update that was "refused", and "why".
     */
    public static Map<String, Object> apply(List<String> updates) {
        ReaderGroupState state = null;
        for (int at = 0; at < updates.size(); at++) {
            Revision revision = RevisionImpl.fromString("a/_RGb/0.#epoch.0:" + at + ":0");
            try {
                if (state == null) {
                    state = ((InitialUpdate<ReaderGroupState>) read("init", updates.get(at))).create("a/_RGb", revision);
                } else {
                    state = ((Update<ReaderGroupState>) read("update", updates.get(at))).applyTo(state, revision);
                }
            } catch (RuntimeException error) {
                return Map.of("refused", at, "why", error.toString());
            }
        }
        return Map.of("state", write("init", new CompactReaderGroupState(state)), "sizes", state.getRelativeSizes(),
                "end", state.isEndOfData(), "unassigned", state.getNumberOfUnassignedSegments());
    }

    // What an initial value is behind its number, as it stands in the stream: the buffer is written to its capacity.
    private static ByteBuffer entry(InitialUpdate<ReaderGroupState> value) {
        try {
            Class<?> type = Class.forName("io.pravega.client.state.impl.UpdateOrInit");
            Constructor<?> constructor = type.getDeclaredConstructor(InitialUpdate.class);
            constructor.setAccessible(true);
            var serializer = UpdateOrInitSerializer.class.getConstructors()[0].newInstance(UPDATES, INITS);
            return (ByteBuffer) UpdateOrInitSerializer.class.getMethod("serialize", type)
                    .invoke(serializer, constructor.newInstance(value));
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static Object state(CompactReaderGroupState state) {
        Map<String, Object> ranges = ranges(state.getFutureSegments().keySet());
        state.getAssignedSegments().values().forEach(owned -> ranges.putAll(ranges(owned.keySet())));
        ranges.putAll(ranges(state.getUnassignedSegments().keySet()));
        ranges.putAll(ranges(state.getLastReadPosition().keySet()));
        return fields("GroupState", "config", config(state.getConfig()),
                "checkpoints", checkpoints(state.getCheckpointState()),
                "distances", state.getDistanceToTail(),
                "future", map(state.getFutureSegments(), segment -> name(segment.getSegment()), GroupBytes::set),
                "assigned", map(state.getAssignedSegments(), reader -> reader, GroupBytes::positions),
                "unassigned", positions(state.getUnassignedSegments()),
                "last_read", positions(state.getLastReadPosition()),
                "end", offsets(state.getEndSegments()), "ranges", ranges, "updating", state.isUpdatingConfig());
    }

    private static Object checkpoints(CheckpointState state) {
        Map<String, List<String>> waiting = field(state, "uncheckpointedHosts");
        Map<String, Map<Segment, Long>> positions = field(state, "checkpointPositions");
        return fields("Checkpoints", "names", field(state, "checkpoints"),
                "waiting", map(waiting, checkpoint -> checkpoint, GroupBytes::set),
                "positions", map(positions, checkpoint -> checkpoint, GroupBytes::offsets),
                "last", offsets(field(state, "lastCheckpointPosition")), "published", state.isLastCheckpointPublished());
    }

    private static Object config(ReaderGroupConfig config) {
        return fields("GroupConfig", "start", cuts(config.getStartingStreamCuts()),
                "end", cuts(config.getEndingStreamCuts()),
                "checkpoint_ms", config.getAutomaticCheckpointIntervalMillis(),
                "refresh_ms", config.getGroupRefreshTimeMillis(),
                "max_outstanding", config.getMaxOutstandingCheckpointRequest(),
                "retention", config.getRetentionType().ordinal(),
                "generation", config.getGeneration(), "id", config.getReaderGroupId().toString());
    }

    private static Map<String, Object> cuts(Map<Stream, StreamCut> cuts) {
        return map(cuts, stream -> stream.getScope() + "/" + stream.getStreamName(), cut -> cut == StreamCut.UNBOUNDED
                ? null : map(cut.asImpl().getPositions(), segment -> "" + segment.getSegmentId(), offset -> offset));
    }

    private static Object ranged(Map<SegmentWithRange, Long> positions) {
        return fields("Ranged", "positions", positions(positions),
                "ranges", positions == null ? Map.of() : ranges(positions.keySet()));
    }

    private static Map<String, Object> positions(Map<SegmentWithRange, Long> positions) {
        return map(positions, segment -> name(segment.getSegment()), offset -> offset);
    }

    private static Map<String, Object> offsets(Map<Segment, Long> offsets) {
        return map(offsets, GroupBytes::name, offset -> offset);
    }

    private static Map<String, Object> ranges(Collection<SegmentWithRange> segments) {
        Map<String, Object> ranges = new LinkedHashMap<>();
        segments.forEach(segment -> ranges.put(name(segment.getSegment()), range(segment.getRange())));
        return ranges;
    }

    private static Object range(SegmentWithRange.Range range) {
        return range == null ? null : List.of(range.getLow(), range.getHigh());
    }

    private static Map<String, Object> set(Collection<?> items) {
        Map<String, Object> set = new LinkedHashMap<>();
        items.forEach(item -> set.put("" + item, null));
        return set;
    }

    private static String name(Segment segment) {
        return segment.getScope() + "/" + segment.getStreamName() + "/" + segment.getSegmentId();
    }

    private static <K, V> Map<String, Object> map(Map<K, V> from, Function<K, String> key, Function<V, ?> value) {
        Map<String, Object> map = new LinkedHashMap<>();
        if (from != null) {
            from.forEach((k, v) -> map.put(key.apply(k), value.apply(v)));
        }
        return map;
    }

    private static Map<String, Object> fields(String type, Object... named) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("type", type);
        for (int at = 0; at < named.length; at += 2) {
            fields.put((String) named[at], named[at + 1]);
        }
        return fields;
    }

    @SuppressWarnings("unchecked")
    private static <T> T field(Object of, String name) {
        try {
            Field field = of.getClass().getDeclaredField(name);
            field.setAccessible(true);
            return (T) field.get(of);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
