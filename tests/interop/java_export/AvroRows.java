import java.io.File;
import java.io.IOException;
import org.apache.avro.data.TimeConversions;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;

/** Prints the schema of an Avro file, and a line for each of its records: the fields' values, each with its class. */
public final class AvroRows {
    private AvroRows() {
    }

    public static void main(String[] args) throws IOException {
        GenericData data = new GenericData();
        data.addLogicalTypeConversion(new TimeConversions.TimestampMillisConversion());
        GenericDatumReader<GenericRecord> datums = new GenericDatumReader<>(null, null, data);
        try (DataFileReader<GenericRecord> rows = new DataFileReader<>(new File(args[0]), datums)) {
            System.out.println(rows.getSchema());
            for (GenericRecord row : rows) {
                StringBuilder line = new StringBuilder();
                for (int i = 0; i < row.getSchema().getFields().size(); i++) {
                    Object value = row.get(i);
                    String name = value == null ? "null" : value.getClass().getSimpleName();
                    line.append(i == 0 ? "" : "\t").append(name).append(' ').append(value);
                }
                System.out.println(line);
            }
        }
    }
}
