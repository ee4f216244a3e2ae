"""What can be wrong with a leader-epoch-checkpoint."""

from kctl.findings import error, info, warning

EPOCH_ENTRY_WRONG = error("""epoch-entry-wrong
    Epoch {epoch} begins at offset {start_offset} here, but offset {offset} was written in epoch {found}.
    Followers ask for the end of an epoch to find where to truncate; a wrong entry makes them truncate too much or too
        little.
    The file was edited or belongs to another copy, or the broker wrote it before it truncated its log.
    @rebuild-epochs""")
EPOCH_ENTRY_MISSING = error("""epoch-entry-missing
    Epoch {epoch}, first seen at offset {offset}, has no entry.
    Followers ask for the end of an epoch to find where to truncate; they get the end of an older epoch.
    The file was edited, was truncated, or belongs to another copy.
    @rebuild-epochs""")
EPOCHS_BEGIN_LATE = info("""epochs-begin-late
    The first entry begins at offset {start_offset}; the log's files begin at offset {log_start}.
    When records are deleted, the epochs below the log start offset become one entry. No checkpoint contains the log
        start offset that the broker knew.
    DeleteRecords or retention, and a broker stopped before it wrote log-start-offset-checkpoint.
    Nothing, if records were deleted up to that offset.""")
EPOCH_ENTRY_BEYOND_END = warning("""epoch-entry-beyond-end
    Epoch {epoch} begins at offset {start_offset}, beyond the log's end at {log_end}.
    The log was longer when the entry was written; a broker drops it when it loads the log.
    Records at the log's end were lost, or a truncation did not flush the checkpoint (3.8 and later).
    Compare with the other replicas: `kctl epoch compare`.""")
EPOCHS_NOT_MONOTONIC = warning("""epochs-not-monotonic
    Epoch {epoch} at offset {start_offset} does not come after the entry before it; a broker since 2.0 keeps {kept}.
    Epochs and their offsets increase. A broker reads the lines in order; each line drops earlier ones that contradict it.
    A broker of 0.11 or 1.x (KAFKA-7415, KAFKA-6361), or a hand edit.
    @rebuild-epochs""")
EPOCHS_LOST = warning("""epochs-file-missing
    There is no leader-epoch-checkpoint although the log has leader epochs up to {epoch}.
    Without it a follower truncates to its high watermark, which can lose or keep diverging records (KIP-101).
    The file was lost or left out of a copy; a broker below 0.11 has none.
    @rebuild-epochs""")
