package vectors;

import java.nio.file.Files;
import java.nio.file.Path;

/** Writes all manifests into the folder given. */
public final class Main {
    private Main() {
    }

    interface Part {
        void write(Manifest to) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[0]);
        Files.createDirectories(folder);
        part(folder, "frames.jsonl", Frames::write);
        part(folder, "bodies.jsonl", Bodies::write);
        part(folder, "records.jsonl", Records::write);
        part(folder, "primitives.jsonl", Primitives::write);
    }

    private static void part(Path folder, String file, Part part) throws Exception {
        try (Manifest manifest = new Manifest(folder.resolve(file))) {
            part.write(manifest);
            System.out.println(file + ": " + manifest.count() + " vectors");
        }
    }
}
