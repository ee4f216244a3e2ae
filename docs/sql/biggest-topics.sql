-- Topics by the bytes of all their replicas, with how many of them are damaged.
SELECT topic,
       count(DISTINCT partition) AS partitions,
       count(DISTINCT broker_id) AS brokers,
       count(*) AS segments,
       sum(size_in_bytes) AS bytes,
       sum(records) AS records,
       sum(damaged_bytes) AS damaged_bytes
FROM segments
GROUP BY topic
ORDER BY bytes DESC, topic;
