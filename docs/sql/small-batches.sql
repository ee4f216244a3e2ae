-- Topics whose batches are small: header, index entry and CRC cost more than the records. Raise linger.ms and batch.size.
SELECT topic,
       count(*) AS batches,
       sum(records_count) AS records,
       round(avg(records_count), 1) AS records_a_batch,
       round(avg(size_in_bytes)) AS bytes_a_batch,
       round(100.0 * count(*) * 61 / sum(size_in_bytes), 1) AS percent_headers
FROM batches
WHERE crc_valid AND magic = 2
GROUP BY topic
HAVING avg(records_count) < 10
ORDER BY batches DESC, topic;
