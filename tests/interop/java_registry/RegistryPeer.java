import com.example.avro.Pulse;
import com.example.avro.Sensor;
import com.fasterxml.jackson.databind.JsonNode;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.GeneratedMessageV3;
import com.google.protobuf.Message;
import com.google.rpc.ErrorInfo;
import com.google.type.Money;
import io.pravega.client.stream.Serializer;
import io.pravega.schemaregistry.client.SchemaRegistryClient;
import io.pravega.schemaregistry.client.SchemaRegistryClientConfig;
import io.pravega.schemaregistry.client.SchemaRegistryClientFactory;
import io.pravega.schemaregistry.common.Either;
import io.pravega.schemaregistry.contract.data.CodecType;
import io.pravega.schemaregistry.contract.data.Compatibility;
import io.pravega.schemaregistry.contract.data.SchemaInfo;
import io.pravega.schemaregistry.contract.data.SerializationFormat;
import io.pravega.schemaregistry.serializer.avro.schemas.AvroSchema;
import io.pravega.schemaregistry.serializer.json.schemas.JSONSchema;
import io.pravega.schemaregistry.serializer.protobuf.schemas.ProtobufSchema;
import io.pravega.schemaregistry.serializer.shared.codec.Codec;
import io.pravega.schemaregistry.serializer.shared.codec.Codecs;
import io.pravega.schemaregistry.serializer.shared.impl.SerializerConfig;
import io.pravega.schemaregistry.serializer.shared.impl.SerializerConfig.SerializerConfigBuilder;
import io.pravega.schemaregistry.serializer.shared.schemas.Schema;
import io.pravega.schemaregistry.serializers.SerializerFactory;
import io.pravega.schemaregistry.serializers.WithSchema;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.IntFunction;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.specific.SpecificRecordBase;

/**
 * Writes numbered values with Java's registry serializers into files, one a case, or reads such files with its
 * deserializers and compares each value with the one that it should be, or shows what is in the file of any group as
 * JSON.
 * Arguments: write | read | show, the registry's URI, a folder, the groups with commas between. The folder has a Protobuf
 * descriptor set in gold.pb.
 */
public final class RegistryPeer {
    private static final int MANY = 10_000;
    private static final int FEW = Integer.getInteger("few", 500);
    private static final AvroSchema<Sensor> SENSOR = AvroSchema.of(Sensor.class);
    private static final ProtobufSchema<Money> MONEY = ProtobufSchema.of(Money.class);
    private static final JSONSchema<Values.User> USER = JSONSchema.of(Values.User.class);

    private final SchemaRegistryClient client;
    private final FileDescriptorSet files;
    private final Descriptor alarm;
    private final List<Case> cases = new ArrayList<>();

    /** A group with values of one kind: how they are written, and all ways to read them. */
    private record Case(String group, int count, IntFunction<Object> value,
                        Function<SerializerConfigBuilder, Serializer<Object>> writer,
                        Map<String, Function<SerializerConfigBuilder, Serializer<?>>> readers) {
        Case reading(String name, Function<SerializerConfigBuilder, Serializer<?>> reader) {
            readers.put(name, reader);
            return this;
        }
    }

    private RegistryPeer(String uri, Path folder) throws Exception {
        SchemaRegistryClientConfig config = SchemaRegistryClientConfig.builder().schemaRegistryUri(URI.create(uri))
                .build();
        client = SchemaRegistryClientFactory.withDefaultNamespace(config);
        files = FileDescriptorSet.parseFrom(Files.readAllBytes(folder.resolve("gold.pb")));
        alarm = Values.alarmType(files);
        avro();
        protobuf();
        json();
        several();
        codecs();
    }

    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[2]);
        RegistryPeer peer = new RegistryPeer(arguments[1], folder);
        if (arguments[0].equals("show")) {
            for (String group : arguments[3].split(",")) {
                peer.show(group, folder.resolve(group + ".python"));
            }
            peer.cases.clear();
        } else if (arguments.length > 3) {
            List<String> wanted = List.of(arguments[3].split(","));
            peer.cases.removeIf(each -> !wanted.contains(each.group));
        }
        for (Case each : peer.cases) {
            if (arguments[0].equals("write")) {
                peer.write(each, folder.resolve(each.group + ".java"));
            } else {
                peer.read(each, folder.resolve(each.group + ".python"));
            }
        }
        peer.client.close();
    }

    @SuppressWarnings("unchecked")
    private <T> Case add(String group, int count, IntFunction<T> value,
                         Function<SerializerConfigBuilder, Serializer<T>> writer) {
        Case made = new Case(group, count, (IntFunction<Object>) value,
                config -> (Serializer<Object>) writer.apply(config), new LinkedHashMap<>());
        cases.add(made);
        return made;
    }

    private void avro() {
        add("avro", MANY, Values::sensor, config -> SerializerFactory.avroSerializer(avro(config), SENSOR))
            .reading("typed", config -> SerializerFactory.avroDeserializer(config.build(), SENSOR))
            .reading("generic", config -> SerializerFactory.avroGenericDeserializer(config.build(), null))
            .reading("any", config -> SerializerFactory.genericDeserializer(config.build()));
        add("avro-rich", FEW, Values::rich,
            config -> SerializerFactory.avroSerializer(avro(config), generic(Values.RICH)))
            .reading("generic", config -> SerializerFactory.avroGenericDeserializer(config.build(), null))
            .reading("generic with schema", config -> SerializerFactory.avroGenericDeserializer(config.build(),
                    AvroSchema.of(Values.RICH)));
        AvroSchema<Values.Point> point = AvroSchema.of(Values.Point.class);
        add("avro-reflect", FEW, Values::point, config -> SerializerFactory.avroSerializer(avro(config), point))
            .reading("typed", config -> SerializerFactory.avroDeserializer(config.build(), point));
        add("avro-versions", 3 * FEW, Values::version, this::versions)
            .reading("generic", config -> SerializerFactory.avroGenericDeserializer(config.build(), null));
    }

    private static AvroSchema<GenericData.Record> generic(org.apache.avro.Schema schema) {
        @SuppressWarnings({"unchecked", "rawtypes"})
        AvroSchema<GenericData.Record> made = (AvroSchema<GenericData.Record>) (AvroSchema) AvroSchema.ofRecord(schema);
        return made;
    }

    private SerializerConfig avro(SerializerConfigBuilder config) {
        return config.createGroup(SerializationFormat.Avro, Compatibility.backward(),
                true).registerSchema(true).registerCodec(true).build();
    }

    private SerializerConfig of(SerializerConfigBuilder config, SerializationFormat format) {
        return config.createGroup(format, Compatibility.allowAny(),
                true).registerSchema(true).registerCodec(true).build();
    }

    private Serializer<GenericData.Record> versions(SerializerConfigBuilder config) {
        SerializerConfig made = avro(config);
        List<Serializer<GenericData.Record>> writers = Values.VERSIONS.stream()
                .map(schema -> SerializerFactory.avroSerializer(made, generic(schema))).toList();
        return new Serializer<>() {
            @Override
            public ByteBuffer serialize(GenericData.Record value) {
                return writers.get(Values.VERSIONS.indexOf(value.getSchema())).serialize(value);
            }

            @Override
            public GenericData.Record deserialize(ByteBuffer event) {
                throw new UnsupportedOperationException();
            }
        };
    }

    private void protobuf() {
        add("proto", MANY, Values::money,
            config -> SerializerFactory.protobufSerializer(of(config, SerializationFormat.Protobuf), MONEY))
            .reading("typed", config -> SerializerFactory.protobufDeserializer(config.build(), MONEY))
            .reading("generic", config -> SerializerFactory.protobufGenericDeserializer(config.build(), null))
            .reading("any", config -> SerializerFactory.genericDeserializer(config.build()));
        ProtobufSchema<DynamicMessage> dynamic = ProtobufSchema.of("com.example.proto.AlarmP", files);
        add("proto-dynamic", FEW, i -> Values.alarm(alarm, i),
            config -> SerializerFactory.protobufSerializer(of(config, SerializationFormat.Protobuf), dynamic))
            .reading("generic", config -> SerializerFactory.protobufGenericDeserializer(config.build(), null))
            .reading("generic with schema", config -> SerializerFactory.protobufGenericDeserializer(config.build(),
                    dynamic));
        ProtobufSchema<ErrorInfo> info = ProtobufSchema.of(ErrorInfo.class);
        // The generic reader takes no schema with imports.
        add("proto-imports", FEW, Values::errorInfo,
            config -> SerializerFactory.protobufSerializer(of(config, SerializationFormat.Protobuf), info))
            .reading("typed", config -> SerializerFactory.protobufDeserializer(config.build(), info));
        add("proto-noheader", FEW, Values::money,
            config -> SerializerFactory.protobufSerializer(of(config.writeEncodingHeader(false),
                SerializationFormat.Protobuf), MONEY))
            .reading("typed", config -> SerializerFactory.protobufDeserializer(config.writeEncodingHeader(false)
                    .build(), MONEY));
    }

    private void json() {
        add("json", MANY, Values::user,
            config -> SerializerFactory.jsonSerializer(of(config, SerializationFormat.Json), USER))
            .reading("typed", config -> SerializerFactory.jsonDeserializer(config.build(), USER))
            .reading("generic", config -> SerializerFactory.jsonGenericDeserializer(config.build()))
            .reading("string", config -> SerializerFactory.jsonStringDeserializer(config.build()))
            .reading("any", config -> SerializerFactory.genericDeserializer(config.build()));
        add("json-noheader", FEW, Values::user,
            config -> SerializerFactory.jsonSerializer(of(config.writeEncodingHeader(false),
                SerializationFormat.Json), USER))
            .reading("typed", config -> SerializerFactory.jsonDeserializer(config.writeEncodingHeader(false).build(),
                    USER));
    }

    private void several() {
        Map<Class<? extends SpecificRecordBase>, AvroSchema<SpecificRecordBase>> avro = new LinkedHashMap<>();
        avro.put(Sensor.class, AvroSchema.ofSpecificRecord(Sensor.class));
        avro.put(Pulse.class, AvroSchema.ofSpecificRecord(Pulse.class));
        add("avro-multi", 2 * FEW, i -> i % 2 == 0 ? (SpecificRecordBase) Values.sensor(i) : Values.pulse(i),
            config -> SerializerFactory.avroMultiTypeSerializer(avro(config), avro))
            .reading("typed", config -> SerializerFactory.avroMultiTypeDeserializer(config.build(), avro))
            .reading("typed or generic", config -> SerializerFactory.avroTypedOrGenericDeserializer(config.build(),
                    Map.of(Sensor.class, avro.get(Sensor.class))));
        Map<Class<? extends GeneratedMessageV3>, ProtobufSchema<GeneratedMessageV3>> protobuf = new LinkedHashMap<>();
        protobuf.put(Money.class, ProtobufSchema.ofGeneratedMessageV3(Money.class));
        protobuf.put(ErrorInfo.class, ProtobufSchema.ofGeneratedMessageV3(ErrorInfo.class));
        add("proto-multi", 2 * FEW, i -> i % 2 == 0 ? (GeneratedMessageV3) Values.money(i) : Values.errorInfo(i),
            config -> SerializerFactory.protobufMultiTypeSerializer(of(config, SerializationFormat.Protobuf), protobuf))
            .reading("typed", config -> SerializerFactory.protobufMultiTypeDeserializer(config.build(), protobuf));
        Map<Class<? extends Object>, JSONSchema<Object>> json = new LinkedHashMap<>();
        json.put(Values.User.class, JSONSchema.ofBaseType(Values.User.class, Object.class));
        json.put(Values.Order.class, JSONSchema.ofBaseType(Values.Order.class, Object.class));
        add("json-multi", 2 * FEW, i -> i % 2 == 0 ? (Object) Values.user(i) : Values.order(i),
            config -> SerializerFactory.jsonMultiTypeSerializer(of(config, SerializationFormat.Json), json))
            .reading("typed", config -> SerializerFactory.jsonMultiTypeDeserializer(config.build(), json))
            .reading("typed or generic", config -> SerializerFactory.jsonTypedOrGenericDeserializer(config.build(),
                    Map.of(Values.User.class, json.get(Values.User.class))));
        add("with-schema", 3 * FEW, this::withSchema,
            config -> SerializerFactory.serializerWithSchema(of(config, SerializationFormat.Any)))
            .reading("with schema", config -> SerializerFactory.deserializerWithSchema(config.build()))
            .reading("any", config -> SerializerFactory.genericDeserializer(config.build()));
    }

    private WithSchema<Object> withSchema(int i) {
        return switch (i % 3) {
            case 0 -> cast(WithSchema.avro(Values.sensor(i), SENSOR));
            case 1 -> cast(WithSchema.proto(Values.money(i), MONEY));
            default -> cast(WithSchema.json(Values.user(i), USER));
        };
    }

    @SuppressWarnings("unchecked")
    private static WithSchema<Object> cast(WithSchema<?> value) {
        return (WithSchema<Object>) value;
    }

    private void codecs() {
        for (Codecs codec : List.of(Codecs.GzipCompressor, Codecs.SnappyCompressor)) {
            String name = codec == Codecs.GzipCompressor ? "gzip" : "snappy";
            add("avro-" + name, FEW, Values::sensor,
                config -> SerializerFactory.avroSerializer(avro(config.encoder(codec.getCodec())), SENSOR))
                .reading("typed", config -> SerializerFactory.avroDeserializer(config.build(), SENSOR))
                .reading("generic", config -> SerializerFactory.avroGenericDeserializer(config.build(), null));
            // The typed readers of these formats do not undo codecs.
            add("json-" + name, FEW, Values::user,
                config -> SerializerFactory.jsonSerializer(of(config.encoder(codec.getCodec()),
                    SerializationFormat.Json), USER))
                .reading("generic", config -> SerializerFactory.jsonGenericDeserializer(config.build()));
            add("proto-" + name, FEW, Values::money,
                config -> SerializerFactory.protobufSerializer(of(config.encoder(codec.getCodec()),
                    SerializationFormat.Protobuf), MONEY))
                .reading("generic", config -> SerializerFactory.protobufGenericDeserializer(config.build(), null));
        }
        // Those of several types do.
        Map<Class<? extends GeneratedMessageV3>, ProtobufSchema<GeneratedMessageV3>> messages = new LinkedHashMap<>();
        messages.put(Money.class, ProtobufSchema.ofGeneratedMessageV3(Money.class));
        messages.put(ErrorInfo.class, ProtobufSchema.ofGeneratedMessageV3(ErrorInfo.class));
        add("proto-multi-gzip", FEW, i -> i % 2 == 0 ? (GeneratedMessageV3) Values.money(i) : Values.errorInfo(i),
            config -> SerializerFactory.protobufMultiTypeSerializer(
                of(config.encoder(Codecs.GzipCompressor.getCodec()), SerializationFormat.Protobuf), messages))
            .reading("typed", config -> SerializerFactory.protobufMultiTypeDeserializer(config.build(), messages));
        Map<Class<? extends Object>, JSONSchema<Object>> documents = new LinkedHashMap<>();
        documents.put(Values.User.class, JSONSchema.ofBaseType(Values.User.class, Object.class));
        documents.put(Values.Order.class, JSONSchema.ofBaseType(Values.Order.class, Object.class));
        add("json-multi-snappy", FEW, i -> i % 2 == 0 ? (Object) Values.user(i) : Values.order(i),
            config -> SerializerFactory.jsonMultiTypeSerializer(
                of(config.encoder(Codecs.SnappyCompressor.getCodec()), SerializationFormat.Json), documents))
            .reading("typed", config -> SerializerFactory.jsonMultiTypeDeserializer(config.build(), documents));
        add("with-schema-gzip", FEW, this::withSchema, config -> SerializerFactory.serializerWithSchema(
                of(config.encoder(Codecs.GzipCompressor.getCodec()), SerializationFormat.Any)))
            .reading("with schema", config -> SerializerFactory.deserializerWithSchema(config.build()));
        Codec mask = new Mask();
        add("avro-mask", FEW, Values::sensor,
            config -> SerializerFactory.avroSerializer(avro(config.encoder(mask)), SENSOR))
            .reading("typed", config -> SerializerFactory.avroDeserializer(config.decoder(mask.getName(),
                    mask).build(), SENSOR));
        SerializationFormat lines = SerializationFormat.custom("lines");
        Schema<String> schema = new Schema<>() {
            @Override
            public SchemaInfo getSchemaInfo() {
                return new SchemaInfo("com.example.Line", lines,
                        ByteBuffer.wrap("UTF-8".getBytes(StandardCharsets.UTF_8)),
                        com.google.common.collect.ImmutableMap.of());
            }

            @Override
            public Class<String> getTClass() {
                return String.class;
            }
        };
        add("custom", FEW, Values::line,
            config -> SerializerFactory.customSerializer(of(config, lines), schema, RegistryPeer::writeLine))
            .reading("custom", config -> SerializerFactory.customDeserializer(config.build(), schema, (in, writer,
                    reader) -> readLine(in)));
    }

    private static void writeLine(String line, SchemaInfo schema, OutputStream out) {
        try {
            out.write(line.getBytes(StandardCharsets.UTF_8));
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    private static String readLine(InputStream in) {
        try {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    /** A codec of an application's own, with a property. */
    private static final class Mask implements Codec {
        @Override
        public String getName() {
            return "com.example/mask";
        }

        @Override
        public CodecType getCodecType() {
            return new CodecType(getName(), com.google.common.collect.ImmutableMap.of("mask", "85"));
        }

        @Override
        public void encode(ByteBuffer data, OutputStream out) throws java.io.IOException {
            while (data.hasRemaining()) {
                out.write(data.get() ^ 85);
            }
        }

        @Override
        public ByteBuffer decode(ByteBuffer data, Map<String, String> properties) {
            byte[] decoded = new byte[data.remaining()];
            int mask = Integer.parseInt(properties.get("mask"));
            for (int i = 0; i < decoded.length; i++) {
                decoded[i] = (byte) (data.get() ^ mask);
            }
            return ByteBuffer.wrap(decoded);
        }
    }

    private SerializerConfigBuilder config(Case each) {
        return SerializerConfig.builder().groupId(each.group).registryClient(client);
    }

    private void write(Case each, Path file) throws Exception {
        Serializer<Object> writer = each.writer.apply(config(each));
        OutputStream bytesOut = new java.io.BufferedOutputStream(Files.newOutputStream(file));
        try (DataOutputStream out = new DataOutputStream(bytesOut)) {
            for (int i = 0; i < each.count; i++) {
                ByteBuffer event = writer.serialize(each.value.apply(i));
                byte[] bytes = new byte[event.remaining()];
                event.get(bytes);
                out.writeInt(bytes.length);
                out.write(bytes);
            }
        }
        System.out.println("{\"group\":\"" + each.group + "\",\"events\":" + each.count + "}");
    }

    private static List<byte[]> load(Path file) throws Exception {
        List<byte[]> events = new ArrayList<>();
        try (DataInputStream in = new DataInputStream(new java.io.BufferedInputStream(Files.newInputStream(file)))) {
            while (in.available() > 0) {
                events.add(in.readNBytes(in.readInt()));
            }
        }
        return events;
    }

    private void show(String group, Path file) throws Exception {
        SerializerConfig config = SerializerConfig.builder().groupId(group).registryClient(client).build();
        Serializer<String> reader = SerializerFactory.deserializeAsJsonString(config);
        for (byte[] event : load(file)) {
            System.out.println(reader.deserialize(ByteBuffer.wrap(event)).replaceAll("\\s*\n\\s*", ""));
        }
    }

    /** Compares each event with the value of its number, by every reader. */
    private void read(Case each, Path file) throws Exception {
        List<byte[]> events = load(file);
        for (String name : each.readers.keySet()) {
            int wrong = 0;
            String first = "";
            Serializer<?> reader = each.readers.get(name).apply(config(each));
            for (int i = 0; i < events.size(); i++) {
                String expected = text(each.value.apply(i));
                String found;
                try {
                    found = text(reader.deserialize(ByteBuffer.wrap(events.get(i))));
                } catch (Exception error) {
                    found = error.toString();
                }
                if (!expected.equals(found)) {
                    first = wrong++ == 0 ? i + ": " + found + " instead of " + expected : first;
                }
            }
            System.out.println(Values.MAPPER.writeValueAsString(Map.of("group", each.group, "reader", name, "events",
                    events.size(), "wrong", wrong, "first", first)));
        }
    }

    /** A value as text that is the same for a typed and a generic one. */
    private static String text(Object value) throws Exception {
        if (value instanceof WithSchema<?> with) {
            return text(with.getObject());
        }
        if (value instanceof Either<?, ?> either) {
            return text(either.isLeft() ? either.getLeft() : either.getRight());
        }
        boolean isRecord = value instanceof GenericRecord || value instanceof SpecificRecordBase;
        if (isRecord || value instanceof Message || value instanceof String || value instanceof JsonNode) {
            return value.toString();
        }
        return Values.MAPPER.writeValueAsString(value);
    }
}
