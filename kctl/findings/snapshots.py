"""What can be wrong with a producer snapshot."""

from kctl.findings import error, warning

SNAPSHOT_CRC_MISMATCH = error("""snapshot-crc-mismatch
    The bytes are not those that the CRC was computed over (stored {stored:08x}, computed {computed:08x}); Kafka deletes
        the file and takes the next older one.
    Some byte of the snapshot changed after it was written.
    A failing disk, a torn write, or a hand edit.
    Check the disk. Kafka rebuilds the state from an older snapshot and the log.""")
SNAPSHOT_MALFORMED = error("""snapshot-malformed
    The snapshot cannot be read: {what}; Kafka deletes the file and takes the next older one.
    A snapshot holds a version, a CRC, a count, and 46 bytes a producer.
    A file cut off by a full disk or a power failure, or a hand edit.
    Check the disk. Kafka rebuilds the state from an older snapshot and the log.""")
SNAPSHOT_ENTRY_WRONG = error("""snapshot-entry-wrong
    Producer {producer_id} has {field} {stored} here; the log before offset {offset} says {expected}.
    @duplicates
    A snapshot of another copy of the log, a hand edit with a new CRC, or records that changed behind it.
    @delete-snapshot""")
SNAPSHOT_PRODUCER_UNKNOWN = error("""snapshot-producer-unknown
    Producer {producer_id} wrote last at offset {last_offset} as it says here; the log has no batch of it there.
    @duplicates
    A snapshot of another copy of the log, or records that were lost or replaced.
    @delete-snapshot""")
SNAPSHOT_PRODUCER_MISSING = warning("""snapshot-producer-missing
    Producer {producer_id}, which wrote last at offset {last_offset}, is not here although ones that are idle for longer
        are.
    @duplicates
    A snapshot of another copy of the log, or a hand edit with a new CRC.
    @delete-snapshot""")
SNAPSHOT_BEYOND_END = warning("""snapshot-beyond-log-end
    The snapshot ends at offset {offset}, the log at {log_end}; a broker deletes it when it loads the log.
    The log reached this offset when the snapshot was taken.
    A log that lost its tail.
    Look for the offsets on the other replicas.""")
SNAPSHOTS_MISSING = warning("""snapshots-missing
    There is no snapshot although the log has batches of {count} producers and was shut down cleanly.
    Kafka takes a log without snapshots for one of an older version after a clean shutdown, and begins with no producer
        state: duplicates of retried batches get in.
    Snapshots that were deleted or left out of a copy.
    `kctl segment rebuild` writes them; or remove `.kafka_cleanshutdown`, so that Kafka replays the log.""")
