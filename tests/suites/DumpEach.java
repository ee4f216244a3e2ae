import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;

/**
 * Kafka's DumpLogSegments over many files in one process.
 *
 * Each line of standard input is the path to write to, a tab, and the arguments, divided by tabs. For each a line
 * follows on standard output: `ok`, or the class of what the tool threw.
 */
public class DumpEach {
    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        Class<?> exit = Class.forName("org.apache.kafka.common.utils.Exit");
        Class<?> procedure = Class.forName("org.apache.kafka.common.utils.Exit$Procedure");
        Object thrown = Proxy.newProxyInstance(procedure.getClassLoader(), new Class<?>[] {procedure},
            (proxy, method, values) -> { throw new IllegalStateException("exit " + values[0]); });
        exit.getMethod("setExitProcedure", procedure).invoke(null, thrown);
        Method main = Class.forName("kafka.tools.DumpLogSegments").getMethod("main", String[].class);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] fields = line.split("\t");
            String answer = "ok";
            try (PrintStream out = new PrintStream(new java.io.BufferedOutputStream(new FileOutputStream(fields[0]), 1 << 16))) {
                System.setOut(out);
                try {
                    // Scala's Console remembers the standard output of its beginning.
                    Class<?> console = Class.forName("scala.Console$");
                    Object instance = console.getField("MODULE$").get(null);
                    scala.runtime.AbstractFunction0<Object> body = new scala.runtime.AbstractFunction0<Object>() {
                        @Override
                        public Object apply() {
                            try {
                                main.invoke(null, (Object) java.util.Arrays.copyOfRange(fields, 1, fields.length));
                            } catch (InvocationTargetException error) {
                                return error.getCause().getClass().getName();
                            } catch (ReflectiveOperationException error) {
                                return error.toString();
                            }
                            return "ok";
                        }
                    };
                    answer = (String) console.getMethod("withOut", java.io.OutputStream.class, scala.Function0.class).invoke(instance, out, body);
                } catch (Throwable error) {
                    answer = error.toString().replace('\n', ' ');
                }
            }
            answers.println(answer);
            answers.flush();
        }
    }
}
