import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.security.auth.*;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.server.authorizer.*;

/** Answers questions with Kafka's own authorizer: AclAuthorizer (zookeeper) or StandardAuthorizer (kraft). */
public class Authorize {
    static class Context implements AuthorizableRequestContext {
        final KafkaPrincipal principal;
        final InetAddress address;
        Context(String principal, String host) throws Exception {
            this.principal = SecurityUtils.parseKafkaPrincipal(principal);
            this.address = InetAddress.getByName(host);
        }
        public String listenerName() { return "PLAINTEXT"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        public KafkaPrincipal principal() { return principal; }
        public InetAddress clientAddress() { return address; }
        public int requestType() { return 3; }
        public int requestVersion() { return 1; }
        public String clientId() { return "test"; }
        public int correlationId() { return 1; }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        StringBuilder out = new StringBuilder();
        Authorizer authorizer = null;
        Map<ResourcePattern, List<AccessControlEntry>> rules = new LinkedHashMap<>();
        Map<String, String> settings = new HashMap<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\t", -1);
            switch (parts[0]) {
                case "set":
                    settings = new HashMap<>();
                    if (!parts[1].isEmpty()) settings.put("super.users", parts[1]);
                    settings.put("allow.everyone.if.no.acl.found", parts[2]);
                    rules = new LinkedHashMap<>();
                    authorizer = null;
                    break;
                case "acl":
                    ResourcePattern pattern = new ResourcePattern(
                        ResourceType.valueOf(parts[1]), parts[2], PatternType.valueOf(parts[3]));
                    rules.computeIfAbsent(pattern, p -> new ArrayList<>()).add(new AccessControlEntry(
                        parts[4], parts[5], AclOperation.valueOf(parts[6]), AclPermissionType.valueOf(parts[7])));
                    break;
                case "ask":
                    if (authorizer == null)
                        authorizer = args[0].equals("kraft") ? kraft(rules, settings) : zookeeper(rules, settings);
                    Action action = new Action(AclOperation.valueOf(parts[3]),
                        new ResourcePattern(ResourceType.valueOf(parts[4]), parts[5], PatternType.LITERAL), 1, false, false);
                    out.append(authorizer.authorize(new Context(parts[1], parts[2]), List.of(action)).get(0)).append('\n');
            }
        }
        System.out.print(out);
    }

    static Authorizer kraft(Map<ResourcePattern, List<AccessControlEntry>> rules, Map<String, String> settings)
            throws Exception {
        Class<?> type = Class.forName("org.apache.kafka.metadata.authorizer.StandardAuthorizer");
        Class<?> standardAcl = Class.forName("org.apache.kafka.metadata.authorizer.StandardAcl");
        Authorizer authorizer = (Authorizer) type.getDeclaredConstructor().newInstance();
        Map<String, Object> configs = new HashMap<>(settings);
        configs.put("node.id", "1");
        authorizer.configure(configs);
        for (Method method : type.getMethods())  // Kafka 4 counts what it decides
            if (method.getName().equals("withPluginMetrics"))
                method.invoke(authorizer, Class.forName("org.apache.kafka.common.metrics.internals.PluginMetricsImpl")
                    .getConstructors()[0].newInstance(new org.apache.kafka.common.metrics.Metrics(), new HashMap<>()));
        Method from = standardAcl.getMethod("fromAclBinding", AclBinding.class);
        Method add = type.getMethod("addAcl", Uuid.class, standardAcl);
        for (Map.Entry<ResourcePattern, List<AccessControlEntry>> of : rules.entrySet())
            for (AccessControlEntry entry : new LinkedHashSet<>(of.getValue()))
                add.invoke(authorizer, Uuid.randomUuid(), from.invoke(null, new AclBinding(of.getKey(), entry)));
        type.getMethod("completeInitialLoad").invoke(authorizer);
        return authorizer;
    }

    static Authorizer zookeeper(Map<ResourcePattern, List<AccessControlEntry>> rules, Map<String, String> settings)
            throws Exception {
        Class<?> type = Class.forName("kafka.security.authorizer.AclAuthorizer");
        Class<?> versioned = Class.forName("kafka.security.authorizer.AclAuthorizer$VersionedAcls");
        Class<?> entryType;
        try {
            entryType = Class.forName("kafka.security.authorizer.AclEntry");
        } catch (ClassNotFoundException moved) {
            entryType = Class.forName("org.apache.kafka.security.authorizer.AclEntry");
        }
        Authorizer authorizer = (Authorizer) type.getDeclaredConstructor().newInstance();
        Set<KafkaPrincipal> superUsers = new HashSet<>();
        if (settings.containsKey("super.users"))
            for (String name : settings.get("super.users").split(";"))
                superUsers.add(SecurityUtils.parseKafkaPrincipal(name.trim()));
        put(type, authorizer, "superUsers", scalaSet(superUsers));
        put(type, authorizer, "shouldAllowEveryoneIfNoAclIsFound",
            Boolean.parseBoolean(settings.get("allow.everyone.if.no.acl.found")));
        Method update = null;
        for (Method method : type.getDeclaredMethods())
            if (method.getName().endsWith("updateCache") && method.getParameterCount() == 2) update = method;
        update.setAccessible(true);
        for (Map.Entry<ResourcePattern, List<AccessControlEntry>> of : rules.entrySet()) {
            Set<Object> entries = new HashSet<>();
            for (AccessControlEntry entry : of.getValue())
                entries.add(entryType.getConstructor(AccessControlEntry.class).newInstance(entry));
            Object acls = versioned.getConstructors()[0].newInstance(scalaSet(entries), 0);
            update.invoke(authorizer, of.getKey(), acls);
        }
        return authorizer;
    }

    static void put(Class<?> type, Object object, String name, Object value) throws Exception {
        for (Field field : type.getDeclaredFields())
            if (field.getName().endsWith(name)) {
                field.setAccessible(true);
                field.set(object, value);
                return;
            }
        throw new IllegalStateException("no field " + name);
    }

    static Object scalaSet(Set<?> of) throws Exception {
        Class<?> converters = Class.forName("scala.jdk.javaapi.CollectionConverters");
        Object mutable = converters.getMethod("asScala", Set.class).invoke(null, of);
        return Class.forName("scala.collection.IterableOnceOps").getMethod("toSet").invoke(mutable);
    }
}
