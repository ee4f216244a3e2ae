-- Elections of leaders that were not in sync, and the records that they cost.
SELECT w.topic, w.partition, w.broker_id, w.message,
       (SELECT sum(l.to_offset - l.from_offset) FROM losses AS l
        WHERE l.topic = w.topic AND l.partition = w.partition) AS lost_records
FROM findings AS w
WHERE w.code = 'unclean-leader-election'
ORDER BY w.topic, w.partition;
