package vectors;

import java.io.IOException;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.Predicate;
import java.util.jar.JarFile;

/** Finds RocketMQ's classes by package, sorted by name, so that the manifests come out the same each time. */
final class Classes {
    private Classes() {
    }

    static List<Class<?>> in(Class<?> sameJarAs, String prefix, Predicate<Class<?>> wanted) throws IOException, ClassNotFoundException {
        List<Class<?>> found = new ArrayList<>();
        try (JarFile jar = new JarFile(sameJarAs.getProtectionDomain().getCodeSource().getLocation().getPath())) {
            for (var entries = jar.entries(); entries.hasMoreElements(); ) {
                String name = entries.nextElement().getName();
                if (!name.endsWith(".class") || !name.startsWith(prefix.replace('.', '/'))) {
                    continue;
                }
                Class<?> type = Class.forName(name.substring(0, name.length() - 6).replace('/', '.'), false, sameJarAs.getClassLoader());
                boolean concrete = !type.isInterface() && !Modifier.isAbstract(type.getModifiers()) && !type.isEnum();
                if (concrete && Modifier.isPublic(type.getModifiers()) && wanted.test(type)) {
                    found.add(type);
                }
            }
        }
        found.sort(Comparator.comparing(Class::getName));
        return found;
    }
}
