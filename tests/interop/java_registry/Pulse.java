package com.example.avro;

import org.apache.avro.Schema;
import org.apache.avro.specific.SpecificRecordBase;

/** The second type of streams with several. */
public class Pulse extends SpecificRecordBase {
    public static final Schema SCHEMA$ = new Schema.Parser().parse("{\"type\":\"record\",\"name\":\"Pulse\","
        + "\"namespace\":\"com.example.avro\",\"fields\":[{\"name\":\"at\",\"type\":\"long\"},"
        + "{\"name\":\"beats\",\"type\":{\"type\":\"array\",\"items\":\"int\"}}]}");

    private long at;
    private java.util.List<Integer> beats;

    public Pulse() {
    }

    public Pulse(long at, java.util.List<Integer> beats) {
        this.at = at;
        this.beats = beats;
    }

    @Override
    public Schema getSchema() {
        return SCHEMA$;
    }

    @Override
    public Object get(int field) {
        return field == 0 ? (Object) at : beats;
    }

    @Override
    @SuppressWarnings("unchecked")
    public void put(int field, Object value) {
        if (field == 0) {
            at = (Long) value;
        } else {
            beats = (java.util.List<Integer>) value;
        }
    }
}
