"""What can be wrong between the checkpoints of a log directory and the partitions in it."""

from kctl.findings import error, info, warning

HIGH_WATERMARK_ABOVE_END = error("""high-watermark-above-log-end
    The high watermark is {offset}, the log of {partition} ends at {log_end}: records that were committed are gone from
        this log. The broker takes the log's end for the high watermark.
    Everything below a high watermark was in this log when the checkpoint was written.
    A log that lost its tail: an unflushed tail after a power failure, a deleted segment, a file cut off.
    Look for the offsets on the other replicas before this one leads: `kctl replica loss`.""")
CHECKPOINT_COPIED_LATER = info("""checkpoint-copied-later
    The {what} is {offset}, the copy of {partition} ends at {log_end}; the broker was running.
    Files of a running broker are copied one after the other: the log had grown when the checkpoint was copied.
    A copy of a broker that was at work.
    Nothing; the broker's own log goes on.""")
CHECKPOINT_IN_GAP = info("""checkpoint-in-compacted-gap
    The {what} of {partition} is {offset}, as is its last producer snapshot; the records that are left end at {log_end}.
    A truncation cut the log there, between records that compaction had left: files show no end but that of the last
        record (`K:log/UnifiedLog.scala`, truncateTo @ 3.9.1).
    A follower of a compacted topic that was cut back to what its leader has.
    Nothing; the broker fetches again from where its records end.""")
RECOVERY_POINT_ABOVE_END = error("""recovery-point-above-log-end
    The recovery point is {offset}, the log of {partition} ends at {log_end}: records that had been flushed to disk are
        gone from this log.
    Everything below a recovery point was on disk when the checkpoint was written.
    A deleted segment, a file cut off, or a disk that lost what it had confirmed.
    Look for the offsets on the other replicas before this one leads: `kctl replica loss`.""")
LOG_LONGER_THAN_SHUT_DOWN = warning("""clean-shutdown-log-longer
    The log of {partition} ends at {log_end}, its recovery point is {offset} although the directory was shut down
        cleanly.
    A clean shutdown flushes each log and writes its end as the recovery point; nothing is written afterwards.
    The offset of the last batch was changed (no CRC covers it), or files of two copies were mixed.
    Compare with the other replicas: `kctl replica compare`.""")
LOG_START_ABOVE_END = error("""log-start-above-log-end
    The log start offset is {offset}, the log of {partition} ends at {log_end}: at the next start the broker deletes all
        its segments and begins anew at {offset}.
    A log never ends before it starts (`K:log/LogLoader.scala @ 3.9.0`).
    A log that lost its tail, or a checkpoint of another copy.
    Copy the segments before the broker starts.""")
LOG_START_ABOVE_HIGH_WATERMARK = info("""log-start-above-high-watermark
    The log start offset of {partition} is {offset}, its high watermark {high_watermark}.
    Checkpoints are written at different times; the broker raises the high watermark to the log's start.
    A broker that was stopped between the two writes.
    Nothing.""")
CLEANER_POINT_ABOVE_END = warning("""cleaner-point-above-log-end
    The cleaner's point is {offset}, the log of {partition} ends at {log_end}; the broker resets it to the log's start.
    Everything below it was compacted once.
    A log that lost its tail, or that was truncated.
    Check whether the log lost records; the cleaner itself recovers.""")
CHECKPOINT_WITHOUT_PARTITION = info("""checkpoint-without-partition
    {partition} is listed but has no folder in this log directory.
    Entries of deleted and moved partitions stay until the file is written again. A folder that was lost looks the same.
    A topic deletion or a move between log directories.
    If the partition should be here, look for its folder.""")
TOPIC_ID_DIFFERS = warning("""topic-id-differs
    Topic {topic} has the id {topic_id} in this folder and {other} in others.
    All partitions of a topic have one id; a broker takes a folder with another id for one of a deleted topic.
    A folder left from a topic that was deleted and made anew, or copied from another cluster.
    Find the right id in znode /brokers/topics/TOPIC; the folder with the other one is stale.""")
