package vectors;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Fills every field of an object of RocketMQ's with values that differ from each other and are the same in every run. */
final class Filler {
    private static final int MAX_DEPTH = 6;
    private int next = 1;

    /** An instance with every field set; null when the class cannot be made. */
    static Object fill(Class<?> type) throws ReflectiveOperationException {
        return new Filler().object(type, new HashMap<>(), 0);
    }

    private Object object(Class<?> type, Map<String, Type> variables, int depth) throws ReflectiveOperationException {
        Constructor<?> constructor;
        try {
            constructor = type.getDeclaredConstructor();
        } catch (NoSuchMethodException e) {
            return withArguments(type, depth);
        }
        constructor.setAccessible(true);
        Object made = constructor.newInstance();
        for (Field field : fields(type)) {
            field.setAccessible(true);
            Object value = value(field.getGenericType(), field.getName(), depth + 1);
            if (value != null) {
                set(made, field, value);
            }
        }
        return made;
    }

    private Object withArguments(Class<?> type, int depth) throws ReflectiveOperationException {
        Constructor<?>[] all = type.getDeclaredConstructors();
        if (all.length == 0 || Modifier.isAbstract(type.getModifiers())) {
            return null;
        }
        Constructor<?> constructor = all[0];
        constructor.setAccessible(true);
        Type[] parameters = constructor.getGenericParameterTypes();
        Object[] arguments = new Object[parameters.length];
        for (int i = 0; i < parameters.length; i++) {
            arguments[i] = value(parameters[i], "argument" + i, depth + 1);
        }
        return constructor.newInstance(arguments);
    }

    private static void set(Object target, Field field, Object value) throws IllegalAccessException {
        if (Modifier.isFinal(field.getModifiers())) {
            Object present = field.get(target);
            if (present instanceof Map && value instanceof Map) {
                @SuppressWarnings("unchecked") Map<Object, Object> map = (Map<Object, Object>) present;
                map.putAll((Map<?, ?>) value);
            } else if (present instanceof Collection && value instanceof Collection) {
                @SuppressWarnings("unchecked") Collection<Object> list = (Collection<Object>) present;
                list.addAll((Collection<?>) value);
            }
            return;
        }
        field.set(target, value);
    }

    /** Instance fields of the class and of its parents, as RocketMQ's own header writer walks them. */
    static List<Field> fields(Class<?> type) {
        List<Field> found = new ArrayList<>();
        for (Class<?> c = type; c != null && c.getName().startsWith("org.apache.rocketmq"); c = c.getSuperclass()) {
            for (Field field : c.getDeclaredFields()) {
                if (!Modifier.isStatic(field.getModifiers()) && !field.getName().startsWith("this")) {
                    found.add(field);
                }
            }
        }
        return found;
    }

    Object value(Type type, String name, int depth) throws ReflectiveOperationException {
        int n = next++;
        if (type instanceof ParameterizedType generic) {
            return container((Class<?>) generic.getRawType(), generic.getActualTypeArguments(), name, depth);
        }
        if (!(type instanceof Class<?> plain)) {
            return null;
        }
        if (plain == String.class) {
            return string(name, n);
        }
        if (plain == int.class || plain == Integer.class) {
            return 1000 + n;
        }
        if (plain == long.class || plain == Long.class) {
            return 4_000_000_000_000L + n;
        }
        if (plain == boolean.class || plain == Boolean.class) {
            return Boolean.TRUE;
        }
        if (plain == short.class || plain == Short.class) {
            return (short) n;
        }
        if (plain == byte.class || plain == Byte.class) {
            return (byte) n;
        }
        if (plain == double.class || plain == Double.class) {
            return n + 0.5;
        }
        if (plain == AtomicLong.class) {
            return new AtomicLong(5_000_000_000L + n);
        }
        if (plain == AtomicInteger.class) {
            return new AtomicInteger(n);
        }
        if (plain == byte[].class) {
            return new byte[] {1, 2, (byte) 0xff};
        }
        if (plain == BitSet.class) {
            return BitSet.valueOf(new byte[] {1, 2, (byte) 0xff});
        }
        if (plain == java.util.Properties.class) {
            java.util.Properties properties = new java.util.Properties();
            properties.setProperty(name + "Key", name + "Value");
            return properties;
        }
        if (plain.isEnum() || plain.getSuperclass() != null && plain.getSuperclass().isEnum()) {
            Object[] all = plain.getEnumConstants();
            return all[all.length - 1];
        }
        if (plain.getName().startsWith("org.apache.rocketmq") && depth < MAX_DEPTH) {
            return object(plain, new HashMap<>(), depth);
        }
        return null;
    }

    /** Every fourth text has letters beyond ASCII. */
    private static String string(String name, int n) {
        return n % 4 == 0 ? name + "-Ärger-消息-\uD83D\uDE80" : name + n;
    }

    private Object container(Class<?> raw, Type[] of, String name, int depth) throws ReflectiveOperationException {
        if (Map.class.isAssignableFrom(raw)) {
            Object key = value(of[0], name + "Key", depth + 1);
            Object item = value(of[1], name, depth + 1);
            if (key == null || item == null) {
                return null;
            }
            Map<Object, Object> map = ConcurrentMap.class.isAssignableFrom(raw) ? new ConcurrentHashMap<>()
                : java.util.SortedMap.class.isAssignableFrom(raw) ? new java.util.TreeMap<>() : new HashMap<>();
            map.put(key, item);
            return raw.isInstance(map) ? map : null;
        }
        if (Collection.class.isAssignableFrom(raw)) {
            Object item = value(of[0], name, depth + 1);
            Collection<Object> list = Set.class.isAssignableFrom(raw)
                ? java.util.SortedSet.class.isAssignableFrom(raw) ? new java.util.TreeSet<>() : new HashSet<>()
                : java.util.LinkedList.class.isAssignableFrom(raw) ? new java.util.LinkedList<>() : new ArrayList<>();
            if (item != null) {
                list.add(item);
            }
            return raw.isInstance(list) ? list : null;
        }
        return null;
    }
}
