"""What can be wrong with an offset, time or transaction index."""

from kctl.findings import error, info, warning

INDEX_FRAGMENT = warning("""index-fragment
    The last {count:byte} {count:is|are} not a whole entry of {width} bytes.
    Kafka ignores the fragment; up to 2.2 it treats the index as corrupt and recovers the segment.
    The file was truncated while it was written or copied.
    @rebuild-index""")
INDEX_ENTRY_MISPLACED = warning("""index-entry-misplaced
    Entry {entry}: offset {offset} points to position {target}, {why}.
    A read that starts at this entry finds no batch or skips records.
    Damage of the index file, or an index that belongs to another copy of the log.
    @rebuild-index""")
INDEX_ENTRY_UNORDERED = warning("""index-entry-unordered
    Entry {entry} (offset {offset}, position {target}) does not come after the entry before it.
    Offsets and positions of an index strictly increase; a binary search fails where they do not.
    Damage of the index file.
    @rebuild-index""")
INDEX_STALE_TAIL = info("""index-stale-tail
    {count:entry/entries} from entry {entry} on {count:is|are} left from before the log was truncated.
    The broker kept the number of valid entries in memory and has not trimmed the file since.
    The broker truncated its log and was killed, or was still running when the copy was made.
    Nothing: recovery rebuilds the index.""")
INDEX_PADDING_DIRTY = warning("""index-padding-dirty
    Entry {entry} follows zeros that end the entries.
    A new index is filled with zeros from the front; nothing comes after the first of them.
    Pages of the index that did not reach the disk before a power loss, or damage.
    @rebuild-index""")
INDEX_MISSING = warning("""index-missing
    The segment has no `{suffix}` file.
    At start-up Kafka recovers a segment without `.index` and creates an empty time index if that is missing.
    Lost or left out of a copy.
    @rebuild-index""")
INDEXES_AWAIT_RECOVERY = info("""indexes-await-recovery
    The last segment has no indexes, and the directory was not shut down cleanly.
    The start after a kill rebuilds all indexes of this segment; until 1.1 it deletes the old ones first.
    The copy was made while a broker recovered its logs, or without index files.
    Nothing, if the broker recovers the log when it starts.""")
TRANSACTION_INDEX_AWAITS = info("""txnindex-awaits-recovery
    The index has no entry for transactions that were aborted at offset {first} and later, and the directory was not shut
        down cleanly: the next start writes it anew.
    A start after a kill empties the transaction index of each segment that it recovers, and fills it as it reads the log
        (`K:log/LogSegment.scala`, recover @ 3.9.1).
    The copy was made while a broker recovered its logs, or the index lost its end.
    Nothing, if the broker recovers the log when it starts.""")
INDEX_EMPTY = info("""index-empty
    The index has no entry although the segment holds {size} bytes.
    Reads scan the segment from its start; nothing is lost.
    A large `index.interval.bytes`, one large fetch, or an index that was lost and created empty.
    Nothing, or rebuild it with `kctl segment rebuild`.""")
INDEX_UNTRIMMED = warning("""index-untrimmed
    The file contains only zeros from entry {entry} on, although a later segment exists.
    Kafka trims an index to its entries when it rolls the segment; binary searches run into the zeros.
    Zeros in place of the entries after a power loss, or damage.
    @rebuild-index""")
INDEX_ENTRIES_MISSING = warning("""index-entries-missing
    The last {tail:byte} of the segment {tail:has|have} no entry, and the time index has {count} for {tail:it|them}.
    Kafka adds entries to both indexes together. Reads scan the bytes without entries, and nothing is lost.
    The index was truncated, or lost and created again.
    @rebuild-index""")
INDEX_ORPHANED = error("""index-orphaned
    The segment {segment} of this index does not exist: its records, offsets {offsets}, are not in this log.
    Kafka deletes an index without a log; the records that it pointed to are gone.
    The `.log` file was lost or left out of a copy.
    Look for the segment on another replica.""")
INDEX_HIDES_RECORDS = error("""index-hides-records
    The last entry ({why}) makes a broker use offset {log_end} as the log's end, which is {truth}.
    After a clean shutdown Kafka looks for the log's end from the last index entry on; later records are overwritten.
    Damage of the index of the last segment.
    Delete the index before the broker starts: Kafka then rebuilds it, as `kctl segment rebuild` does.""")
INDEX_STOPS_LOADING = error("""index-stops-loading
    The last entry points into a batch at position {target}: a broker fails to load the log.
    After a clean shutdown Kafka reads on from the last index entry and finds a corrupt record there.
    Damage of the index of the last segment.
    Delete the index before the broker starts: Kafka then rebuilds it, as `kctl segment rebuild` does.""")
TIME_INDEX_ENTRY_WRONG = warning("""timeindex-entry-wrong
    Entry {entry} (timestamp {timestamp}, offset {offset}): {why}.
    A search by time starts at the wrong position, and retention by time may delete the segment too early or too late.
    Damage of the time index, or one that belongs to another copy of the log.
    @rebuild-index""")
TIME_INDEX_FORGETS = info("""timeindex-forgets
    {count:entry/entries} from entry {entry} (timestamp {timestamp}) on {count:is|are} of what was appended since the log was
        truncated: {why}.
    A search by time may begin too late, and retention by time take the segment for older than it is.
    Kafka 2.3 and later: a broker that starts and truncates a short segment forgets the latest timestamp of what is left
        (`core:LogSegment.scala @ 2.3.1`, truncateTo).
    @rebuild-index""")
TIME_INDEX_ENTRY_UNORDERED = warning("""timeindex-entry-unordered
    Entry {entry} (timestamp {timestamp}, offset {offset}) does not come after the entry before it.
    Timestamps of a time index strictly increase, and its offsets do not decrease.
    Damage of the time index.
    @rebuild-index""")
TIME_INDEX_INCOMPLETE = warning("""timeindex-incomplete
    The last timestamp of the index is {last}, the latest of the segment is {latest}.
    The last entry of a rolled segment has its latest timestamp; searches and retention by time use it.
    The time index was truncated, or lost and created empty.
    @rebuild-index""")
TIME_INDEX_EMPTY = info("""timeindex-empty
    The index has no entry, the latest timestamp of the segment is {latest}.
    Searches and retention by time use the modification time of the file.
    Kafka 2.3 and later: a broker that starts, truncates a short segment and rolls it adds no entry. Or the time
        index was lost and created empty.
    @rebuild-index""")
TRANSACTION_INDEX_VERSION = warning("""txnindex-version
    Entry {entry} has version {version}; the only known version is 0.
    Kafka reads only the first byte of the version and treats 1 to 255 as 0.
    Damage of the transaction index.
    @rebuild-index""")
TRANSACTION_INDEX_EXTRA = error("""txnindex-entry-wrong
    Entry {entry}: producer {producer_id} aborted [{first}, {last}], {why}.
    Consumers that read committed data skip records by this index.
    Damage of the transaction index, or one that belongs to another copy of the log.
    @rebuild-index""")
TRANSACTION_INDEX_LACKS = error("""txnindex-entry-missing
    The abort of producer {producer_id} at offset {marker} (from offset {first}) has no entry.
    Consumers that read committed data get records of an aborted transaction.
    Damage or loss of the transaction index.
    @rebuild-index""")
ABORTED_TRANSACTIONS_MANY = info("""aborted-transactions-many
    The segment has more than {most} aborted transactions: the others are not compared with its transaction index.
    kctl holds a limited number of aborted transactions of a segment.
    A producer that aborts nearly every transaction.
    Look why transactions are aborted so often.""")
TRANSACTION_INDEX_BEFORE_SEGMENT = error("""txnindex-before-segment
    Entry {entry} ends at offset {last}, before the segment's base offset {base}.
    Kafka treats the index as corrupt at each start and recovers the segment.
    Damage of the transaction index, or a renamed file.
    @rebuild-index""")
