-- How much of what was written a topic still holds: offsets that batches span against records in them.
-- Below 100 percent the cleaner was there, or a transaction's control records lie between.
SELECT topic,
       sum(last_offset - base_offset + 1) AS offsets,
       sum(records_count) AS records,
       round(100.0 * sum(records_count) / sum(last_offset - base_offset + 1), 1) AS percent_left
FROM batches
WHERE crc_valid AND magic = 2
GROUP BY topic
ORDER BY percent_left, topic;
