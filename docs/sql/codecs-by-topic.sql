-- Records and bytes by topic and codec: bytes a record tell how well a codec does where a topic has several.
SELECT topic, codec,
       count(*) AS batches,
       sum(records_count) AS records,
       sum(size_in_bytes) AS bytes,
       round(1.0 * sum(size_in_bytes) / nullif(sum(records_count), 0), 1) AS bytes_a_record
FROM batches
WHERE crc_valid
GROUP BY topic, codec
ORDER BY topic, bytes DESC;
