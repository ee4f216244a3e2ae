"""What can be wrong between the checkpoints of a log directory and the partitions in it."""

from kctl.findings import error, info, warning

HIGH_WATERMARK_ABOVE_END = error("""high-watermark-above-log-end
    The high watermark is {offset}, the log of {partition} ends at {log_end}: committed records are gone from
        this log. The broker uses the log's end as the high watermark.
    Everything below a high watermark was in this log when the checkpoint was written.
    The log lost its tail: data not flushed before a power failure, a deleted segment, or a truncated file.
    Look for the offsets on the other replicas before this one leads: `kctl replica loss`.""")
NO_ROOM_FOR_RECOVERY = error("""log-dir-no-room-for-recovery
    The file system of {path} has {free:byte} free, and the start writes about {needed:byte} of indexes.
    A broker that cannot write marks the log directory offline (before 1.0 the process ends). An index is mapped into memory:
        one that finds no room may end the process (`InternalError`).
    The disk filled up, often by the same logs.
    Make room before the start (runbook: a full disk).""")
NO_ROOM_FOR_COMPACTION = warning("""log-dir-no-room-for-compaction
    The file system of {path} has {free:byte} free, and the log cleaner writes up to {needed:byte} before it deletes what
        that replaces.
    A cleaner that finds no room marks the log directory offline.
    The disk is nearly full; a compacted topic has large segments.
    Make room, or lower `segment.bytes` of the compacted topics.""")
CHECKPOINT_COPIED_LATER = info("""checkpoint-copied-later
    The {what} is {offset}, the copy of {partition} ends at {log_end}; the broker was running.
    Files of a running broker are copied one after the other; the log grew before the checkpoint was copied.
    The copy was made while the broker was running.
    Nothing; the broker's own log is longer.""")
CHECKPOINT_IN_GAP = info("""checkpoint-in-compacted-gap
    The {what} and the last producer snapshot of {partition} are at {offset}; the remaining records end at {log_end}.
    A truncation cut the log between two records that compaction had kept. Files show only the end of the last record
        (`K:log/UnifiedLog.scala`, truncateTo @ 3.9.1).
    A follower of a compacted topic truncated its log to match its leader.
    Nothing; the broker fetches again from the end of its records.""")
RECOVERY_POINT_ABOVE_END = error("""recovery-point-above-log-end
    The recovery point is {offset}, the log of {partition} ends at {log_end}: records that were flushed to disk are
        gone from this log.
    Everything below a recovery point was on disk when the checkpoint was written.
    A deleted segment, a truncated file, or a disk that lost writes it had confirmed.
    Look for the offsets on the other replicas before this one leads: `kctl replica loss`.""")
LOG_LONGER_THAN_SHUT_DOWN = warning("""clean-shutdown-log-longer
    The log of {partition} ends at {log_end}, its recovery point is {offset} although the directory was shut down
        cleanly.
    A clean shutdown flushes each log and writes its end as the recovery point; nothing is written afterwards.
    The offset of the last batch was changed (no CRC covers it), or files of two copies were mixed.
    Compare with the other replicas: `kctl replica compare`.""")
SHUT_DOWN_POINT_BEHIND = warning("""clean-shutdown-point-behind
    The directory was shut down cleanly, and the recovery point of {partition} is {offset}: its batches at
        [{offset}, {log_end}) follow each other, and none of them is damaged.
    A clean shutdown flushes each log and writes its end as the recovery point. Where closing a log fails, the mark of the
        shutdown may be written without it; a start reads the log to its end and recovers nothing.
    The broker could not close the log ("Error in closing log" in its log), or the checkpoint is older than the log.
    Read the broker's log at its last shutdown: `kctl audit run` over it. If the host failed since, remove
        `.kafka_cleanshutdown` before the start, so that the broker reads what is behind the recovery point.""")
LOG_START_ABOVE_END = error("""log-start-above-log-end
    The log start offset is {offset}, the log of {partition} ends at {log_end}: at the next start the broker deletes all
        segments and starts an empty log at {offset}.
    A log never ends before it starts (`K:log/LogLoader.scala @ 3.9.0`).
    The log lost its tail, or the checkpoint belongs to another copy.
    Copy the segments before the broker starts.""")
LOG_START_ABOVE_HIGH_WATERMARK = info("""log-start-above-high-watermark
    The log start offset of {partition} is {offset}, its high watermark {high_watermark}.
    Checkpoints are written at different times; the broker raises the high watermark to the log's start.
    The broker was stopped between the two writes.
    Nothing.""")
CLEANER_POINT_ABOVE_END = warning("""cleaner-point-above-log-end
    The cleaner's point is {offset}, the log of {partition} ends at {log_end}; from 2.3 on the broker resets it to the
        log's start.
    Everything below this offset was compacted before.
    The log lost its tail or was truncated.
    Check whether the log lost records. From 2.3 on the cleaner recovers by itself; before, it leaves what is written
        below this offset uncompacted.""")
CLEANER_POINT_BELOW_START = info("""cleaner-point-below-log-start
    The cleaner's point of {partition} is {offset}, and its log begins at {log_start}: harmless, the cleaner goes on
        from there.
    Harmless. Before 2.4.1 and 2.5 the cleaner logs "Resetting first dirty offset" at each look (KAFKA-6266), until it
        compacts the log.
    Retention or DeleteRecords moved the log start past the point that the cleaner had reached.
    Nothing. No checkpoint was copied or damaged.""")
CHECKPOINT_WITHOUT_PARTITION = info("""checkpoint-without-partition
    {partition} is listed but has no folder in this log directory.
    Entries of deleted and moved partitions stay until the file is rewritten. A lost folder looks the same.
    A topic deletion or a move between log directories.
    If the partition should be here, look for its folder.""")
TOPIC_ID_DIFFERS = warning("""topic-id-differs
    Topic {topic} has the id {topic_id} in this folder and {other} in others.
    All partitions of a topic have one id; a broker treats a folder with another id as a leftover of a deleted topic.
    The folder is left from a topic that was deleted and created again, or was copied from another cluster. Or the topic was
        given two ids, and the folders hold the same records.
    Find the right id in znode /brokers/topics/TOPIC or the metadata log. `kctl replica compare` tells whether the folders hold
        the same records: then remove `partition.metadata` from those with the wrong id and restart their brokers. Delete no
        folder before.""")
OTHER_OWNER = warning("""log-dir-other-owner
    {count} of {total:file} of this log directory {count:belongs|belong} to {owner}, the others to {usual}; such as {name}.
    A broker runs as one user and opens each file for writing: it fails with AccessDeniedException, takes the directory offline
        or does not start, at the latest when it rolls, cleans or deletes the file.
    A tool, a restore or a start as root wrote them.
    Give them to the user of the broker (`chown`) while it is stopped. Nothing in the files has to be changed.""")
NOT_OPEN_TO_OWNER = warning("""log-dir-not-writable
    {count} of {total:file} of this log directory cannot be read and written by their owner, as their neighbours can; such as {name},
        mode {mode}.
    A broker opens each file for writing: it fails with AccessDeniedException, takes the directory offline or does not start.
    A copy, a restore or somebody changed the mode.
    Set the mode that their neighbours have (`chmod u+rw`) while the broker is stopped. Nothing in the files has to be
        changed.""")
