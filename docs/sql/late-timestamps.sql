-- Batches whose newest record is more than an hour older than one that lies before it in the same log.
-- Retention by time and offsetsForTimes go by the largest timestamp: late records live shorter than they should.
WITH ordered AS (
    SELECT topic, partition, broker_id, moment, base_offset, max_timestamp, records_count,
           max(max_timestamp) OVER (
               PARTITION BY topic, partition, broker_id, moment ORDER BY base_offset
               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS newest_before
    FROM batches
    WHERE crc_valid AND max_timestamp >= 0
)
SELECT topic, partition, broker_id, base_offset, records_count, max_timestamp,
       CAST(floor((newest_before - max_timestamp) / 1000) AS BIGINT) AS seconds_late
FROM ordered
WHERE newest_before - max_timestamp > 3600 * 1000
ORDER BY seconds_late DESC, topic, partition, base_offset
LIMIT 1000;
