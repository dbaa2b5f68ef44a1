import java.io.ByteArrayInputStream;
import java.io.ObjectInputStream;
import java.io.Serializable;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF1;

/** Columns of events that are Java object streams, by Java itself: functions of Spark SQL for the Scala connector's side. */
public final class ObjectColumns {
    private ObjectColumns() {
    }

    static Object read(byte[] event) throws Exception {
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(event))) {
            return in.readObject();
        }
    }

    /** An event that is one string. */
    public static final class Text implements UDF1<byte[], String> {
        @Override
        public String call(byte[] event) throws Exception {
            return (String) read(event);
        }
    }

    /** An event that is a {@link Reading}. */
    public static final class Readings implements UDF1<byte[], Row> {
        @Override
        public Row call(byte[] event) throws Exception {
            Reading it = (Reading) read(event);
            return RowFactory.create(it.id, it.name, it.temp, it.count, it.ok, it.note, it.at);
        }
    }
}

/** As benchmarks/_spark_data.py declares it. */
final class Reading implements Serializable {
    private static final long serialVersionUID = 5;

    long id;
    String name;
    double temp;
    int count;
    boolean ok;
    String note;
    Long at;
}
