package vectors;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.parser.Feature;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;

/** Strict JSON for the manifest lines, so that no reader depends on fastjson's dialect. */
final class Json {
    private Json() {
    }

    /** The tree of a text in fastjson's dialect; member order is kept. */
    static Object lenient(String text) {
        return JSON.parse(text, Feature.OrderedField);
    }

    static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        if (value == null || value instanceof Boolean || value instanceof Integer || value instanceof Long
            || value instanceof java.math.BigInteger || value instanceof Short || value instanceof Byte) {
            out.append(value);
        } else if (value instanceof Number) {
            out.append(value instanceof java.math.BigDecimal big ? big.toPlainString() : value.toString());
        } else if (value instanceof Map<?, ?> map) {
            writeMap(map, out);
        } else if (value instanceof Collection<?> list) {
            out.append('[');
            String separator = "";
            for (Object item : list) {
                out.append(separator);
                write(item, out);
                separator = ",";
            }
            out.append(']');
        } else {
            writeString(value.toString(), out);
        }
    }

    /** A map whose keys are objects (a MessageQueue, say) has no JSON form: it becomes {"@entries":[[key,value]...]}. */
    private static void writeMap(Map<?, ?> map, StringBuilder out) {
        boolean plain = map.keySet().stream().noneMatch(key -> key instanceof Map || key instanceof Collection);
        if (!plain) {
            List<Object> entries = new ArrayList<>();
            map.forEach((key, item) -> entries.add(java.util.Arrays.asList(key, item)));
            out.append("{\"@entries\":");
            write(entries, out);
            out.append('}');
            return;
        }
        out.append('{');
        String separator = "";
        for (Map.Entry<?, ?> entry : map.entrySet()) {
            out.append(separator);
            writeString(String.valueOf(entry.getKey()), out);
            out.append(':');
            write(entry.getValue(), out);
            separator = ",";
        }
        out.append('}');
    }

    private static void writeString(String text, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 0x20 || c == 0x7f) {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }
}
