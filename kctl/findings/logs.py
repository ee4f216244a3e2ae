"""What can be wrong with a partition folder: its set of files, and what a broker does with them at start-up."""

from kctl.findings import error, info, warning

SEGMENT_OVERLAPS = error("""segment-overlaps
    The segment begins at offset {base_offset}, but segment {before} before it holds offsets up to {last_offset}.
    Kafka looks up an offset in the last segment that begins at or before it. If two segments hold the same offsets, some
        records are never read.
    A segment was copied or renamed by hand, or a base offset was changed.
    Compare with the other replicas; move away the segment that does not belong here.""")
SEGMENT_MISSING = error("""segment-missing
    Offsets [{from_offset}, {to_offset}) are in no segment: the one before ends there, this one begins here.
    Only compaction leaves such gaps, and this log shows no sign of compaction. Kafka does not notice the gap; consumers
        skip the offsets.
    A segment file was deleted or lost.
    Look for the offsets on another replica. If the topic is compacted, give `--compacted TOPIC`.""")
TIERED_RESIDUE = warning("""segments-below-local-log-start
    {segments:segment} below offset {to_offset} ({bytes:byte}) {segments:was|were} left behind when this replica of a tiered topic went on
        from a later local log start (KAFKA-17020). Offsets [{from_offset}, {to_offset}) are not on this disk: {remote}.
    Nothing is lost. Retention does not reach the old segments, as their place is taken by remote storage: they use disk
        space until they are removed.
    The replica was out of the ISR while the leader copied segments to remote storage and deleted them locally.
    Stop the broker and move the files of these segments out of the folder, or delete the whole replica with
        `kctl reassign` to another broker and back. `kctl remote audit` shows that the tier has the offsets.""")
BASE_OFFSET_WRONG = error("""batch-base-offset-wrong
    The batch has base offset {base_offset}, which cannot be right here. Kafka accepts it at start-up and serves its
        records with wrong offsets.
    The CRC of a batch does not cover its base offset. It does not fit the batches around it, or the highest offset of
        a log, 2^63-2.
    A changed byte in the first 8 bytes of the batch: a failing disk, memory, or a hand edit.
    Take the batch from another replica.""")
OFFSETS_MISSING = warning("""offsets-missing
    Offsets [{from_offset}, {to_offset}) are missing before this batch, and nothing shows that the topic is compacted.
    Leaders assign offsets without gaps; only compaction removes some. cleaner-offset-checkpoint has no entry for this
        partition, and the log has few gaps.
    A base offset, which the CRC does not cover, was changed, or batches were cut out of the file.
    Compare with the other replicas. If the topic is compacted, give `--compacted TOPIC`.""")
SEGMENT_GAP = info("""segment-gap
    Offsets [{from_offset}, {to_offset}) are in no segment; {why}.
    Compaction removes records, and with them whole batches and offsets; retention removes segments, also while a
        directory is copied.
    Compaction or retention. A lost segment would look the same.
    Nothing that this log shows; `kctl replica compare` with the other replicas shows more.""")
SEGMENT_TOO_LARGE = error("""segment-too-large
    The segment has {size} bytes; Kafka opens none larger than 2147483647.
    Positions in a segment are 31-bit numbers.
    Files joined by hand, or a file that is not a segment.
    Compare with another replica.""")
LEFT_DELETED = info("""leftover-deleted
    The file is marked for deletion; Kafka deletes it at the next start at the latest.
    Retention, compaction or truncation replaced it; `file.delete.delay.ms` has not passed.
    The broker was stopped or copied within that time.
    Nothing. Keep a copy of its records if some are missing elsewhere.""")
LEFT_CLEANED = info("""leftover-cleaned
    The cleaner had not finished this file; Kafka deletes it at the next start, and every .swap file from offset
        {base_offset} on.
    A compaction or split was running.
    The broker was stopped or copied during it.
    Nothing.""")
LEFT_SWAP = info("""leftover-swap
    The file replaces the segments that it was made from; Kafka {what} at the next start.
    A compaction or split was finished except for the final renaming.
    The broker was stopped or copied during it.
    Nothing.""")
FOLDER_KIND = info("""replica-not-live
    {what}
    By its name, this folder is not the replica that the broker serves.
    A topic deletion, a move to another broker or log directory, or metadata that no longer places the replica here.
    Nothing. Keep a copy of its records if some are missing elsewhere.""")
UNKNOWN_FILE = info("""folder-unknown-file
    Kafka knows no file of this name in a partition folder and ignores it.
    It was not examined.
    A copy or note made by hand, or a file of another version.
    Nothing.""")
FILES_LEFT_OUT = info("""folder-files-left-out
    {count:more entry/more entries} of the folder (unknown files, links and others) {count:is|are} neither listed nor counted.
    They were not examined. The listed entries come first by name.
    A program that fills the folder with files.
    Look at the folder itself.""")
SEGMENT_NAME = warning("""segment-name-short
    The name has {digits:digit}; Kafka writes 20 and sorts by them.
    Kafka reads the number, but files are sorted by name in some places.
    The file was renamed by hand.
    Rename it in a copy.""")
RECOVERY_CUTS = error("""startup-recovery-cuts
    Without a clean shutdown a broker recovers this segment at its next start: it truncates the log at offset {offset}
        and deletes {deleted}.
    Recovery reads each segment from the recovery point on and stops at the first damaged batch
        (`K:log/LogLoader.scala @ 3.9.0`).
    The damage reported for this segment.
    Copy the range before you start the broker on this directory; let it fetch from a sound replica.""")
START_KEEPS_DAMAGE = info("""startup-keeps-damage
    A broker does not check the damage in this segment at its next start: {why}. Reads of the segment will fail.
    Recovery covers only segments from the recovery point on, and none after a clean shutdown.
    The damage reported for this segment.
    Let the broker fetch this replica again from a sound one.""")
SEGMENT_ENDS_TORN = error("""segment-ends-torn
    The segment ends with bytes that are not a batch (from position {tail}), and it is not the last segment.
    A rolled segment ends with a whole batch. The records of the last batch are gone.
    The file was truncated, or the disk lost its end.
    Take the segment from another replica.""")
TORN_AFTER_CLEAN_SHUTDOWN = error("""clean-shutdown-torn
    The log ends with bytes that are not a batch (from position {tail}) although the directory was shut down cleanly.
    After a clean shutdown Kafka runs no recovery. It would append new batches after these bytes, where no reader
        reaches them.
    The file was truncated or changed after the shutdown, or `.kafka_cleanshutdown` does not belong here.
    Remove `.kafka_cleanshutdown` before the broker starts: it then recovers the log and removes the bytes.""")
KRAFT_SNAPSHOT_INCOMPLETE = error("""kraft-snapshot-incomplete
    The snapshot {what}.
    A snapshot of the metadata log begins with a header and ends with a footer; without them it is incomplete.
    A full disk or a power failure truncated the file.
    Delete it if an older snapshot exists, or copy it from another controller.""")
KRAFT_SNAPSHOT_MISSING = error("""kraft-snapshot-missing
    The metadata log begins at offset {log_start} and no snapshot reaches that offset; the node fails to start.
    Only a snapshot holds the metadata before the log's start (`K:raft/KafkaMetadataLog.scala @ 3.9.0`).
    A snapshot was deleted or left out of a copy.
    Copy the snapshot from another controller.""")
TIMESTAMP_IN_FUTURE = warning("""record-timestamp-in-future
    {record} has create time {time}, {ahead} after the partition was last written ({written}). `retention.ms` keeps this
        segment, and every one behind it, until then.
    Kafka deletes segments from the oldest on, and judges each by its largest timestamp (0.10.1 and later; before, by the
        time of the file). Retention by size is not affected. Newer versions
        of 4.x log `contains future timestamp(s), making it ineligible to be deleted`.
    A producer with a wrong clock, or one that writes microseconds or nanoseconds for milliseconds.
    Delete the records up to it with `kctl topic delete-records`, or set `retention.bytes`. Against new ones set
        `message.timestamp.type=LogAppendTime`, or `message.timestamp.after.max.ms` (3.6 and later; an hour by default
        since 4.0), before 3.6 `message.timestamp.difference.max.ms`.""")
