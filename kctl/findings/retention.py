"""Why retention keeps what its settings say that it deletes."""

from kctl.findings import info, warning

RETENTION_BLOCKED = warning("""retention-blocked
    {partition} of broker {broker} keeps {segments:segment} ({bytes:byte}) past {setting}: the segment from offset {blocker}
        before {segments:it|them} has a record of {time}, {why}.
    Kafka deletes segments from the oldest on and stops at the first that it may not delete.
    A create time far ahead of the others: a producer with a wrong clock, or records that were copied out of order.
    Wait until that time, or delete the records before the later segments with `kctl topic delete-records`; set
        `message.timestamp.type=LogAppendTime` if producers' times are not needed.""")
RETENTION_OVERDUE = info("""retention-overdue
    {partition} of broker {broker} keeps {segments:segment} ({bytes:byte}) past {setting}: {why}.
    Kafka checks every `log.retention.check.interval.ms` (5 minutes) and deletes closed segments from the oldest on, none
        with records above the high watermark, and of a tiered topic none that is not copied.
    The sentence names it where the evidence shows it.
    Look for errors of the task `kafka-log-retention` in server.log; of a tiered topic run `kctl remote verify`.""")
RETENTION_UNLIMITED = info("""retention-unlimited
    {topic} is never deleted by time or size: {time_setting}, {size_setting}.
    Its log grows until records are deleted by hand.
    The settings of the topic, or of the broker where the topic has none.
    Nothing, if it is meant so; otherwise `kctl topic config set TOPIC retention.ms=...`.""")
RETENTION_BY_SIZE = info("""retention-by-size-first
    {partition} of broker {broker} begins with records of {time}, younger than {time_setting} allows: {size_setting} is
        reached ({bytes} bytes) and deletes first.
    Kafka deletes a segment that either of the two settings no longer keeps.
    More is written than `retention.bytes` was chosen for; it counts for each partition.
    Nothing, if the size is meant to decide; otherwise raise `retention.bytes`, or set it to -1.""")
