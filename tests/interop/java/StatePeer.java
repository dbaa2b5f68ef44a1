import com.google.gson.JsonObject;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.SynchronizerClientFactory;
import io.pravega.client.state.InitialUpdate;
import io.pravega.client.state.Revision;
import io.pravega.client.state.Revisioned;
import io.pravega.client.state.RevisionedStreamClient;
import io.pravega.client.state.StateSynchronizer;
import io.pravega.client.state.SynchronizerConfig;
import io.pravega.client.state.Update;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.Serializer;
import io.pravega.client.stream.Transaction;
import io.pravega.client.stream.TransactionalEventStreamWriter;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * What an ordinary Java application does with transactions, revisioned streams and state synchronizers, through the
 * public Java client, for the interoperability tests. All events, entries and words are strings.
 *
 * <pre>
 *   {"do": "begin", "events": [[KEY, EVENT]...]}   a transaction with these events, flushed; its id
 *   {"do": "commit" | "abort" | "status", "id": ID}  by the id alone; the status after it
 *
 *   {"do": "revisions"}                            the oldest and the latest revision, and the mark
 *   {"do": "entries", "from": REVISION}            [[REVISION, ENTRY]...] after a revision
 *   {"do": "append", "entry": ENTRY}               unconditionally
 *   {"do": "appendAt", "revision": R, "entry": E}  the new revision, or null
 *   {"do": "setMark", "expected": R, "mark": R}    whether it was done
 *   {"do": "truncate", "revision": R}
 *
 *   {"do": "initialize", "word": W}                all of these answer with the words of the state, after a fetch
 *   {"do": "update" | "updateAnyway", "words": [W...]}
 *   {"do": "compact"}                              to one word, the words joined by "+"
 *   {"do": "state"}
 * </pre>
 *
 * Asked as JsonPeer says.
 */
public final class StatePeer extends JsonPeer {
    private static final Map<String, RevisionedStreamClient<String>> LOGS = new HashMap<>();
    private static final Map<String, StateSynchronizer<Words>> STATES = new HashMap<>();

    private StatePeer() {
    }

    public static void main(String[] args) throws IOException {
        new StatePeer().serve();
    }

    @Override
    Object answer(JsonObject request) throws Exception {
        return switch (text(request, "do")) {
            case "begin" -> begin(request);
            case "commit", "abort", "status" -> finish(request);
            case "revisions", "entries", "append", "appendAt", "setMark", "truncate" -> log(request);
            case "initialize", "update", "updateAnyway", "compact", "state" -> state(request);
            default -> throw unknown(request);
        };
    }

    // ---------------------------------------------------------------- transactions

    private static TransactionalEventStreamWriter<String> writer(JsonObject request, EventStreamClientFactory factory) {
        return factory.createTransactionalEventWriter("java", text(request, "stream"), new UTF8StringSerializer(),
                EventWriterConfig.builder().transactionTimeoutTime(60_000).build());
    }

    private static String begin(JsonObject request) throws Exception {
        // Not closed: that would abort what is open. The factory's threads are daemons.
        Transaction<String> transaction = writer(request, factory(request)).beginTxn();
        writeAll(request, transaction::writeEvent);
        transaction.flush();
        return transaction.getTxnId().toString();
    }

    private static String finish(JsonObject request) throws Exception {
        try (EventStreamClientFactory factory = factory(request);
             TransactionalEventStreamWriter<String> writer = writer(request, factory)) {
            Transaction<String> transaction = writer.getTxn(UUID.fromString(text(request, "id")));
            switch (text(request, "do")) {
                case "commit" -> transaction.commit();
                case "abort" -> transaction.abort();
                default -> { }
            }
            return transaction.checkStatus().name();
        }
    }

    // ---------------------------------------------------------------- revisioned streams

    private static Object log(JsonObject request) {
        RevisionedStreamClient<String> log = LOGS.computeIfAbsent(text(request, "stream"), name ->
                SynchronizerClientFactory.withScope(text(request, "scope"), config(request))
                        .createRevisionedStreamClient(name, new UTF8StringSerializer(), SynchronizerConfig.builder().build()));
        return switch (text(request, "do")) {
            case "revisions" -> shown(log.fetchOldestRevision(), log.fetchLatestRevision(), log.getMark());
            case "entries" -> entries(log.readFrom(revision(request, "from")));
            case "append" -> {
                log.writeUnconditionally(text(request, "entry"));
                yield true;
            }
            case "appendAt" -> {
                Revision written = log.writeConditionally(revision(request, "revision"), text(request, "entry"));
                yield written == null ? null : written.toString();
            }
            case "setMark" -> log.compareAndSetMark(revision(request, "expected"), revision(request, "mark"));
            default -> {
                log.truncateToRevision(revision(request, "revision"));
                yield true;
            }
        };
    }

    private static Revision revision(JsonObject request, String name) {
        String text = text(request, name);
        return text == null ? null : Revision.fromString(text);
    }

    private static List<String> shown(Revision... revisions) {
        List<String> texts = new ArrayList<>();
        for (Revision revision : revisions) {
            texts.add(revision == null ? null : revision.toString());
        }
        return texts;
    }

    private static List<List<String>> entries(Iterator<Map.Entry<Revision, String>> found) {
        List<List<String>> entries = new ArrayList<>();
        found.forEachRemaining(entry -> entries.add(List.of(entry.getKey().toString(), entry.getValue())));
        return entries;
    }

    // ---------------------------------------------------------------- state synchronizers

    /** A record whose components' names are those of the interface's methods. */
    private record Words(String getScopedStreamName, Revision getRevision, List<String> words) implements Revisioned {
    }

    private record First(String word) implements InitialUpdate<Words> {
        @Override
        public Words create(String scopedStreamName, Revision revision) {
            return new Words(scopedStreamName, revision, List.of(word));
        }
    }

    private record More(String word) implements Update<Words> {
        @Override
        public Words applyTo(Words old, Revision revision) {
            List<String> words = new ArrayList<>(old.words());
            words.add(word);
            return new Words(old.getScopedStreamName(), revision, words);
        }
    }

    private static final class FirstSerializer implements Serializer<First> {
        @Override
        public ByteBuffer serialize(First value) {
            return ByteBuffer.wrap(value.word().getBytes(StandardCharsets.UTF_8));
        }

        @Override
        public First deserialize(ByteBuffer bytes) {
            return new First(StandardCharsets.UTF_8.decode(bytes).toString());
        }
    }

    private static final class MoreSerializer implements Serializer<More> {
        @Override
        public ByteBuffer serialize(More value) {
            return ByteBuffer.wrap(value.word().getBytes(StandardCharsets.UTF_8));
        }

        @Override
        public More deserialize(ByteBuffer bytes) {
            return new More(StandardCharsets.UTF_8.decode(bytes).toString());
        }
    }

    private static List<String> state(JsonObject request) {
        StateSynchronizer<Words> state = STATES.computeIfAbsent(text(request, "stream"), name ->
                SynchronizerClientFactory.withScope(text(request, "scope"), config(request))
                        .createStateSynchronizer(name, new MoreSerializer(), new FirstSerializer(),
                                SynchronizerConfig.builder().build()));
        switch (text(request, "do")) {
            case "initialize" -> state.initialize(new First(text(request, "word")));
            case "update" -> state.updateState((words, updates) -> {
                updates.addAll(more(request));
            });
            case "updateAnyway" -> state.updateStateUnconditionally(more(request));
            case "compact" -> state.compact(words -> new First(String.join("+", words.words())));
            default -> { }
        }
        state.fetchUpdates();
        return state.getState().words();
    }

    private static List<More> more(JsonObject request) {
        List<More> updates = new ArrayList<>();
        request.get("words").getAsJsonArray().forEach(word -> updates.add(new More(word.getAsString())));
        return updates;
    }
}
