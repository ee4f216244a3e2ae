-- Leaderships under which nothing was written that is still there: each leader epoch that brokers' logs or
-- checkpoints name and no batch has.
WITH written AS (SELECT DISTINCT topic, partition, partition_leader_epoch AS epoch FROM batches),
     named AS (
         SELECT DISTINCT topic, partition, leader_epoch AS epoch FROM leaders WHERE leader_epoch >= 0
         UNION
         SELECT DISTINCT topic, partition, epoch FROM checkpoints WHERE epoch IS NOT NULL AND topic IS NOT NULL)
SELECT topic, partition, epoch
FROM named ANTI JOIN written USING (topic, partition, epoch)
WHERE EXISTS (SELECT 1 FROM written AS any_data WHERE any_data.topic = named.topic AND any_data.partition = named.partition)
ORDER BY topic, partition, epoch;
