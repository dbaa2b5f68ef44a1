package com.example.taxi;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import io.pravega.client.stream.Serializer;
import io.pravega.client.stream.impl.ByteArraySerializer;
import io.pravega.client.stream.impl.JavaSerializer;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import io.pravega.schemaregistry.client.SchemaRegistryClientConfig;
import io.pravega.schemaregistry.contract.data.Compatibility;
import io.pravega.schemaregistry.contract.data.SerializationFormat;
import io.pravega.schemaregistry.serializer.avro.schemas.AvroSchema;
import io.pravega.schemaregistry.serializer.json.schemas.JSONSchema;
import io.pravega.schemaregistry.serializer.protobuf.schemas.ProtobufSchema;
import io.pravega.schemaregistry.serializer.shared.codec.Codecs;
import io.pravega.schemaregistry.serializer.shared.impl.SerializerConfig;
import io.pravega.schemaregistry.serializers.SerializerFactory;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

/** Trips in every format: as objects, their serializers, and what is in an object that was read. */
public final class Trips {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final Path FOLDER = Path.of(System.getProperty("exchange.schemas"));
    private static final Schema AVRO = avro();
    private static final Descriptor PROTOBUF = protobuf();

    private Trips() {
    }

    /** How events are written: a format, and a registry's URI, namespace, group and codec, or null. */
    public record Format(String name, String registry, String namespace, String group, String codec)
            implements Serializable {
    }

    private static Schema avro() {
        try {
            return new Schema.Parser().parse(Files.readString(FOLDER.resolve("trip.avsc")));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static Descriptor protobuf() {
        try {
            FileDescriptorSet files = FileDescriptorSet.parseFrom(Files.readAllBytes(FOLDER.resolve("trip.pb")));
            return FileDescriptor.buildFrom(files.getFile(0), new FileDescriptor[0]).findMessageTypeByName("Trip");
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    /** The trip with a number, as an application of the format has it. */
    public static Object value(Format format, long number) {
        return switch (format.name) {
            case "string" -> "trip " + number + " é😀";
            case "bytes" -> bytes(number);
            case "java", "json" -> Trip.of(number);
            case "avro" -> record(Trip.of(number));
            case "protobuf" -> message(Trip.of(number));
            default -> throw new IllegalArgumentException(format.name);
        };
    }

    private static byte[] bytes(long number) {
        ByteBuffer data = ByteBuffer.allocate(8 + (int) (number % 17)).putLong(number);
        while (data.hasRemaining()) {
            data.put((byte) (data.position() * 31));
        }
        return data.array();
    }

    private static GenericData.Record record(Trip trip) {
        GenericData.Record driver = new GenericData.Record(AVRO.getField("driver").schema());
        driver.put("name", trip.driver.name);
        driver.put("rating", trip.driver.rating);
        GenericData.Record record = new GenericData.Record(AVRO);
        record.put("number", trip.number);
        record.put("zone", new GenericData.EnumSymbol(AVRO.getField("zone").schema(), trip.zone.name()));
        record.put("fare", trip.fare);
        record.put("stops", trip.stops);
        record.put("extras", trip.extras);
        record.put("driver", driver);
        return record;
    }

    private static DynamicMessage message(Trip trip) {
        Descriptor driverType = PROTOBUF.findNestedTypeByName("Driver");
        DynamicMessage.Builder driver = DynamicMessage.newBuilder(driverType);
        driver.setField(driverType.findFieldByName("name"), trip.driver.name);
        if (trip.driver.rating != null) {
            driver.setField(driverType.findFieldByName("rating"), trip.driver.rating);
        }
        DynamicMessage.Builder message = DynamicMessage.newBuilder(PROTOBUF);
        message.setField(PROTOBUF.findFieldByName("number"), trip.number);
        message.setField(PROTOBUF.findFieldByName("zone"),
                PROTOBUF.getFile().findEnumTypeByName("Zone").findValueByName(trip.zone.name()));
        message.setField(PROTOBUF.findFieldByName("fare"), trip.fare);
        trip.stops.forEach(stop -> message.addRepeatedField(PROTOBUF.findFieldByName("stops"), stop));
        Descriptor entry = PROTOBUF.findNestedTypeByName("ExtrasEntry");
        trip.extras.forEach((name, value) -> message.addRepeatedField(PROTOBUF.findFieldByName("extras"),
                DynamicMessage.newBuilder(entry).setField(entry.findFieldByName("key"), name)
                        .setField(entry.findFieldByName("value"), value).build()));
        return message.setField(PROTOBUF.findFieldByName("driver"), driver.build()).build();
    }

    /** A serializer of the format, for writing or for reading, as an application makes it. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    public static Serializer<Object> serializer(Format format, boolean writing) {
        Serializer<?> made;
        if (format.registry != null) {
            made = writing ? registryWriter(format) : registryReader(format);
        } else {
            made = switch (format.name) {
                case "string" -> new UTF8StringSerializer();
                case "bytes" -> new ByteArraySerializer();
                case "java" -> new JavaSerializer<>();
                case "avro" -> new AvroEvents();
                case "protobuf" -> new ProtobufEvents();
                case "json" -> new JsonEvents();
                default -> throw new IllegalArgumentException(format.name);
            };
        }
        return (Serializer) made;
    }

    private static SerializerConfig.SerializerConfigBuilder config(Format format) {
        return SerializerConfig.builder().groupId(format.group).namespace(format.namespace).registryConfig(
                SchemaRegistryClientConfig.builder().schemaRegistryUri(URI.create(format.registry)).build());
    }

    private static Serializer<?> registryWriter(Format format) {
        SerializationFormat kind = switch (format.name) {
            case "avro" -> SerializationFormat.Avro;
            case "protobuf" -> SerializationFormat.Protobuf;
            default -> SerializationFormat.Json;
        };
        Compatibility compatibility = format.name.equals("avro") ? Compatibility.backward() : Compatibility.allowAny();
        SerializerConfig.SerializerConfigBuilder builder = config(format).createGroup(kind, compatibility, true)
                .registerSchema(true);
        if (format.codec != null) {
            Codecs codec = format.codec.equals("gzip") ? Codecs.GzipCompressor : Codecs.SnappyCompressor;
            builder.encoder(codec.getCodec()).registerCodec(true);
        }
        SerializerConfig config = builder.build();
        return switch (format.name) {
            case "avro" -> SerializerFactory.avroSerializer(config, AvroSchema.ofRecord(AVRO));
            case "protobuf" -> SerializerFactory.protobufSerializer(config, dynamic());
            default -> SerializerFactory.jsonSerializer(config, JSONSchema.of(Trip.class));
        };
    }

    private static ProtobufSchema<DynamicMessage> dynamic() {
        try {
            FileDescriptorSet files = FileDescriptorSet.parseFrom(Files.readAllBytes(FOLDER.resolve("trip.pb")));
            return ProtobufSchema.of(PROTOBUF.getFullName(), files);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static Serializer<?> registryReader(Format format) {
        SerializerConfig config = config(format).build();
        return switch (format.name) {
            case "avro" -> SerializerFactory.avroGenericDeserializer(config, AvroSchema.of(AVRO));
            case "protobuf" -> SerializerFactory.protobufGenericDeserializer(config, null);
            default -> SerializerFactory.jsonDeserializer(config, JSONSchema.of(Trip.class));
        };
    }

    /** What is in an object that was read, for JSON. */
    public static Object plain(Object found) {
        if (found instanceof byte[] data) {
            return HexFormat.of().formatHex(data);
        } else if (found instanceof Trip trip) {
            return plain(trip);
        } else if (found instanceof GenericRecord record) {
            Map<String, Object> fields = new LinkedHashMap<>();
            record.getSchema().getFields().forEach(field -> fields.put(field.name(), plain(record.get(field.pos()))));
            return fields;
        } else if (found instanceof DynamicMessage message) {
            return plain(message);
        } else if (found instanceof List<?> list) {
            List<Object> items = new ArrayList<>();
            list.forEach(item -> items.add(plain(item)));
            return items;
        } else if (found instanceof Map<?, ?> map) {
            Map<String, Object> entries = new TreeMap<>();
            map.forEach((name, value) -> entries.put(name.toString(), plain(value)));
            return entries;
        } else if (found instanceof CharSequence || found instanceof GenericData.EnumSymbol
                || found instanceof EnumValueDescriptor || found instanceof Enum) {
            return found.toString();
        }
        return found;
    }

    private static Object plain(Trip trip) {
        Map<String, Object> driver = new LinkedHashMap<>();
        driver.put("name", trip.driver.name);
        driver.put("rating", trip.driver.rating);
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("number", trip.number);
        fields.put("zone", trip.zone.name());
        fields.put("fare", trip.fare);
        fields.put("stops", trip.stops);
        fields.put("extras", trip.extras);
        fields.put("driver", driver);
        return fields;
    }

    private static Object plain(DynamicMessage message) {
        Map<String, Object> fields = new LinkedHashMap<>();
        for (FieldDescriptor field : message.getDescriptorForType().getFields()) {
            if (field.isMapField()) {
                Map<String, Object> entries = new TreeMap<>();
                for (Object each : (List<?>) message.getField(field)) {
                    Message entry = (Message) each;
                    List<FieldDescriptor> parts = entry.getDescriptorForType().getFields();
                    entries.put((String) entry.getField(parts.get(0)), entry.getField(parts.get(1)));
                }
                fields.put(field.getName(), entries);
            } else if (field.hasPresence() && !message.hasField(field)) {
                fields.put(field.getName(), null);
            } else {
                fields.put(field.getName(), plain(message.getField(field)));
            }
        }
        return fields;
    }

    private static final class AvroEvents implements Serializer<Object> {
        @Override
        public ByteBuffer serialize(Object value) {
            try {
                ByteArrayOutputStream out = new ByteArrayOutputStream();
                BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
                new GenericDatumWriter<Object>(AVRO).write(value, encoder);
                encoder.flush();
                return ByteBuffer.wrap(out.toByteArray());
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        @Override
        public Object deserialize(ByteBuffer event) {
            try {
                return new GenericDatumReader<Object>(AVRO).read(null, DecoderFactory.get().binaryDecoder(copy(event), null));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    private static final class ProtobufEvents implements Serializer<Object> {
        @Override
        public ByteBuffer serialize(Object value) {
            return ByteBuffer.wrap(((DynamicMessage) value).toByteArray());
        }

        @Override
        public Object deserialize(ByteBuffer event) {
            try {
                return DynamicMessage.parseFrom(PROTOBUF, copy(event));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    private static final class JsonEvents implements Serializer<Object> {
        @Override
        public ByteBuffer serialize(Object value) {
            try {
                return ByteBuffer.wrap(MAPPER.writeValueAsBytes(value));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        @Override
        public Object deserialize(ByteBuffer event) {
            try {
                return MAPPER.readValue(new String(copy(event), StandardCharsets.UTF_8), Trip.class);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    private static byte[] copy(ByteBuffer event) {
        byte[] data = new byte[event.remaining()];
        event.get(data);
        return data;
    }
}
