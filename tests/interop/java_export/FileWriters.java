import com.fasterxml.jackson.databind.ObjectMapper;
import com.univocity.parsers.csv.CsvWriter;
import com.univocity.parsers.csv.CsvWriterSettings;
import java.io.File;
import java.io.IOException;
import java.io.Writer;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.file.CodecFactory;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.file.DataFileWriter;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;

/** Writes each Avro file of a folder again with Avro's Java, and as JSON lines with Jackson and CSV with Univocity. */
public final class FileWriters {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String[] CODECS = {"deflate", "snappy", "bzip2", "zstandard"};

    private FileWriters() {
    }

    public static void main(String[] args) throws IOException {
        int number = 0;
        for (File file : new File(args[0]).listFiles((folder, name) -> name.endsWith(".in"))) {
            String base = file.getPath().substring(0, file.getPath().length() - 3);
            List<GenericRecord> rows = new ArrayList<>();
            Schema schema;
            try (DataFileReader<GenericRecord> in = new DataFileReader<>(file, new GenericDatumReader<>())) {
                schema = in.getSchema();
                in.forEach(rows::add);
            }
            CodecFactory codec = CodecFactory.fromString(CODECS[number++ % CODECS.length]);
            try (DataFileWriter<GenericRecord> out = new DataFileWriter<>(new GenericDatumWriter<>(schema))) {
                out.setCodec(codec).create(schema, new File(base + ".avro"));
                for (GenericRecord row : rows) {
                    out.append(row);
                }
            }
            try (Writer out = Files.newBufferedWriter(new File(base + ".jsonl").toPath(), StandardCharsets.UTF_8)) {
                for (GenericRecord row : rows) {
                    out.write(JSON.writeValueAsString(plain(row)));
                    out.write('\n');
                }
            }
            CsvWriter out = new CsvWriter(new File(base + ".csv"), "UTF-8", new CsvWriterSettings());
            out.writeHeaders("k", "x");
            for (GenericRecord row : rows) {
                out.writeRow(plain(row.get("k")), plain(row.get("x")));
            }
            out.close();
        }
    }

    private static Object plain(Object value) {
        if (value instanceof GenericRecord) {
            GenericRecord row = (GenericRecord) value;
            Map<String, Object> found = new LinkedHashMap<>();
            row.getSchema().getFields().forEach(field -> found.put(field.name(), plain(row.get(field.pos()))));
            return found;
        }
        if (value instanceof Map) {
            Map<String, Object> found = new LinkedHashMap<>();
            ((Map<?, ?>) value).forEach((key, item) -> found.put(key.toString(), plain(item)));
            return found;
        }
        if (value instanceof List) {
            List<Object> found = new ArrayList<>();
            ((List<?>) value).forEach(item -> found.add(plain(item)));
            return found;
        }
        if (value instanceof ByteBuffer) {
            return ((ByteBuffer) value).array();
        }
        if (value instanceof GenericData.Fixed) {
            return ((GenericData.Fixed) value).bytes();
        }
        return value instanceof CharSequence ? value.toString() : value;
    }
}
