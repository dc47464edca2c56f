package vectors;

import java.io.BufferedWriter;
import java.io.Closeable;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/** One .jsonl file: a vector a line, {"name","kind",…,"hex","expect"}. */
final class Manifest implements Closeable {
    private final BufferedWriter out;
    private final Set<String> names = new HashSet<>();
    private int count;

    Manifest(Path file) throws IOException {
        out = Files.newBufferedWriter(file, StandardCharsets.UTF_8);
    }

    void add(String name, String kind, byte[] bytes, Map<String, ?> expect) {
        add(name, kind, Map.of(), bytes, expect);
    }

    void add(String name, String kind, Map<String, ?> extra, byte[] bytes, Object expect) {
        if (!names.add(name)) {
            throw new IllegalStateException("two vectors are named " + name);
        }
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("name", name);
        line.put("kind", kind);
        line.putAll(new java.util.TreeMap<>(extra));
        line.put("hex", HexFormat.of().formatHex(bytes));
        line.put("expect", expect);
        try {
            out.write(Json.write(line));
            out.newLine();
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
        count++;
    }

    int count() {
        return count;
    }

    @Override
    public void close() throws IOException {
        out.close();
    }
}
