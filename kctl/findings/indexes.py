"""What can be wrong with an offset, time or transaction index."""

from kctl.findings import FindingType, Severity

REBUILD = (
    "`kctl segment rebuild` writes a right one; Kafka writes it anew where the file is missing at start-up."
)

INDEX_FRAGMENT = FindingType(
    "index-fragment",
    Severity.WARNING,
    "The last {count} bytes are no whole entry of {width} bytes.",
    "Kafka ignores the fragment; up to 2.2 it takes the index for corrupt and recovers the segment.",
    "A file cut while it was written or copied.",
    REBUILD,
)
INDEX_ENTRY_MISPLACED = FindingType(
    "index-entry-misplaced",
    Severity.WARNING,
    "Entry {entry}: offset {offset} points to position {target}, {why}.",
    "A read that starts at this entry finds no batch there, or skips records.",
    "Damage of the index file, or an index that belongs to another copy of the log.",
    REBUILD,
)
INDEX_ENTRY_UNORDERED = FindingType(
    "index-entry-unordered",
    Severity.WARNING,
    "Entry {entry} (offset {offset}, position {target}) does not come after the entry before it.",
    "Offsets and positions of an index strictly increase; a search by halving goes astray.",
    "Damage of the index file.",
    REBUILD,
)
INDEX_STALE_TAIL = FindingType(
    "index-stale-tail",
    Severity.INFO,
    "Entries from {entry} on ({count}) are left from before the log was truncated.",
    "The broker knew how many entries are in use; the file was not trimmed since.",
    "The broker truncated its log and was killed, or still ran, when the copy was made.",
    "Nothing: recovery writes the index anew.",
)
INDEX_PADDING_DIRTY = FindingType(
    "index-padding-dirty",
    Severity.WARNING,
    "Entry {entry} follows zeros that end the entries.",
    "A new index is filled with zeros from the front; nothing comes after the first of them.",
    "Pages of the index that did not reach the disk before a power loss, or damage.",
    REBUILD,
)
INDEX_MISSING = FindingType(
    "index-missing",
    Severity.WARNING,
    "The segment has no `{suffix}` file.",
    "Kafka recovers a segment without `.index` at start-up and makes an empty time index where that is missing.",
    "Lost or left out of a copy.",
    REBUILD,
)
INDEX_EMPTY = FindingType(
    "index-empty",
    Severity.INFO,
    "The index has no entry although the segment holds {size} bytes.",
    "Reads scan the segment from its start; nothing is lost.",
    "A large `index.interval.bytes`, one large fetch, or an index that was lost and made anew empty.",
    "Nothing, or rebuild it with `kctl segment rebuild`.",
)
INDEX_UNTRIMMED = FindingType(
    "index-untrimmed",
    Severity.WARNING,
    "From entry {entry} on the file holds zeros, although a later segment exists.",
    "Kafka cuts an index to its entries when it rolls the segment; searches by halving run into the zeros.",
    "Zeros in place of the entries after a power loss, or damage.",
    REBUILD,
)
INDEX_ENTRIES_MISSING = FindingType(
    "index-entries-missing",
    Severity.WARNING,
    "The last {tail} bytes of the segment have no entry, and the time index has {count} for them.",
    "Both indexes get their entries together; reads scan what has none, and nothing is lost.",
    "An index cut short, or lost and made anew.",
    REBUILD,
)
INDEX_ORPHANED = FindingType(
    "index-orphaned",
    Severity.ERROR,
    "There is no segment {segment} for it.",
    "Kafka deletes an index without a log; the records that it pointed to are gone.",
    "The `.log` file was lost or left out of a copy.",
    "Look for the segment on another replica.",
)
INDEX_HIDES_RECORDS = FindingType(
    "index-hides-records",
    Severity.ERROR,
    "The last entry ({why}) makes a broker take offset {log_end} for the log's end, which is {truth}.",
    "After a clean shutdown Kafka looks for the log's end from the last index entry on; records beyond are overwritten.",
    "Damage of the index of the last segment.",
    "Delete the index before the broker starts: Kafka then writes it anew. `kctl segment rebuild` writes a right one.",
)
INDEX_STOPS_LOADING = FindingType(
    "index-stops-loading",
    Severity.ERROR,
    "The last entry points into a batch at position {target}: a broker fails to load the log.",
    "After a clean shutdown Kafka reads on from the last index entry and finds a corrupt record there.",
    "Damage of the index of the last segment.",
    "Delete the index before the broker starts: Kafka then writes it anew. `kctl segment rebuild` writes a right one.",
)
TIME_INDEX_ENTRY_WRONG = FindingType(
    "timeindex-entry-wrong",
    Severity.WARNING,
    "Entry {entry} (timestamp {timestamp}, offset {offset}): {why}.",
    "A search by time starts at a wrong place, and retention by time may judge the segment wrongly.",
    "Damage of the time index, or one that belongs to another copy of the log.",
    REBUILD,
)
TIME_INDEX_ENTRY_UNORDERED = FindingType(
    "timeindex-entry-unordered",
    Severity.WARNING,
    "Entry {entry} (timestamp {timestamp}, offset {offset}) does not come after the entry before it.",
    "Timestamps of a time index strictly increase and its offsets do not fall.",
    "Damage of the time index.",
    REBUILD,
)
TIME_INDEX_INCOMPLETE = FindingType(
    "timeindex-incomplete",
    Severity.WARNING,
    "Its last timestamp is {last}, the segment's latest is {latest}.",
    "The last entry of a rolled segment is its latest timestamp: searches and retention by time go by it.",
    "A time index cut short, or lost and made anew empty.",
    REBUILD,
)
TRANSACTION_INDEX_VERSION = FindingType(
    "txnindex-version",
    Severity.WARNING,
    "Entry {entry} has version {version}, known is 0.",
    "Kafka looks at the first byte of the version only and takes 1 to 255 for 0.",
    "Damage of the transaction index.",
    REBUILD,
)
TRANSACTION_INDEX_EXTRA = FindingType(
    "txnindex-entry-wrong",
    Severity.ERROR,
    "Entry {entry}: producer {producer_id} aborted [{first}, {last}], {why}.",
    "Consumers that read committed data skip records by this index.",
    "Damage of the transaction index, or one that belongs to another copy of the log.",
    REBUILD,
)
TRANSACTION_INDEX_LACKS = FindingType(
    "txnindex-entry-missing",
    Severity.ERROR,
    "The abort of producer {producer_id} at offset {marker} (from offset {first}) has no entry.",
    "Consumers that read committed data are given records of an aborted transaction.",
    "Damage or loss of the transaction index.",
    REBUILD,
)
TRANSACTION_INDEX_BEFORE_SEGMENT = FindingType(
    "txnindex-before-segment",
    Severity.ERROR,
    "Entry {entry} ends at offset {last}, before the segment's base offset {base}.",
    "Kafka takes the index for corrupt at each start and recovers the segment.",
    "Damage of the transaction index, or a renamed file.",
    REBUILD,
)
