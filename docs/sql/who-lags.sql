-- Brokers whose copy of a partition ends before the longest one, at each moment.
WITH ends AS (
    SELECT moment, topic, partition, broker_id, max(next_offset) AS log_end_offset
    FROM segments
    WHERE next_offset IS NOT NULL
    GROUP BY ALL
), longest AS (
    SELECT *, max(log_end_offset) OVER (PARTITION BY moment, topic, partition) AS longest FROM ends
)
SELECT moment, topic, partition, broker_id, log_end_offset, longest - log_end_offset AS behind
FROM longest
WHERE longest > log_end_offset
ORDER BY behind DESC, moment, topic, partition, broker_id;
