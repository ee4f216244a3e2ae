import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.io.RandomAccessFile;
import java.lang.instrument.Instrumentation;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

import net.bytebuddy.agent.ByteBuddyAgent;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.matcher.ElementMatchers;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.TestSource;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs test classes of Kafka and copies each folder with files of a log before it is deleted.
 *
 * The arguments are the folder for the copies and the classes. There `kept.tsv` has a line a copy: its folder, the test that
 * ran; and `tests.tsv` a line a test: how it ended, its name.
 */
public class KeptFolders {
    static final String[] SUFFIXES = {".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint"};
    static Path out;
    static volatile String test = "-";
    /** The tests that made the folders: some are deleted when all tests have ended. */
    static final Map<String, String> makers = new ConcurrentHashMap<>();
    static final AtomicInteger kept = new AtomicInteger();

    public static void main(String[] arguments) throws Exception {
        out = Path.of(arguments[0]);
        Files.createDirectories(out);
        Instrumentation instrumentation = ByteBuddyAgent.install();
        new AgentBuilder.Default()
            .disableClassFormatChanges()
            .with(AgentBuilder.RedefinitionStrategy.RETRANSFORMATION)
            .type(ElementMatchers.named("org.apache.kafka.common.utils.Utils"))
            .transform(new AgentBuilder.Transformer.ForAdvice()
                .include(KeptFolders.class.getClassLoader())
                .advice(ElementMatchers.named("delete").and(ElementMatchers.takesArguments(File.class)), BeforeDelete.class.getName()))
            .installOn(instrumentation);
        LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
            .selectors(Arrays.stream(arguments).skip(1).map(DiscoverySelectors::selectClass).toArray(org.junit.platform.engine.discovery.ClassSelector[]::new))
            .build();
        Launcher launcher = LauncherFactory.create();
        try (PrintStream tests = new PrintStream(out.resolve("tests.tsv").toFile())) {
            launcher.execute(request, new TestExecutionListener() {
                @Override
                public void executionStarted(TestIdentifier identifier) {
                    if (identifier.isTest())
                        test = nameOf(identifier);
                }

                @Override
                public void executionFinished(TestIdentifier identifier, TestExecutionResult result) {
                    if (identifier.isTest()) {
                        tests.println(result.getStatus() + "\t" + nameOf(identifier));
                        for (String name : new File(System.getProperty("java.io.tmpdir")).list())
                            makers.putIfAbsent(name, test);
                        if (result.getThrowable().isPresent())
                            System.out.println(nameOf(identifier) + ": " + result.getThrowable().get());
                    }
                }

                @Override
                public void executionSkipped(TestIdentifier identifier, String reason) {
                    tests.println("SKIPPED\t" + nameOf(identifier));
                }
            });
        }
        System.out.println("kept " + kept.get());
        System.exit(0);  // the hooks delete what is left
    }

    static String nameOf(TestIdentifier identifier) {
        TestSource source = identifier.getSource().orElse(null);
        if (!(source instanceof MethodSource))
            return identifier.getDisplayName();
        MethodSource method = (MethodSource) source;
        String name = method.getClassName() + "." + method.getMethodName();
        String shown = identifier.getDisplayName().replaceAll("\\s+", " ");
        return shown.startsWith(method.getMethodName() + "(") ? name : name + " " + shown;
    }

    /** What runs at the beginning of Utils.delete. */
    public static class BeforeDelete {
        @Advice.OnMethodEnter(suppress = Throwable.class)
        public static void enter(@Advice.Argument(0) File folder) {
            KeptFolders.keep(folder);
        }
    }

    public static void keep(File folder) {
        try {
            if (folder == null || !folder.isDirectory() || folder.toPath().startsWith(out) || !hasFiles(folder.toPath()))
                return;
            String name = String.format("%05d", kept.incrementAndGet());
            Path root = folder.toPath();
            Path target = out.resolve(name).resolve(folder.getName());
            Files.walkFileTree(root, new SimpleFileVisitor<Path>() {
                @Override
                public FileVisitResult preVisitDirectory(Path path, BasicFileAttributes attributes) throws IOException {
                    Files.createDirectories(target.resolve(root.relativize(path).toString()));
                    return FileVisitResult.CONTINUE;
                }

                @Override
                public FileVisitResult visitFile(Path path, BasicFileAttributes attributes) {
                    if (attributes.isRegularFile())
                        copy(path, target.resolve(root.relativize(path).toString()));
                    return FileVisitResult.CONTINUE;
                }

                @Override
                public FileVisitResult visitFileFailed(Path path, IOException error) {
                    return FileVisitResult.CONTINUE;  // another thread deleted it
                }
            });
            Files.writeString(out.resolve("kept.tsv"), name + "\t" + makers.getOrDefault(first(root), test) + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (Throwable error) {
            System.out.println("not kept: " + folder + " " + error);
        }
    }

    /** The name below the folder for temporary files. */
    static String first(Path path) {
        Path temporary = Path.of(System.getProperty("java.io.tmpdir"));
        return path.startsWith(temporary) && !path.equals(temporary) ? temporary.relativize(path).getName(0).toString() : "";
    }

    static boolean hasFiles(Path folder) throws IOException {
        try (java.util.stream.Stream<Path> files = Files.walk(folder)) {
            return files.anyMatch(path -> Arrays.stream(SUFFIXES).anyMatch(suffix -> path.toString().endsWith(suffix)));
        }
    }

    /** Copies without the zeros: most indexes have ten megabytes of them. */
    static void copy(Path from, Path to) {
        byte[] zeros = new byte[1 << 16], block = new byte[1 << 16];
        try (RandomAccessFile in = new RandomAccessFile(from.toFile(), "r"); RandomAccessFile copy = new RandomAccessFile(to.toFile(), "rw")) {
            copy.setLength(in.length());
            for (long at = 0;; ) {
                int size = in.read(block);
                if (size < 0)
                    break;
                if (size != block.length || !Arrays.equals(block, zeros)) {
                    copy.seek(at);
                    copy.write(block, 0, size);
                }
                at += size;
            }
        } catch (IOException gone) {
            // another thread deleted it
        }
    }
}
