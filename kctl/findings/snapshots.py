"""What can be wrong with a producer snapshot."""

from kctl.findings import error, info, warning

SNAPSHOT_CRC_MISMATCH = error("""snapshot-crc-mismatch
    The bytes do not match the CRC (stored {stored:08x}, computed {computed:08x}); Kafka deletes the file and uses the
        next older one.
    Some byte of the snapshot changed after it was written.
    A failing disk, a torn write, or a hand edit.
    Check the disk. Kafka rebuilds the state from an older snapshot and the log.""")
SNAPSHOT_MALFORMED = error("""snapshot-malformed
    The snapshot cannot be read: {what}; Kafka deletes the file and uses the next older one.
    A snapshot holds a version, a CRC, a count, and 46 bytes per producer.
    A full disk or a power failure truncated the file, or it was edited.
    Check the disk. Kafka rebuilds the state from an older snapshot and the log.""")
SNAPSHOT_UNWRITTEN = info("""snapshot-unwritten
    The newest snapshot is empty; Kafka deletes the file at the next start and uses an older one and the log.
    A broker makes the file and then writes it (`K:log/ProducerStateManager.scala @ 1.1.0`, writeSnapshot).
    The copy was made, or the broker was killed, between the two.
    Nothing; the state is rebuilt from the log.""")
SNAPSHOT_ENTRY_WRONG = error("""snapshot-entry-wrong
    Producer {producer_id} has {field} {stored} here; the log before offset {offset} says {expected}.
    @duplicates
    A snapshot of another copy of the log, a hand edit with a new CRC, or changed records in the log.
    @delete-snapshot""")
SNAPSHOT_PRODUCER_UNKNOWN = error("""snapshot-producer-unknown
    The last batch of producer {producer_id} is at offset {last_offset} here; the log has no batch of it at that offset.
    @duplicates
    A snapshot of another copy of the log, or records that were lost or replaced.
    @delete-snapshot""")
SNAPSHOT_PRODUCER_MISSING = warning("""snapshot-producer-missing
    Producer {producer_id}, which last wrote at offset {last_offset}, is missing here, although producers that have been
        idle for longer are listed.
    @duplicates
    A snapshot of another copy of the log, or a hand edit with a new CRC.
    @delete-snapshot""")
SNAPSHOT_BEYOND_END = warning("""snapshot-beyond-log-end
    The snapshot ends at offset {offset}, the log at {log_end}; a broker deletes it when it loads the log.
    The log reached this offset when the snapshot was taken.
    The log lost its tail.
    Look for the offsets on the other replicas.""")
SNAPSHOTS_MISSING = warning("""snapshots-missing
    There is no snapshot although the log has batches of {count:producer} and was shut down cleanly.
    After a clean shutdown Kafka assumes that a log without snapshots is of an older version and starts with no producer
        state: it accepts duplicates of retried batches.
    Snapshots were deleted or left out of a copy.
    Write them with `kctl segment rebuild`, or remove `.kafka_cleanshutdown` so that Kafka replays the log.""")
