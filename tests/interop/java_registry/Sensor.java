package com.example.avro;

import org.apache.avro.Schema;
import org.apache.avro.specific.SpecificRecordBase;

/** What Avro's compiler makes of a schema, as far as a serializer looks at it. */
public class Sensor extends SpecificRecordBase {
    public static final Schema SCHEMA$ = new Schema.Parser().parse("{\"type\":\"record\",\"name\":\"Sensor\","
        + "\"namespace\":\"com.example.avro\",\"fields\":[{\"name\":\"id\",\"type\":\"long\"},"
        + "{\"name\":\"name\",\"type\":\"string\"},{\"name\":\"temp\",\"type\":\"double\"},"
        + "{\"name\":\"count\",\"type\":\"int\"},{\"name\":\"ok\",\"type\":\"boolean\"},"
        + "{\"name\":\"note\",\"type\":[\"null\",\"string\"],\"default\":null}]}");

    private long id;
    private CharSequence name;
    private double temp;
    private int count;
    private boolean ok;
    private CharSequence note;

    public Sensor() {
    }

    public Sensor(long id, String name, double temp, int count, boolean ok, String note) {
        this.id = id;
        this.name = name;
        this.temp = temp;
        this.count = count;
        this.ok = ok;
        this.note = note;
    }

    @Override
    public Schema getSchema() {
        return SCHEMA$;
    }

    @Override
    public Object get(int field) {
        return new Object[] {id, name, temp, count, ok, note}[field];
    }

    @Override
    public void put(int field, Object value) {
        switch (field) {
            case 0 -> id = (Long) value;
            case 1 -> name = (CharSequence) value;
            case 2 -> temp = (Double) value;
            case 3 -> count = (Integer) value;
            case 4 -> ok = (Boolean) value;
            default -> note = (CharSequence) value;
        }
    }
}
