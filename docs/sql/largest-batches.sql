-- The largest batches: producers with a large max.request.size, or a topic that needs a larger fetch size.
SELECT topic, partition, broker_id, base_offset, records_count, size_in_bytes, codec, producer_id, file, position
FROM batches
ORDER BY size_in_bytes DESC, topic, partition, base_offset, broker_id
LIMIT 50;
