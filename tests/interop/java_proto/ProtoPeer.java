import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.Descriptors.OneofDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.util.JsonFormat;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

/**
 * Reads and writes messages of a descriptor set by protobuf-java.
 *
 * verify SET: each line "message hex" is answered with a line of JSON: the value and the bytes that Java writes for it.
 * generate SET SEED COUNT MESSAGE...: random messages, one line of JSON each.
 */
public final class ProtoPeer {
    private static final char[] HEX = "0123456789abcdef".toCharArray();
    private static final String[] TEXTS = {"", "a", "long text that needs more than a word", "\u00fc\u4e2d", "\ud83d\ude00", "\0"};

    public static void main(String[] arguments) throws Exception {
        Map<String, Descriptor> messages = load(arguments[1]);
        PrintStream out = new PrintStream(System.out, false, "US-ASCII");
        if (arguments[0].equals("verify")) {
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] parts = line.split(" ", 2);
                out.println(verify(messages.get(parts[0]), bytes(parts[1])));
            }
        } else {
            Random random = new Random(Long.parseLong(arguments[2]));
            for (int n = 0; n < Integer.parseInt(arguments[3]); n++) {
                String name = arguments[4 + n % (arguments.length - 4)];
                out.println(show(name, generate(messages.get(name), random, 3)));
            }
        }
        out.flush();
    }

    private static Map<String, Descriptor> load(String path) throws Exception {
        Map<String, FileDescriptor> files = new HashMap<>();
        Map<String, Descriptor> messages = new HashMap<>();
        for (FileDescriptorProto proto : FileDescriptorSet.parseFrom(Files.readAllBytes(Paths.get(path))).getFileList()) {
            FileDescriptor[] imports =
                proto.getDependencyList().stream().map(files::get).toArray(FileDescriptor[]::new);
            FileDescriptor file = FileDescriptor.buildFrom(proto, imports);
            files.put(proto.getName(), file);
            file.getMessageTypes().forEach(message -> messages.put(message.getFullName(), message));
        }
        return messages;
    }

    private static String verify(Descriptor descriptor, byte[] event) {
        try {
            return show(descriptor.getFullName(), DynamicMessage.parseFrom(descriptor, event));
        } catch (Exception error) {
            return "{\"error\": " + quote(String.valueOf(error.getMessage())) + "}";
        }
    }

    private static String show(String name, DynamicMessage message) throws Exception {
        JsonFormat.TypeRegistry types = JsonFormat.TypeRegistry.newBuilder().add(message.getDescriptorForType()).build();
        String value = JsonFormat.printer().usingTypeRegistry(types).preservingProtoFieldNames()
            .omittingInsignificantWhitespace().print(message);
        return "{\"message\": \"" + name + "\", \"hex\": \"" + hex(message.toByteArray()) + "\", \"value\": "
            + ascii(value) + "}";
    }

    private static DynamicMessage generate(Descriptor type, Random random, int depth) {
        DynamicMessage.Builder builder = DynamicMessage.newBuilder(type);
        String name = type.getFullName();
        if (name.equals("google.protobuf.Timestamp") || name.equals("google.protobuf.Duration")) {
            return builder.setField(type.findFieldByName("seconds"), (long) random.nextInt(2_000_000_000))
                .setField(type.findFieldByName("nanos"), random.nextInt(1_000_000_000)).build();
        }
        for (FieldDescriptor field : type.getFields()) {
            OneofDescriptor oneof = field.getContainingOneof();
            boolean taken = oneof != null && builder.hasOneof(oneof);
            if (!field.isRequired() && (taken || skips(field, depth) || random.nextInt(3) == 0)) {
                continue;
            }
            if (field.isMapField()) {
                entries(builder, field, random, depth);
            } else if (field.isRepeated()) {
                for (int n = random.nextInt(4); n > 0; n--) {
                    builder.addRepeatedField(field, value(field, random, depth));
                }
            } else {
                builder.setField(field, value(field, random, depth));
            }
        }
        return builder.build();
    }

    /** What is deep enough, or has a form in JSON only with some values. */
    private static boolean skips(FieldDescriptor field, int depth) {
        if (field.getJavaType() != FieldDescriptor.JavaType.MESSAGE) {
            return false;
        }
        String name = field.getMessageType().getFullName();
        return depth == 0 || name.equals("google.protobuf.Any") || name.equals("google.protobuf.FieldMask");
    }

    private static void entries(DynamicMessage.Builder builder, FieldDescriptor field, Random random, int depth) {
        Descriptor type = field.getMessageType();
        Map<String, DynamicMessage> entries = new TreeMap<>();
        for (int n = random.nextInt(3); n > 0; n--) {
            Object key = value(type.findFieldByName("key"), random, depth);
            Object item = value(type.findFieldByName("value"), random, depth);
            entries.put(key.toString(), DynamicMessage.newBuilder(type).setField(type.findFieldByName("key"), key)
                .setField(type.findFieldByName("value"), item).build());
        }
        entries.values().forEach(entry -> builder.addRepeatedField(field, entry));
    }

    private static Object value(FieldDescriptor field, Random random, int depth) {
        switch (field.getJavaType()) {
            case INT:
                return random.nextInt() >> random.nextInt(32);
            case LONG:
                return random.nextLong() >> random.nextInt(64);
            case FLOAT:
                return (float) (random.nextInt(2000) - 1000) / 8;
            case DOUBLE:
                return random.nextGaussian();
            case BOOLEAN:
                return random.nextBoolean();
            case STRING:
                return TEXTS[random.nextInt(TEXTS.length)];
            case BYTE_STRING:
                byte[] data = new byte[random.nextInt(20)];
                random.nextBytes(data);
                return ByteString.copyFrom(data);
            case ENUM:
                List<EnumValueDescriptor> values = field.getEnumType().getValues();
                return values.get(random.nextInt(values.size()));
            default:
                return generate(field.getMessageType(), random, depth - 1);
        }
    }

    private static String hex(byte[] data) {
        StringBuilder text = new StringBuilder();
        for (byte each : data) {
            text.append(HEX[each >> 4 & 15]).append(HEX[each & 15]);
        }
        return text.toString();
    }

    private static byte[] bytes(String hex) {
        byte[] data = new byte[hex.length() / 2];
        for (int n = 0; n < data.length; n++) {
            data[n] = (byte) Integer.parseInt(hex.substring(2 * n, 2 * n + 2), 16);
        }
        return data;
    }

    private static String quote(String text) {
        return "\"" + ascii(text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", " ")) + "\"";
    }

    private static String ascii(String json) {
        StringBuilder text = new StringBuilder();
        for (char letter : json.toCharArray()) {
            text.append(letter < 127 ? String.valueOf(letter) : String.format("\\u%04x", (int) letter));
        }
        return text.toString();
    }
}
