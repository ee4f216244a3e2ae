import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Base64;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * Runs Kafka's tools one after another in one Java. A line of the input has the class and its arguments in base64; the
 * answer is the line `ended STATUS SIZE` and as many bytes, what the tool printed on both streams. The end of the input
 * ends a tool that runs too.
 *
 * A tool that ends the whole Java, as those before Kafka 1.0 do, has printed to the real output by then.
 */
public class Tools {
    /** Where a tool prints; Scala keeps the first System.out that it saw, so the stream stays and its end changes. */
    private static class Printed extends OutputStream {
        private OutputStream to;
        Printed(OutputStream to) { this.to = to; }
        synchronized void turn(OutputStream to) { this.to = to; }
        @Override public synchronized void write(int one) throws IOException { to.write(one); }
        @Override public synchronized void write(byte[] bytes, int from, int size) throws IOException { to.write(bytes, from, size); }
        @Override public synchronized void flush() throws IOException { to.flush(); }
    }

    private static class Ended extends Error { }

    private static final LinkedBlockingQueue<String> LINES = new LinkedBlockingQueue<>();
    private static volatile Integer status;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        Thread reader = new Thread(() -> {
            try {
                for (String line = in.readLine(); line != null; line = in.readLine()) LINES.add(line);
            } catch (IOException e) { /* as if it had ended */ }
            Runtime.getRuntime().halt(0);
        });
        reader.setDaemon(true);
        reader.start();
        PrintStream real = System.out;
        Printed out = new Printed(real), err = new Printed(real);
        System.setIn(new ByteArrayInputStream(new byte[0]));
        System.setOut(new PrintStream(out, true));
        System.setErr(new PrintStream(err, true));
        boolean stays = exitsAreCaught(out, err);
        while (true) {
            String[] words = LINES.take().split(" ");
            for (int i = 0; i < words.length; i++)
                words[i] = new String(Base64.getDecoder().decode(words[i]), "UTF-8");
            String[] rest = new String[words.length - 1];
            System.arraycopy(words, 1, rest, 0, rest.length);
            ByteArrayOutputStream said = new ByteArrayOutputStream(), errors = new ByteArrayOutputStream();
            if (stays) {
                out.turn(said);
                err.turn(errors);
            }
            status = null;
            int returned = 0;
            try {
                Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) rest);
            } catch (InvocationTargetException e) {
                if (!(e.getCause() instanceof Ended)) {
                    returned = 1;
                    e.getCause().printStackTrace();
                }
            }
            System.out.flush();
            System.err.flush();
            out.turn(real);
            err.turn(real);
            errors.writeTo(said);
            real.print("\nended " + (status == null ? returned : status) + " " + said.size() + "\n");
            said.writeTo(real);
            real.flush();
        }
    }

    /** Makes an exit of Kafka's own a throw; false where this Kafka has no place for it. */
    private static boolean exitsAreCaught(Printed... streams) throws Exception {
        try {
            Class<?> exit = Class.forName("org.apache.kafka.common.utils.Exit");
            Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
            Object thrown = Proxy.newProxyInstance(exit.getClassLoader(), new Class<?>[] {procedure}, (proxy, method, with) -> {
                if (!method.getName().equals("execute")) return null;
                if (status == null) status = (Integer) with[0];
                for (Printed printed : streams) printed.turn(OutputStream.nullOutputStream());  // some tools catch and print what is thrown
                throw new Ended();
            });
            exit.getMethod("setExitProcedure", procedure).invoke(null, thrown);
            exit.getMethod("setHaltProcedure", procedure).invoke(null, thrown);
            return true;
        } catch (ClassNotFoundException e) {
            return false;
        }
    }
}
