import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/**
 * Produces numbered records with acks=all until its standard input ends, and prints the number of each that
 * was acknowledged. Arguments: bootstrap servers, topic, partitions, milliseconds between records.
 * Uses only what every client since 0.8.2 has.
 */
public class Traffic {
    public static void main(String[] args) throws Exception {
        final String topic = args[1];
        final int partitions = Integer.parseInt(args[2]);
        final long pause = Long.parseLong(args[3]);
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("acks", "all");
        p.put("retries", "2147483");
        p.put("retry.backoff.ms", "50");
        p.put("max.in.flight.requests.per.connection", "1");
        p.put("metadata.max.age.ms", "1000");
        p.put("reconnect.backoff.ms", "50");
        p.put("linger.ms", "5");
        p.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        final AtomicBoolean over = new AtomicBoolean();
        Thread input = new Thread(() -> {
            try { while (System.in.read() >= 0) { } } catch (Exception e) { }
            over.set(true);
        });
        input.setDaemon(true);
        input.start();
        KafkaProducer<String, String> producer = new KafkaProducer<>(p);
        for (int n = 0; !over.get(); n++) {
            final int number = n;
            Callback printed = (RecordMetadata m, Exception e) -> {
                System.out.println((e == null ? "acked " : "failed ") + number + (e == null ? "" : " " + e));
            };
            producer.send(new ProducerRecord<>(topic, n % partitions, "k", Integer.toString(n)), printed);
            Thread.sleep(pause);
        }
        producer.close();
        System.out.println("closed");
    }
}
