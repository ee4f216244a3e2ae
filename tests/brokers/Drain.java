import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** Prints the value of every record of a topic, up to where it ends now. Arguments: bootstrap servers, topic. */
public class Drain {
    public static void main(String[] args) {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("auto.offset.reset", "earliest");
        p.put("enable.auto.commit", "false");
        p.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        p.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(p);
        List<TopicPartition> partitions = new ArrayList<>();
        for (PartitionInfo one : consumer.partitionsFor(args[1]))
            partitions.add(new TopicPartition(one.topic(), one.partition()));
        Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        StringBuilder out = new StringBuilder();
        long deadline = System.currentTimeMillis() + 30000;
        boolean left = true;
        while (left && System.currentTimeMillis() < deadline) {
            for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofMillis(200)))
                out.append(r.value()).append('\n');
            left = false;
            for (TopicPartition tp : partitions) left |= consumer.position(tp) < ends.get(tp);
        }
        System.out.print(out);
        System.out.println(left ? "unfinished" : "done");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
