import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/**
 * Produces numbered records with acks=all, as its standard input asks for, and prints the number of each that was
 * acknowledged. The argument is the bootstrap servers. Lines of input:
 *
 *   start RUN TOPIC PARTITIONS MILLISECONDS   records RUN:0, RUN:1, ... with so much time in between
 *   stop RUN                                  no more of them; `closed RUN` once all are sent
 *
 * Uses only what every client since 0.8.2 has.
 */
public class Traffic extends Thread {
    private final String servers, run, topic;
    private final int partitions;
    private final long pause;
    private volatile boolean over = false;

    private Traffic(String servers, String[] words) {
        this.servers = servers;
        this.run = words[1];
        this.topic = words[2];
        this.partitions = Integer.parseInt(words[3]);
        this.pause = Long.parseLong(words[4]);
    }

    @Override
    public void run() {
        Properties p = new Properties();
        p.put("bootstrap.servers", servers);
        p.put("acks", "all");
        p.put("retries", "2147483");
        p.put("retry.backoff.ms", "50");
        p.put("max.in.flight.requests.per.connection", "1");
        p.put("metadata.max.age.ms", "1000");
        p.put("reconnect.backoff.ms", "50");
        p.put("linger.ms", "5");
        // A leader that was moved away keeps a request for so long before it says so; it is sent again then.
        p.put("timeout.ms", "6000");
        p.put("request.timeout.ms", "6000");
        p.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        KafkaProducer<String, String> producer = new KafkaProducer<>(p);
        for (int n = 0; !over; n++) {
            final String number = run + ":" + n;
            Callback printed = (RecordMetadata m, Exception e) -> {
                System.out.println((e == null ? "acked " : "failed ") + number + (e == null ? "" : " " + e));
            };
            producer.send(new ProducerRecord<>(topic, n % partitions, "k", number), printed);
            try { Thread.sleep(pause); } catch (InterruptedException e) { break; }
        }
        producer.close();
        System.out.println("closed " + run);
    }

    public static void main(String[] args) throws Exception {
        Map<String, Traffic> running = new HashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("start")) {
                Traffic one = new Traffic(args[0], words);
                one.setDaemon(true);
                running.put(words[1], one);
                one.start();
            } else {
                running.remove(words[1]).over = true;
            }
        }
    }
}
