-- Partitions by the bytes of their largest copy: which decide how long a reassignment or an audit takes.
SELECT topic, partition, max(bytes) AS bytes, max(records) AS records, count(*) AS copies
FROM (
    SELECT topic, partition, broker_id, moment, sum(size_in_bytes) AS bytes, sum(records) AS records
    FROM segments
    GROUP BY topic, partition, broker_id, moment
) AS held
GROUP BY topic, partition
ORDER BY bytes DESC, topic, partition
LIMIT 50;
