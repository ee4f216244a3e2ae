-- Idempotent and transactional producers of each topic: how many ids, in how many partitions, and their first and last write.
SELECT topic,
       count(DISTINCT producer_id) AS producers,
       count(DISTINCT CASE WHEN is_transactional THEN producer_id END) AS transactional,
       count(DISTINCT partition) AS partitions,
       min(base_timestamp) AS first_write,
       max(max_timestamp) AS last_write
FROM batches
WHERE crc_valid AND producer_id >= 0
GROUP BY topic
ORDER BY producers DESC, topic;
