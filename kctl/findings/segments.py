"""What can be wrong with a segment, its batches and their records."""

from kctl.findings import error, info, warning

BATCH_CRC_MISMATCH = error("""batch-crc-mismatch
    The batch's bytes do not match its CRC (stored {stored:08x}, computed {computed:08x}); a consumer stops here, and
        a recovery truncates the log at this batch.
    Some byte of the batch changed after the broker or the producer computed the checksum.
    A failing disk, a torn write, memory or network errors before KIP-98 checks, or a hand edit.
    @other-replica""")
DAMAGED_CRC = error("""segment-damaged
    {size_in_bytes:byte} {size_in_bytes:is|are} damaged: {size_in_bytes:it begins|they begin} with a batch header whose CRC and length are wrong; Kafka reads nothing
        from here on, and a recovery truncates the log here.
    The bytes begin like a batch, but neither the CRC nor the length is right. kctl found the next sound batch, if there
        is one, by its own CRC.
    A failing disk, a torn write, lost sectors, or a hand edit.
    @other-replica""")
ILLEGAL_MAGIC = error("""batch-illegal-magic
    {size_in_bytes:byte} {size_in_bytes:is|are} damaged: the magic at {size_in_bytes:its|their} start is {magic}, not 0, 1 or 2; Kafka reads it as
        {taken_for}.
    The 17th byte of every entry of a log is its format version. The CRC of a batch does not cover it.
    A failing disk, a torn write, or bytes that are not a Kafka log.
    @other-replica""")
ILLEGAL_LENGTH = error("""batch-illegal-length
    {size_in_bytes:byte} {size_in_bytes:is|are} damaged: the length {length} at {size_in_bytes:its|their} start is impossible; Kafka reads nothing from here
        on, and a recovery truncates the log here.
    The length is below the minimum of the format, or points past the end of the file although sound batches follow.
    A failing disk, a torn write, lost sectors, or a hand edit.
    @other-replica""")
GARBAGE = error("""segment-garbage
    The last {size_in_bytes:byte} {size_in_bytes:is|are} neither a batch nor the start of one; a recovery removes {size_in_bytes:it|them}.
    No sound batch follows up to the end of the file.
    Lost writes after a power failure, a failing disk, or another file's content.
    @other-replica""")
TORN_TAIL = info("""segment-torn-tail
    The file ends inside a batch, {size_in_bytes:byte} after the last whole one; Kafka ignores what is there, and a recovery removes it.
    The broker was stopped, or the copy was made, while the batch was being written.
    A crash, `kill -9`, a full disk, or a copy of a running broker.
    Nothing, if the broker crashed: the producer got no answer, or other replicas have the records.""")
TRAILING_ZEROS = info("""segment-trailing-zeros
    The last {size_in_bytes:byte} {size_in_bytes:is|are} zero{size_in_bytes:|s}; Kafka since 0.10.2 stops there, and a recovery removes {size_in_bytes:it|them}.
    The space was preallocated, or its data did not reach the disk before a crash.
    `preallocate=true`, or a file system that grew the file before its data was written.
    Nothing.""")
ZEROED_RANGE = error("""segment-zeroed
    {size_in_bytes:byte} {size_in_bytes:is|are} zero{size_in_bytes:|s}, with sound batches after {size_in_bytes:it|them}; Kafka reads nothing from here on, and a recovery
        truncates the log here.
    Part of the file did not reach the disk, or was lost from it.
    A power failure, a failing disk, or a sparse copy.
    @other-replica""")
UNKNOWN_CODEC = error("""batch-unknown-codec
    The batch names codec {codec}, which magic {magic} does not have; Kafka accepts it on disk and consumers stop here
        with an exception.
    Codecs are 0 to 4 (none, gzip, snappy, lz4, zstd), zstd only in magic 2.
    A client with its own batch encoder, or a hand edit.
    @client-bug""")
UNKNOWN_ATTRIBUTES = warning("""batch-unknown-attributes
    The batch has attribute bits {bits:#x} that no Kafka version writes; Kafka ignores them.
    Bits of the attributes that have no meaning up to Kafka 4.
    A client with its own batch encoder, or a changed byte in magic 0 or 1.
    @client-bug""")
OFFSETS_GO_BACK = error("""batch-offsets-go-back
    Base offset {base_offset} comes after offset {previous}; Kafka accepts it unless an index entry falls here, then a
        recovery truncates the whole segment.
    The CRC does not cover base offsets. Offsets of a log only increase.
    A changed byte in the first 8 bytes of the batch, segments joined by hand, or KAFKA-6361 and related bugs.
    @other-replica""")
BACK_STOPS_THE_START = error("""offsets-go-back-stop-the-start
    The segment has offsets that go back, and no offset index: the next start reads it to build one, and where an entry
        falls on such a batch the broker does not start (InvalidOffsetException).
    A broker builds the index of a segment anew that has none, and nothing catches the exception there
        (`core:LogLoader.scala` @ 3.9.1, loadSegmentFiles).
    Indexes were deleted or left out of a copy; offsets that go back: KAFKA-3919, or segments joined by hand.
    Take the replica of another broker before the start: `kctl replica compare` shows which copy is sound. `kctl log-dir
        start` says what the next start does.""")
BACK_EMPTIES = error("""offsets-go-back-empty-the-segment
    The segment has offsets that go back, and the next start recovers it: where an index entry falls on such a batch, the
        broker deletes the whole segment, offsets [{from_offset}, {to_offset}).
    The directory was not shut down cleanly. A recovery that meets InvalidOffsetException empties the segment and goes on
        (`core:LogLoader.scala` @ 3.9.1, recoverLog).
    Offsets that go back: KAFKA-3919, or segments joined by hand.
    Copy the directory before the start, and take the replica of another broker: `kctl replica compare` shows which copy
        is sound. `kctl log-dir start` says what the next start does.""")
BACK_NOT_READ = info("""offsets-go-back-not-read-by-a-start
    The segment has offsets that go back; the next start does not read it: {why}.
    A broker starts with it and serves it; reads by offset may miss records.
    Offsets that go back: KAFKA-3919, or segments joined by hand.
    Take the replica of another broker: `kctl replica compare` shows which copy is sound.""")
OFFSET_BELOW_NAME = error("""segment-offset-below-name
    Base offset {base_offset} is below {named}, the base offset in the file's name; no consumer can read it.
    A segment holds offsets from the one in its name on.
    The file was renamed or moved, or a byte of the base offset changed.
    Compare with another replica, or rename the file to the base offset of its first batch in a copy.""")
OFFSET_TOO_FAR = error("""segment-offset-overflow
    Last offset {last_offset} is more than 2^31-1 above {named}, the base offset in the file's name; Kafka splits the
        segment when it recovers or cleans it (KAFKA-6264).
    Index entries store offsets relative to the file's name in 31 bits. A broker recovers a segment at start-up only if it
        lies above the recovery point of a directory that was not shut down cleanly, or if its offset index is missing or
        unreadable; otherwise it loads the segment as it is (`S:LogLoader.java`, `S:LogSegment.java @ 4.0`).
    A broker before 1.1.1 or 2.0 that compacted segments together, or a changed byte in the base offset.
    Remove the segment's index files while the broker is stopped: a broker of 2.0 or later then recovers and splits it.
        Or compare with another replica.""")
OFFSET_GAP = info("""batch-offset-gap
    Offsets {from_offset} to {to_offset} are missing before this batch.
    Compaction, retention of a leader that this replica followed, and records deleted in a tier leave gaps.
    Usually compaction; in a topic that is not compacted, a lost range.
    Nothing for compacted topics; otherwise compare with the other replicas: `kctl replica compare`.""")
ILLEGAL_OFFSET_DELTA = error("""batch-illegal-last-offset-delta
    The batch's last offset delta is {last_offset_delta}; Kafka accepts it, but reads by offset fail from
        here on.
    The last offset delta is the offset of the batch's last record minus its base offset, never negative.
    A client with its own batch encoder, or a hand edit.
    @client-bug""")
EPOCH_RUNS_AHEAD = error("""batch-leader-epoch-runs-ahead
    Leader epoch {previous} is higher than in the batches before and after it, the next has epoch {leader_epoch}; Kafka
        accepts it, but followers that truncate by epoch use a wrong offset.
    Leaders write their epoch into each batch, and epochs of a partition only increase. The CRC does not cover it.
    A changed byte.
    @other-replica""")
EPOCH_WRONG = error("""batch-leader-epoch-wrong
    Leader epoch {leader_epoch} is impossible: {why}. Kafka accepts it, but followers that truncate by epoch use a wrong
        offset.
    Leaders write their epoch into each batch, after they add it to leader-epoch-checkpoint. The CRC does not cover it.
    A changed byte.
    @other-replica""")
EPOCH_GOES_BACK = error("""batch-leader-epoch-goes-back
    Leader epoch {leader_epoch} comes after epoch {previous}; Kafka accepts it, but followers that truncate by epoch use
        a wrong offset.
    Leaders write their epoch into each batch, and epochs of a partition only increase. The CRC does not cover it.
    A changed byte, segments joined by hand, or an old leader that wrote after it was replaced.
    @other-replica""")
RECORDS_COUNT_TOO_LARGE = error("""batch-records-count
    The batch header counts {count:record}, more than its offsets or bytes can hold ({why}); Kafka accepts it on disk,
        and consumers stop here.
    A consumer reads the number of records in the header; it never exceeds the offsets that the batch spans.
    A client with its own batch encoder, or a hand edit.
    @client-bug""")
RECORD_MALFORMED = error("""record-malformed
    Record {number} of {count} cannot be read: {what}; Kafka accepts the batch on disk, and consumers stop here.
    The CRC of the batch is right, so these bytes were written this way.
    A client with its own batch encoder, or a bug of a compression library.
    @client-bug""")
RECORD_CRC_MISMATCH = error("""record-crc-mismatch
    The CRC of the message at offset {offset} inside a compressed set is wrong; consumers that check it stop here.
    Messages of magic 0 and 1 carry a CRC each, also inside a compressed set whose own CRC is right.
    A client or an old log cleaner wrote them wrongly.
    @client-bug""")
RECORD_OFFSETS = error("""record-offset-delta
    Record {number} of {count} has offset {offset}, {why}; consumers get wrong offsets.
    Offsets of records increase inside a batch and lie between its base and its last offset.
    A client with its own batch encoder, or a hand edit.
    @client-bug""")
MAX_TIMESTAMP = error("""batch-max-timestamp
    The batch's max timestamp is {max_timestamp}, its records' latest is {latest}; lookups by time and retention use
        the former.
    The max timestamp of a batch with create times is that of its latest record.
    A client with its own batch encoder, or a bug of an old cleaner.
    @client-bug""")
NOT_DECOMPRESSED = error("""batch-decompression-failed
    The batch's {codec} data cannot be decompressed: {what}; Kafka accepts it on disk, and consumers stop here.
    The CRC of the batch is right, so these bytes were written this way.
    A client with a broken codec, or a codec that older brokers passed through.
    @client-bug""")
NOT_EXAMINED = warning("""batch-not-examined
    The batch decompresses to more than {limit} bytes: {examined} of its records were examined, the others were not.
    The limit bounds memory and time; the batch may be sound.
    A very large or very repetitive batch, or one made to exhaust its readers.
    Raise `--max-decompressed-bytes` and run again.""")
PRODUCER_FIELDS = warning("""batch-producer-fields
    The batch has producer id {producer_id}, epoch {producer_epoch} and base sequence {base_sequence}: {why}.
    Brokers refuse such a batch, and clients do not write one.
    A client with its own batch encoder, or a hand edit.
    @client-bug""")
CONTROL_BATCH = error("""control-batch-malformed
    The control batch cannot be read: {what}; the broker fails on it when it loads the log.
    Control batches mark the ends of transactions and Raft events; clients cannot write them.
    A hand edit, or a broker bug.
    @other-replica""")
SEQUENCE_DUPLICATE = error("""producer-sequence-duplicate
    Producer {producer_id} epoch {producer_epoch} wrote sequences {first} to {last} a second time; consumers get these
        records twice.
    Brokers drop a batch whose sequences they have seen; they accepted this one.
    Producer state lost in an unclean election or a truncation, or segments joined by hand.
    Compare with the other replicas; find the leadership change before this batch with `kctl state-log timeline`.""")
SEQUENCE_GAP = warning("""producer-sequence-gap
    Producer {producer_id} epoch {producer_epoch} goes from sequence {previous} to {first}; the records between are not
        in this log.
    An idempotent producer numbers its records, and a broker refuses a gap; gaps are normal in compacted logs.
    Records lost in an unclean election or a truncation, retention of producer state, or compaction.
    Compare with the other replicas; `kctl replica loss` says what was lost.""")
PRODUCER_EPOCH_GOES_BACK = error("""producer-epoch-goes-back
    Producer {producer_id} wrote with epoch {producer_epoch} after epoch {previous}; the broker accepted a fenced producer.
    A producer's epoch only increases; brokers refuse an older one.
    Producer state lost in an unclean election or a truncation, or segments joined by hand.
    Compare with the other replicas.""")
OPEN_TRANSACTION = info("""transaction-open
    Producer {producer_id} epoch {producer_epoch} has a transaction open since offset {first_offset}; consumers that
        read committed data stop before it.
    Its end marker is not in this log.
    A transaction that was running when the log was copied, or one that hangs (KIP-664).
    If it is old, find its transactional id with `kctl transactions` and abort it.""")
PRODUCERS_FORGOTTEN = info("""producers-forgotten
    More than {most} producers wrote to the partition; from here on, those idle for longest are forgotten: their next
        batches are not compared with their last.
    kctl follows a limited number of producers at once. A broker forgets a producer that was idle for a day.
    Many clients that live shortly.
    Nothing, if the number of producers is expected. Else look which client starts so often.""")
TOO_MANY_FINDINGS = info("""more-findings
    {count:more finding} in this file {count:is|are} not listed: {codes}.
    The number of findings listed for a file is limited; kctl counts the rest.
    A file with damage throughout.
    Raise `--max-findings` to see them all.""")
FILE_CHANGED = info("""file-changed
    The file had {before} bytes when kctl began to read it and {after} at the end; kctl examined the bytes that it read.
    Another program writes to the file: a broker that runs appends, rolls and truncates.
    A running broker.
    If that matters, copy the directory of a stopped broker or a snapshot of its volume.""")
