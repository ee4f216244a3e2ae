-- Idempotent producers by how many sequence numbers are missing between their batches.
-- A gap that is not explained by retention or compaction is a batch that was lost or cut away.
WITH ordered AS (
    SELECT topic, partition, broker_id, moment, producer_id, producer_epoch, base_offset, base_sequence, records_count,
           lag(base_sequence + records_count) OVER producer AS expected
    FROM batches
    WHERE producer_id >= 0 AND base_sequence >= 0 AND crc_valid
    WINDOW producer AS (
        PARTITION BY topic, partition, broker_id, moment, producer_id, producer_epoch ORDER BY base_offset)
)
SELECT topic, partition, producer_id,
       count(*) AS batches,
       count(*) FILTER (WHERE base_sequence > expected) AS gaps,
       coalesce(sum(base_sequence - expected) FILTER (WHERE base_sequence > expected), 0) AS missing_sequences,
       min(base_offset) FILTER (WHERE base_sequence > expected) AS first_gap_before
FROM ordered
GROUP BY topic, partition, producer_id
ORDER BY missing_sequences DESC, topic, partition, producer_id;
