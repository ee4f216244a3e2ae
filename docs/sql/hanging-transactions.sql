-- Transactions that no coordinator will end: consumers with isolation.level=read_committed wait at first_offset.
SELECT topic, partition, producer_id, producer_epoch, transactional_id, first_offset, last_offset,
       last_timestamp, why, abort_command
FROM open_transactions
WHERE hanging
ORDER BY last_timestamp, topic, partition;
