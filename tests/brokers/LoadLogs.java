import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;

/**
 * Loads log directories as a broker does on its start, with Kafka's own LogManager and nothing else of a broker.
 *
 * Each line of standard input names a log directory. For each, a line `begin`, then `loaded TOPIC-N START END RECOVERY`
 * a partition, `offline CLASS: MESSAGE`, `failed CLASS: MESSAGE` where the process would end, and `end`.
 */
public class LoadLogs {
    static Object scheduler, time, channel;

    public static void main(String[] arguments) throws Exception {
        try {  // what halts a broker is an exception here
            Class<?> exit = Class.forName("org.apache.kafka.common.utils.Exit");
            Class<?> procedure = Class.forName("org.apache.kafka.common.utils.Exit$Procedure");
            Object halt = java.lang.reflect.Proxy.newProxyInstance(
                procedure.getClassLoader(), new Class<?>[] {procedure},
                (proxy, method, values) -> { throw new IllegalStateException("halt"); });
            exit.getMethod("setHaltProcedure", procedure).invoke(null, halt);
        } catch (ClassNotFoundException old) {
            // 0.10.2 and before
        }
        Class<?> schedulers = named("org.apache.kafka.server.util.KafkaScheduler", "kafka.utils.KafkaScheduler");
        scheduler = built(schedulers);
        scheduler.getClass().getMethod("startup").invoke(scheduler);
        BufferedReader names = new BufferedReader(new InputStreamReader(System.in));
        for (String name = names.readLine(); name != null; name = names.readLine()) {
            System.out.println("begin " + name);
            try {
                load(name);
            } catch (Throwable error) {
                Throwable cause = error;
                while (cause instanceof InvocationTargetException || cause instanceof java.util.concurrent.ExecutionException)
                    cause = cause.getCause();
                if (System.getenv("TRACE") != null)
                    cause.printStackTrace();
                System.out.println("failed " + oneLine(cause));
            }
            Thread.sleep(Long.getLong("settle", 30));  // epochs are written by a thread of the scheduler
            System.out.println("end");
            System.out.flush();
        }
        Thread.sleep(1000);  // those of the last folders too, on a busy machine
        Runtime.getRuntime().halt(0);
    }

    static String oneLine(Throwable error) {
        return error.toString().replace('\n', ' ').replace('\r', ' ').replace('\0', ' ');
    }

    static void load(String name) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("log.dirs", name);
        properties.setProperty("log.message.timestamp.type", "CreateTime");
        boolean isKraft = exists("org.apache.kafka.server.util.KafkaScheduler");
        if (isKraft) {
            properties.setProperty("process.roles", "broker");
            properties.setProperty("node.id", "1");
            properties.setProperty("controller.quorum.voters", "2@localhost:9093");
            properties.setProperty("controller.listener.names", "CONTROLLER");
            properties.setProperty("listeners", "PLAINTEXT://localhost:9092");
        } else {
            properties.setProperty("zookeeper.connect", "localhost:2181");
            properties.setProperty("broker.id", "1");
        }
        Class<?> config = Class.forName("kafka.server.KafkaConfig");
        Object broker = exists("kafka.server.KafkaConfig") && !exists("kafka.utils.SystemTime$")
            ? staticMethod(config, "fromProps", 1).invoke(null, properties) : null;  // 0.8.2 and 0.9 do without
        Class<?> channels = named("org.apache.kafka.storage.internals.log.LogDirFailureChannel",
            "kafka.server.LogDirFailureChannel");
        channel = channels == null ? null : channels.getConstructor(int.class).newInstance(10);
        Object manager = manager(broker, new File(name));
        Object offline = channel == null ? null : offline(channel);
        if (offline != null)
            System.out.println("offline " + offline);
        Object logs = manager.getClass().getMethod("allLogs").invoke(manager);
        Object iterator = logs.getClass().getMethod("iterator").invoke(logs);
        Method hasNext = Class.forName("scala.collection.Iterator").getMethod("hasNext");
        Method next = Class.forName("scala.collection.Iterator").getMethod("next");
        while ((Boolean) hasNext.invoke(iterator)) {
            Object log = next.invoke(iterator);
            System.out.println("loaded " + ((File) value(log, "dir")).getName() + " " + start(log)
                + " " + value(log, "logEndOffset") + " " + value(log, "recoveryPoint"));
        }
    }

    /** Up to 0.10.2 a log starts with its first segment. */
    static Object start(Object log) throws Exception {
        try {
            return value(log, "logStartOffset");
        } catch (NoSuchMethodException old) {
            Object segments = value(log, "logSegments");
            return value(segments.getClass().getMethod("head").invoke(segments), "baseOffset");
        }
    }

    static Object manager(Object broker, File folder) throws Exception {
        Class<?> managers = Class.forName("kafka.log.LogManager");
        Method apply = null;
        for (Method method : managers.getMethods())
            if (method.getName().equals("apply") && Modifier.isStatic(method.getModifiers()))
                apply = method;
        boolean hasZookeeper = apply == null || Arrays.stream(apply.getParameterTypes())
            .anyMatch(type -> type.getName().contains("Zk"));
        if (hasZookeeper)
            return constructed(managers, folder);
        Object[] values = new Object[apply.getParameterCount()];
        for (int i = 0; i < values.length; i++) {
            Class<?> type = apply.getParameterTypes()[i];
            values[i] = type.isInstance(broker) ? broker : type == boolean.class ? Boolean.TRUE
                : type.getName().equals("scala.collection.Seq") ? list(List.of()) : known(type);
        }
        Object manager = apply.invoke(null, values);
        for (Method method : managers.getDeclaredMethods()) {
            if (!method.getName().equals("loadLogs"))
                continue;
            method.setAccessible(true);
            Object[] given = new Object[method.getParameterCount()];
            for (int i = 0; i < given.length; i++) {
                String type = method.getParameterTypes()[i].getName();
                given[i] = type.endsWith("LogConfig") ? value(manager, "currentDefaultConfig")
                    : type.endsWith("Map") ? map() : never(method.getParameterTypes()[i]);
            }
            method.invoke(manager, given);
        }
        return manager;
    }

    /** Up to 2.7 the constructor loads the logs. */
    static Object constructed(Class<?> managers, File folder) throws Exception {
        Constructor<?> constructor = managers.getConstructors()[0];
        Object[] values = new Object[constructor.getParameterCount()];
        int lists = 0, threads = 0;
        for (int i = 0; i < values.length; i++) {
            Class<?> type = constructor.getParameterTypes()[i];
            if (type == File[].class)
                values[i] = new File[] {folder};
            else if (type.getName().equals("scala.collection.Seq"))
                values[i] = list(lists++ == 0 ? List.of(folder) : List.of());
            else if (type.getName().equals("scala.collection.Map"))
                values[i] = map();
            else if (type == int.class)
                values[i] = threads++ == 0 ? 1 : 86400000;
            else if (type == long.class)
                values[i] = 60000L;
            else
                values[i] = known(type);
        }
        return constructor.newInstance(values);
    }

    static Object known(Class<?> type) throws Exception {
        if (type.isInstance(scheduler))
            return scheduler;
        if (channel != null && type.isInstance(channel))
            return channel;
        if (type.getName().endsWith(".Time"))
            return clock(type);
        if (type.getName().endsWith("LogConfig") || type.getName().endsWith("CleanerConfig"))
            return defaults(type);
        if (type.getName().endsWith("BrokerState"))
            return built(type);
        if (type.getName().endsWith("BrokerTopicStats"))
            return built(type);
        return null;
    }

    static Object clock(Class<?> type) throws Exception {
        try {
            return type.getField("SYSTEM").get(null);
        } catch (NoSuchFieldException other) {
            Class<?> system = named("org.apache.kafka.common.utils.SystemTime", "kafka.utils.SystemTime$");
            if (type.isAssignableFrom(system))
                return system.getName().endsWith("$") ? system.getField("MODULE$").get(null) : built(system);
            return Class.forName("kafka.utils.SystemTime$").getField("MODULE$").get(null);
        }
    }

    /** An object of a Scala class with the defaults of its parameters. */
    static Object defaults(Class<?> type) throws Exception {
        Constructor<?> most = Arrays.stream(type.getConstructors())
            .max((a, b) -> a.getParameterCount() - b.getParameterCount()).get();
        Object[] values = new Object[most.getParameterCount()];
        for (int i = 0; i < values.length; i++) {
            Class<?> parameter = most.getParameterTypes()[i];
            try {
                values[i] = type.getMethod("$lessinit$greater$default$" + (i + 1)).invoke(null);
            } catch (NoSuchMethodException none) {
                values[i] = java.util.Map.class.isAssignableFrom(parameter) ? new Properties() : null;
            }
        }
        return most.newInstance(values);
    }

    static Object built(Class<?> type) throws Exception {
        Exception last = null;
        for (Constructor<?> constructor : type.getConstructors()) {
            Object[] values = new Object[constructor.getParameterCount()];
            for (int i = 0; i < values.length; i++) {
                Class<?> parameter = constructor.getParameterTypes()[i];
                values[i] = parameter == int.class ? (Object) 2 : parameter == boolean.class ? (Object) true
                    : parameter == String.class ? "loading" : parameter == java.util.Optional.class
                    ? java.util.Optional.empty() : null;
            }
            try {
                return constructor.newInstance(values);
            } catch (Exception error) {
                last = error;
            }
        }
        throw last;
    }

    static Object offline(Object channel) throws Exception {
        java.lang.reflect.Field[] fields = channel.getClass().getDeclaredFields();
        for (java.lang.reflect.Field field : fields) {
            field.setAccessible(true);
            Object held = field.get(channel);
            if (held instanceof java.util.Map && !((java.util.Map<?, ?>) held).isEmpty())
                return ((java.util.Map<?, ?>) held).keySet();
        }
        return null;
    }

    static Object value(Object owner, String name) throws Exception {
        Method method = owner.getClass().getMethod(name);
        method.setAccessible(true);
        return method.invoke(owner);
    }

    static Method staticMethod(Class<?> type, String name, int parameters) {
        for (Method method : type.getMethods())
            if (method.getName().equals(name) && Modifier.isStatic(method.getModifiers())
                    && method.getParameterCount() == parameters
                    && method.getParameterTypes()[0].isAssignableFrom(Properties.class))
                return method;
        throw new IllegalArgumentException(name);
    }

    static Object list(List<?> items) throws Exception {
        Class<?> buffers = Class.forName("scala.collection.mutable.ListBuffer");
        Object buffer = buffers.getConstructor().newInstance();
        Method add = Arrays.stream(buffers.getMethods())
            .filter(m -> m.getName().equals("$plus$eq") && m.getParameterCount() == 1).findFirst().get();
        for (Object item : items)
            add.invoke(buffer, item);
        return buffers.getMethod("toList").invoke(buffer);
    }

    static Object map() throws Exception {
        return Class.forName("scala.collection.immutable.Map$EmptyMap$").getField("MODULE$").get(null);
    }

    static Object never(Class<?> function) {
        return java.lang.reflect.Proxy.newProxyInstance(function.getClassLoader(), new Class<?>[] {function},
            (proxy, method, values) -> false);
    }

    static boolean exists(String name) {
        return named(name) != null;
    }

    static Class<?> named(String... names) {
        for (String name : names) {
            try {
                return Class.forName(name);
            } catch (ClassNotFoundException next) {
                continue;
            }
        }
        return null;
    }
}
