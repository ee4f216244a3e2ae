"""What can be wrong with a partition folder: its set of files, and what a broker does with them at start-up."""

from kctl.findings import error, info, warning

SEGMENT_OVERLAPS = error("""segment-overlaps
    The segment begins at offset {base_offset}, but segment {before} before it holds offsets up to {last_offset}.
    Kafka keeps segments by base offset and finds an offset in the last one that begins before it: of offsets that two
        segments hold, some are never read.
    A segment that was copied or renamed by hand, or a base offset that was changed.
    Compare with the other replicas; move the segment that does not belong here away.""")
SEGMENT_MISSING = error("""segment-missing
    Offsets [{from_offset}, {to_offset}) are in no segment: the one before ends there, this one begins here.
    Nothing in this log speaks for compaction, which alone leaves such gaps. Kafka does not notice it; consumers jump
        over the offsets.
    A segment file that was deleted or lost.
    Look for the offsets on another replica. If the topic is compacted, give `--compacted TOPIC`.""")
BASE_OFFSET_WRONG = error("""batch-base-offset-wrong
    The batch says that it begins at offset {base_offset}; the batches around it go on as if it did not. Kafka accepts
        it at start-up, and serves its records under wrong offsets.
    The base offset of a batch is not covered by its CRC; the offsets of its neighbours follow each other.
    A changed byte in the first 8 bytes of the batch: a failing disk, memory, or a hand edit.
    Take the batch from another replica.""")
OFFSETS_MISSING = warning("""offsets-missing
    Offsets [{from_offset}, {to_offset}) are missing before this batch, and the topic was never compacted here.
    Leaders give offsets without gaps; only compaction takes some away, and cleaner-offset-checkpoint has no entry for
        this partition.
    A changed base offset, which the CRC does not cover, or batches that were cut out of the file.
    Compare with the other replicas. If the topic is compacted, give `--compacted TOPIC`.""")
SEGMENT_GAP = info("""segment-gap
    Offsets [{from_offset}, {to_offset}) are in no segment; the topic is compacted.
    Compaction removes records, and with them whole batches and offsets.
    Compaction. A segment that was lost would look the same.
    Nothing, as far as this log can tell; `kctl replica compare` with the other replicas tells more.""")
SEGMENT_TOO_LARGE = error("""segment-too-large
    The segment has {size} bytes; Kafka opens none larger than 2147483647.
    Positions in a segment are 31-bit numbers.
    Files joined by hand, or a file that is no segment.
    Compare with another replica.""")
LEFT_DELETED = info("""leftover-deleted
    The file waits for its deletion; Kafka deletes it at the next start at the latest.
    Retention, compaction or truncation replaced it; `file.delete.delay.ms` has not passed.
    A broker that was stopped or copied within that time.
    Nothing. Its records may be worth a copy where some are missing elsewhere.""")
LEFT_CLEANED = info("""leftover-cleaned
    The cleaner had not finished this file; Kafka deletes it at the next start, and every .swap file from offset
        {base_offset} on.
    A compaction or split was under way.
    A broker that was stopped or copied meanwhile.
    Nothing.""")
LEFT_SWAP = info("""leftover-swap
    The file is about to replace the segments that it was made from; Kafka {what} at the next start.
    A compaction or split was finished but for the renaming.
    A broker that was stopped or copied meanwhile.
    Nothing.""")
FOLDER_KIND = info("""replica-not-live
    {what}
    The folder's name says that it is not the replica that the broker serves.
    A topic deletion, a move to another broker or log directory, or metadata that no longer places the replica here.
    Nothing. Its records may be worth a copy where some are missing elsewhere.""")
UNKNOWN_FILE = info("""folder-unknown-file
    Kafka knows no file of this name in a partition folder and ignores it.
    It was not examined.
    A copy or note made by hand, or a file of another version.
    Nothing.""")
FILES_LEFT_OUT = info("""folder-files-left-out
    {count} more files that Kafka does not know, links and other entries of the folder are neither listed nor counted as
        files.
    They were not examined. Those that are listed come first by name.
    A program that fills the folder.
    Look at the folder itself.""")
SEGMENT_NAME = warning("""segment-name-short
    The name has {digits} digits; Kafka writes 20 and sorts by them.
    Kafka reads the number, but files are sorted by name in some places.
    A file that was renamed by hand.
    Rename it in a copy.""")
RECOVERY_CUTS = error("""startup-recovery-cuts
    Without a clean shutdown a broker recovers this segment at its next start: it cuts the log at offset {offset} and
        deletes everything behind, up to offset {log_end}: {batches} sound batches with {records} records.
    Recovery reads each segment from the recovery point on and stops at the first batch that is not sound
        (`K:log/LogLoader.scala @ 3.9.0`).
    The damage that is reported for this segment.
    Do not start the broker on this directory before the range was copied; let it fetch from a sound replica.""")
START_KEEPS_DAMAGE = info("""startup-keeps-damage
    A broker does not look at the damage in this segment at its next start: {why}. It surfaces when it is read.
    Recovery covers only segments from the recovery point on, and none after a clean shutdown.
    The damage that is reported for this segment.
    Let the replica be fetched anew from a sound one.""")
SEGMENT_ENDS_TORN = error("""segment-ends-torn
    The segment ends in bytes that are no batch (from position {tail}), and is not the last one.
    A segment that was rolled ends with a whole batch. What the last batch held is gone.
    A file cut off, or a disk that lost its end.
    Take the segment from another replica.""")
TORN_AFTER_CLEAN_SHUTDOWN = error("""clean-shutdown-torn
    The log ends in bytes that are no batch (from position {tail}) although the directory was shut down cleanly.
    After a clean shutdown Kafka recovers nothing: new batches would be appended behind these bytes, and nobody could
        read on to them.
    A file cut off or changed after the shutdown, or a `.kafka_cleanshutdown` that does not belong here.
    Remove `.kafka_cleanshutdown` before the broker starts: it then recovers the log and cuts the bytes off.""")
KRAFT_SNAPSHOT_INCOMPLETE = error("""kraft-snapshot-incomplete
    The snapshot {what}.
    A snapshot of the metadata log begins with a header and ends with a footer; without them it is a part.
    A file cut off by a full disk or a power failure.
    Delete it where an older one is there, or take it from another controller.""")
KRAFT_SNAPSHOT_MISSING = error("""kraft-snapshot-missing
    The metadata log begins at offset {log_start} and no snapshot reaches up to there; the node fails to start.
    What lies before the log's start is only in a snapshot (`K:raft/KafkaMetadataLog.scala @ 3.9.0`).
    A snapshot that was deleted or left out of a copy.
    Take the snapshot from another controller.""")
