"""What can be wrong with the records of internal topics."""

from kctl.findings import error, info

RECORD_UNREADABLE = error("""internal-record-unreadable
    Record {offset} of {topic}-{partition} cannot be read: {what}.
    The record's bytes are not what this internal topic holds; its coordinator skips it or fails to load the partition.
    A client that wrote into the topic, a damaged segment, or a version of Kafka that kctl does not know.
    Look at it with `kctl segment dump --records --from-offset OFFSET`.""")

LOG_UNREADABLE = error("""internal-log-unreadable
    Part of the log gave no records: {what}.
    What is shown is without the records of this range.
    A damaged segment.
    Run `kctl segment verify` on the folder; name another broker's copy to read that one.""")

RECORD_TYPE_UNKNOWN = info("""internal-record-type-unknown
    {count} records of type {type} of {topic} are left out.
    The records are of a type that this version of kctl does not know.
    A newer Kafka.
    Nothing, unless what you look for is missing.""")

HANGING_TRANSACTION = error("""hanging-transaction
    Producer {producer_id} (epoch {producer_epoch}) holds a transaction open that nobody will end: {why}.
    The last stable offset cannot pass its first offset: `read_committed` consumers wait there and compaction stops.
    KAFKA-12671 and KAFKA-14402: a marker was lost, or a late write began a transaction that the coordinator never knew.
    Abort it with kafka-transactions.sh (Kafka 3.0 and later); `kctl transactions hanging` prints the exact command.""")

READ_IN_PART = info("""internal-topic-read-in-part
    Of {size:,} bytes of {topic} the newest {read:,} were searched for offsets that were committed.
    What groups or a tier remember from before is not held against the logs; a loss may lack a piece of its proof.
    The topic is larger than what is read record by record beside a search for losses.
    Look at a group with `kctl offsets history GROUP`, which reads all of it.""")
