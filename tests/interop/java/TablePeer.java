import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.pravega.client.KeyValueTableFactory;
import io.pravega.client.admin.KeyValueTableManager;
import io.pravega.client.tables.ConditionalTableUpdateException;
import io.pravega.client.tables.Insert;
import io.pravega.client.tables.KeyValueTable;
import io.pravega.client.tables.KeyValueTableClientConfiguration;
import io.pravega.client.tables.KeyValueTableConfiguration;
import io.pravega.client.tables.KeyValueTableIterator;
import io.pravega.client.tables.IteratorItem;
import io.pravega.client.tables.Put;
import io.pravega.client.tables.Remove;
import io.pravega.client.tables.TableEntry;
import io.pravega.client.tables.TableKey;
import io.pravega.client.tables.TableModification;
import io.pravega.client.tables.Version;
import io.pravega.common.Exceptions;
import io.pravega.common.util.AsyncIterator;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * What an ordinary Java application does with key-value tables, for the interoperability tests. Keys and values are
 * hexadecimal; a version is its text, or null. "stream" is the name of the table.
 *
 * <pre>
 *   {"do": "create", "partitions": N, "primary": N, "secondary": N}  whether it was created
 *   {"do": "tables"}                                    the tables of the scope
 *   {"do": "delete"}
 *   {"do": "update", "changes": [[KIND, PRIMARY, SECONDARY, VALUE, VERSION]...]}
 *                                                       the versions, or null if it is refused; KIND: put, insert, remove
 *   {"do": "get", "keys": [[PRIMARY, SECONDARY]...]}    [[PRIMARY, SECONDARY, VALUE, VERSION] or null...]
 *   {"do": "all", "from": PRIMARY, "to": PRIMARY}       the entries of a range, in the same form
 *   {"do": "of", "primary": PRIMARY, "from": SECONDARY, "to": SECONDARY}
 * </pre>
 *
 * Asked as JsonPeer says.
 */
public final class TablePeer extends JsonPeer {
    private static final Map<String, KeyValueTable> TABLES = new HashMap<>();
    private static final long SECONDS = 60;

    private TablePeer() {
    }

    public static void main(String[] args) throws IOException {
        new TablePeer().serve();
    }

    @Override
    Object answer(JsonObject request) throws Exception {
        return switch (text(request, "do")) {
            case "create", "tables", "delete" -> manage(request);
            case "update" -> update(request);
            case "get" -> get(request);
            case "all" -> entries(request, table(request).iterator().maxIterationSize(7)
                    .forRange(bytes(request.get("from")), bytes(request.get("to"))));
            case "of" -> entries(request, table(request).iterator().maxIterationSize(7)
                    .forPrimaryKey(bytes(request.get("primary")), bytes(request.get("from")), bytes(request.get("to"))));
            default -> throw unknown(request);
        };
    }

    private static Object manage(JsonObject request) {
        String scope = text(request, "scope");
        String name = text(request, "stream");
        try (KeyValueTableManager manager = KeyValueTableManager.create(config(request))) {
            return switch (text(request, "do")) {
                case "create" -> manager.createKeyValueTable(scope, name, KeyValueTableConfiguration.builder()
                        .partitionCount(request.get("partitions").getAsInt())
                        .primaryKeyLength(request.get("primary").getAsInt())
                        .secondaryKeyLength(request.get("secondary").getAsInt()).build());
                case "tables" -> {
                    List<String> names = new ArrayList<>();
                    manager.listKeyValueTables(scope).forEachRemaining(info -> names.add(info.getScopedName()));
                    yield names;
                }
                default -> manager.deleteKeyValueTable(scope, name);
            };
        }
    }

    private static KeyValueTable table(JsonObject request) {
        return TABLES.computeIfAbsent(text(request, "scope") + "/" + text(request, "stream"), name ->
                KeyValueTableFactory.withScope(text(request, "scope"), config(request)).forKeyValueTable(
                        text(request, "stream"), KeyValueTableClientConfiguration.builder().build()));
    }

    private static Object update(JsonObject request) throws Exception {
        List<TableModification> changes = new ArrayList<>();
        for (JsonElement each : request.get("changes").getAsJsonArray()) {
            JsonArray change = each.getAsJsonArray();
            TableKey key = key(change.get(1), change.get(2));
            ByteBuffer value = bytes(change.get(3));
            Version version = change.get(4).isJsonNull() ? null : Version.fromString(change.get(4).getAsString());
            changes.add(switch (change.get(0).getAsString()) {
                case "put" -> version == null ? new Put(key, value) : new Put(key, value, version);
                case "insert" -> new Insert(key, value);
                default -> version == null ? new Remove(key) : new Remove(key, version);
            });
        }
        try {
            List<String> versions = new ArrayList<>();
            for (Version version : table(request).update(changes).get(SECONDS, TimeUnit.SECONDS)) {
                versions.add(version.toString());
            }
            return versions;
        } catch (Exception e) {
            if (Exceptions.unwrap(e) instanceof ConditionalTableUpdateException) {
                return null;
            }
            throw e;
        }
    }

    private static Object get(JsonObject request) throws Exception {
        List<TableKey> keys = new ArrayList<>();
        for (JsonElement each : request.get("keys").getAsJsonArray()) {
            keys.add(key(each.getAsJsonArray().get(0), each.getAsJsonArray().get(1)));
        }
        List<List<String>> found = new ArrayList<>();
        for (TableEntry entry : table(request).getAll(keys).get(SECONDS, TimeUnit.SECONDS)) {
            found.add(entry == null ? null : shown(entry));
        }
        return found;
    }

    private static Object entries(JsonObject request, KeyValueTableIterator range) throws Exception {
        AsyncIterator<IteratorItem<TableEntry>> batches = range.entries();
        List<List<String>> found = new ArrayList<>();
        while (true) {
            IteratorItem<TableEntry> batch = batches.getNext().get(SECONDS, TimeUnit.SECONDS);
            if (batch == null) {
                return found;
            }
            batch.getItems().forEach(entry -> found.add(shown(entry)));
        }
    }

    private static List<String> shown(TableEntry entry) {
        return List.of(hex(entry.getKey().getPrimaryKey()), hex(entry.getKey().getSecondaryKey()),
                hex(entry.getValue()), entry.getVersion().toString());
    }

    private static TableKey key(JsonElement primary, JsonElement secondary) {
        return secondary.isJsonNull() ? new TableKey(bytes(primary)) : new TableKey(bytes(primary), bytes(secondary));
    }

    private static ByteBuffer bytes(JsonElement hex) {
        return hex == null || hex.isJsonNull() ? null : ByteBuffer.wrap(HexFormat.of().parseHex(hex.getAsString()));
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return "";
        }
        byte[] data = new byte[buffer.remaining()];
        buffer.duplicate().get(data);
        return HexFormat.of().formatHex(data);
    }
}
