"""What can be wrong with the records of internal topics."""

from kctl.findings import error, info

RECORD_UNREADABLE = error("""internal-record-unreadable
    Record {offset} of {topic}-{partition} cannot be read: {what}.
    The bytes are not a record of this internal topic; the coordinator skips it or fails to load the partition.
    A client wrote to the topic, a segment is damaged, or kctl does not know this version of Kafka.
    Look at it with `kctl segment dump --records --from-offset OFFSET`.""")

LOG_UNREADABLE = error("""internal-log-unreadable
    Part of the log could not be read: {what}.
    The output lacks the records of this range.
    A damaged segment.
    Run `kctl segment verify` on the folder; name another broker's copy to read that one.""")

RECORD_TYPE_UNKNOWN = info("""internal-record-type-unknown
    {count:record} of type {type} in {topic} {count:was|were} skipped.
    This version of kctl does not know the type of these records.
    A newer Kafka version.
    Nothing, unless you miss something in the output.""")

HANGING_TRANSACTION = error("""hanging-transaction
    Producer {producer_id} (epoch {producer_epoch}) holds a transaction open that nobody will end: {why}.
    The last stable offset cannot pass its first offset: `read_committed` consumers wait there and compaction stops.
    KAFKA-12671 and KAFKA-14402: a marker was lost, or a late write began a transaction that the coordinator never knew.
    Abort it with kafka-transactions.sh (Kafka 3.0 and later); `kctl transactions hanging` prints the exact command.""")

READ_IN_PART = info("""internal-topic-read-in-part
    Only the newest {read:,} of {size:,} bytes of {topic} were searched for committed offsets.
    Older commits of groups or of a tier were not compared with the logs; a loss may lack a piece of its proof.
    The topic is larger than the limit that a search for losses reads.
    Look at a group with `kctl offsets history GROUP`, which reads the whole topic.""")
