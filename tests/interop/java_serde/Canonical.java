import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/** Prints an object as one line of JSON, in the notation of the golden vectors (tests/vectors/README.md). */
final class Canonical {
    private final StringBuilder out = new StringBuilder();
    private final IdentityHashMap<Object, Integer> seen = new IdentityHashMap<>();

    static String of(Object value) throws ReflectiveOperationException {
        Canonical canonical = new Canonical();
        canonical.value(value);
        return canonical.out.toString();
    }

    static String quote(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 0x20 || c > 0x7e) {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }

    private void value(Object value) throws ReflectiveOperationException {
        if (value == null) {
            out.append("null");
        } else if (value instanceof String text) {
            field("java.lang.String").append(",\"v\":").append(quote(text)).append('}');
        } else if (value instanceof Boolean || value instanceof Integer || value instanceof Long || value instanceof Short || value instanceof Byte) {
            field(value.getClass().getName()).append(",\"v\":").append(value).append('}');
        } else if (value instanceof Character c) {
            field("java.lang.Character").append(",\"v\":").append((int) c).append('}');
        } else if (value instanceof Double d) {
            bits(value, String.format("%016x", Double.doubleToRawLongBits(d)));
        } else if (value instanceof Float f) {
            bits(value, String.format("%08x", Float.floatToRawIntBits(f)));
        } else if (value instanceof Enum<?> constant) {
            field(constant.getDeclaringClass().getName()).append(",\"enum\":").append(quote(constant.name())).append('}');
        } else if (value instanceof Class<?> type) {
            field("java.lang.Class").append(",\"v\":").append(quote(type.getName())).append('}');
        } else if (seen.containsKey(value)) {
            out.append("{\"ref\":").append(seen.get(value)).append('}');
        } else {
            seen.put(value, seen.size());
            object(value, seen.size() - 1);
        }
    }

    private StringBuilder field(String type) {
        return out.append("{\"t\":").append(quote(type));
    }

    private void bits(Object value, String bits) {
        field(value.getClass().getName()).append(",\"v\":").append(quote(value.toString())).append(",\"bits\":\"").append(bits).append("\"}");
    }

    private void object(Object value, int id) throws ReflectiveOperationException {
        String name = value.getClass().isArray() ? value.getClass().getCanonicalName() : value.getClass().getName();
        field(name).append(",\"id\":").append(id);
        if (value instanceof byte[] raw) {
            out.append(",\"hex\":\"").append(HexFormat.of().formatHex(raw)).append('"');
        } else if (value.getClass().isArray()) {
            List<Object> items = new ArrayList<>();
            for (int i = 0; i < Array.getLength(value); i++) {
                items.add(Array.get(value, i));
            }
            items(items, value.getClass().getComponentType().isPrimitive());
        } else if (value instanceof List<?> list && name.endsWith("$CopiesList")) {
            out.append(",\"n\":").append(list.size());
        } else if (value instanceof Map<?, ?> map) {
            entries(map);
        } else if (value instanceof Collection<?> collection) {
            items(collection, false);
        } else if (value instanceof BigDecimal number) {
            out.append(",\"v\":\"").append(number).append("\",\"unscaled\":\"").append(number.unscaledValue());
            out.append("\",\"scale\":").append(number.scale());
        } else if (value instanceof java.sql.Timestamp stamp) {
            out.append(",\"millis\":").append(stamp.getTime()).append(",\"nanos\":").append(stamp.getNanos());
        } else if (value instanceof java.util.Date date) {
            out.append(",\"millis\":").append(date.getTime());
        } else if (value instanceof BigInteger || name.startsWith("java.")) {
            out.append(",\"v\":").append(quote(value.toString()));
        } else if (java.lang.reflect.Proxy.isProxyClass(value.getClass())) {
            out.append(",\"handler\":");
            value(java.lang.reflect.Proxy.getInvocationHandler(value));
        } else {
            fields(value);
        }
        out.append('}');
    }

    private void items(Collection<?> items, boolean primitive) throws ReflectiveOperationException {
        out.append(",\"v\":[");
        String comma = "";
        for (Object item : items) {
            out.append(comma);
            comma = ",";
            if (primitive) {
                boolean bare = item instanceof Integer || item instanceof Long || item instanceof Short || item instanceof Boolean;
                out.append(bare ? item.toString() : item instanceof Character c ? Integer.toString(c) : quote(item.toString()));
            } else {
                value(item);
            }
        }
        out.append(']');
    }

    private void entries(Map<?, ?> map) throws ReflectiveOperationException {
        out.append(",\"entries\":[");
        String comma = "";
        for (Map.Entry<?, ?> entry : map.entrySet()) {
            out.append(comma).append('[');
            comma = ",";
            value(entry.getKey());
            out.append(',');
            value(entry.getValue());
            out.append(']');
        }
        out.append(']');
    }

    private void fields(Object value) throws ReflectiveOperationException {
        List<Class<?>> chain = new ArrayList<>();
        for (Class<?> at = value.getClass(); at != Object.class && !at.getName().startsWith("java."); at = at.getSuperclass()) {
            chain.add(0, at);
        }
        out.append(",\"f\":{");
        String comma = "";
        java.util.Set<String> names = new java.util.HashSet<>();
        for (Class<?> owner : chain) {
            for (Field each : owner.getDeclaredFields()) {
                if (Modifier.isStatic(each.getModifiers()) || each.isSynthetic()) {
                    continue;
                }
                each.setAccessible(true);
                String key = names.add(each.getName()) ? each.getName() : owner.getSimpleName() + "." + each.getName();
                out.append(comma).append(quote((Modifier.isTransient(each.getModifiers()) ? "transient:" : "") + key)).append(':');
                comma = ",";
                value(each.get(value));
            }
        }
        out.append('}');
    }
}
