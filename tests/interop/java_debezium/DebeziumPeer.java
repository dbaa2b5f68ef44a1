package io.debezium.connector.postgresql;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.apicurio.registry.utils.converter.avro.AvroData;
import io.debezium.config.Configuration;
import io.debezium.connector.SnapshotRecord;
import io.debezium.connector.postgresql.connection.Lsn;
import io.debezium.data.Envelope;
import io.debezium.relational.TableId;
import io.debezium.time.MicroTimestamp;
import java.io.ByteArrayOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.json.JsonConverter;

/**
 * Change events as Debezium's connector for PostgreSQL makes them, in the forms of the converters that Debezium Server
 * has. {@code FOLDER COUNT} writes a file for each form, json, json-schema and avro, with an event on a line, in
 * hexadecimal digits, and the Avro schema. The last tenth of the events is there twice, as a sink writes it after a
 * failure. Prints each event as a line of JSON.
 *
 * <p>It is in the package of the connector, which makes the origin of a change for itself only.
 */
public final class DebeziumPeer {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final TableId TABLE = new TableId("shop", "public", "orders");
    private static final Instant START = Instant.parse("2026-05-01T12:00:00.123456Z");
    private static final Schema ROW = SchemaBuilder.struct().optional().name("shop.public.orders.Value")
            .field("id", Schema.INT64_SCHEMA)
            .field("item", Schema.OPTIONAL_STRING_SCHEMA)
            .field("cups", Schema.OPTIONAL_INT32_SCHEMA)
            .field("at", MicroTimestamp.schema())
            .build();

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[0]);
        List<Struct> changes = changes(Integer.parseInt(args[1]));
        Schema schema = changes.get(0).schema();
        for (boolean withSchema : new boolean[] {false, true}) {
            JsonConverter converter = new JsonConverter();
            converter.configure(Map.of("schemas.enable", withSchema), false);
            List<String> events = new ArrayList<>();
            for (Struct change : changes) {
                events.add(HexFormat.of().formatHex(converter.fromConnectData("shop.public.orders", schema, change)));
            }
            Files.write(folder.resolve(withSchema ? "json-schema" : "json"), events);
        }
        writeAvro(folder, schema, changes);
        StringBuilder lines = new StringBuilder();
        for (Struct change : changes) {
            lines.append(JSON.writeValueAsString(told(change))).append('\n');
        }
        System.out.print(lines);
    }

    private static void writeAvro(Path folder, Schema schema, List<Struct> changes) throws Exception {
        AvroData converter = new AvroData(100);
        org.apache.avro.Schema avro = converter.fromConnectSchema(schema);
        List<String> events = new ArrayList<>();
        for (Struct change : changes) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
            new GenericDatumWriter<Object>(avro).write(converter.fromConnectData(schema, change), encoder);
            encoder.flush();
            events.add(HexFormat.of().formatHex(out.toByteArray()));
        }
        Files.write(folder.resolve("avro"), events);
        Files.writeString(folder.resolve("schema.avsc"), avro.toString());
    }

    private static List<Struct> changes(int count) {
        PostgresConnectorConfig config = new PostgresConnectorConfig(Configuration.create()
                .with("topic.prefix", "shop").with("database.dbname", "shop").build());
        PostgresSourceInfoStructMaker maker = new PostgresSourceInfoStructMaker();
        maker.init("postgresql", Module.version(), config);
        Envelope envelope = Envelope.defineSchema().withName("shop.public.orders.Envelope")
                .withRecord(ROW).withSource(maker.schema()).build();
        SourceInfo info = new SourceInfo(config);
        Map<Long, Struct> rows = new TreeMap<>();
        List<Struct> made = new ArrayList<>();
        long lsn = 24_023_128L;
        for (int i = 0; i < count; i++) {
            boolean snapshot = i < 3;
            if (i == 3 || (i > 3 && i % 4 == 0)) {
                info.updateLastCommit(Lsn.valueOf(lsn));  // a transaction ends
            }
            lsn += snapshot ? 0 : 56 + i % 3;
            Instant at = START.plusMillis(i);
            info.update(Lsn.valueOf(lsn), at, 600L + i / 4, null, TABLE, null);
            info.setSnapshot(snapshot ? SnapshotRecord.TRUE : SnapshotRecord.FALSE);
            Struct source = maker.struct(info);
            Instant now = at.plusMillis(500);
            long id = i % 7;
            Struct before = rows.get(id);
            Struct after = new Struct(ROW).put("id", id).put("item", i % 5 == 0 ? null : "tea \"" + i + "\"")
                    .put("cups", i).put("at", 1_000_000L * i);
            if (snapshot) {
                made.add(envelope.read(after, source, now));
            } else if (before == null) {
                made.add(envelope.create(after, source, now));
            } else if (i % 6 == 0) {
                made.add(envelope.delete(before, source, now));
                after = null;
            } else {
                made.add(envelope.update(before, after, source, now));
            }
            rows.put(id, after);
        }
        List<Struct> again = made.subList(count - count / 10, count);
        List<Struct> all = new ArrayList<>(made);
        for (Struct each : again) {
            Struct copy = new Struct(each.schema());
            each.schema().fields().forEach(field -> copy.put(field, each.get(field)));
            all.add(copy.put("ts_ms", each.getInt64("ts_ms") + 60_000));
        }
        return all;
    }

    private static ObjectNode told(Struct change) {
        ObjectNode told = JSON.createObjectNode();
        Struct source = change.getStruct("source");
        told.put("op", change.getString("op"));
        told.set("before", row(change.getStruct("before")));
        told.set("after", row(change.getStruct("after")));
        told.put("millis", source.getInt64("ts_ms")).put("sequence", source.getString("sequence"));
        told.put("table", source.getString("table")).put("connector", source.getString("connector"));
        return told;
    }

    private static ObjectNode row(Struct row) {
        if (row == null) {
            return null;
        }
        ObjectNode told = JSON.createObjectNode();
        return told.put("id", row.getInt64("id")).put("item", row.getString("item")).put("cups", row.getInt32("cups"))
                .put("at", row.getInt64("at"));
    }
}
