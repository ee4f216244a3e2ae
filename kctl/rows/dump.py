"""Rows of `segment dump` and `checkpoint show`."""

from kctl.rows import RowType, anything, array, boolean, integer, nullable, optional, string

FILE = string("relative to the folder given on the command line, the path as given where a file was named")

BATCH = RowType(
    "batch",
    "A batch, or an entry of magic 0 or 1; what a magic has not is null.",
    file=FILE,
    position=integer("byte in the file, from 0"),
    size_in_bytes=integer("header included"),
    base_offset=nullable(integer("null for a compressed entry of magic 0 or 1: only the last is stored")),
    last_offset=integer(),
    magic=integer(),
    crc=integer("as stored, unsigned"),
    crc_valid=boolean(),
    codec=string("none, gzip, snappy, lz4, zstd, or unknown(N)"),
    attributes=integer(),
    timestamp_type=nullable(string("", "CreateTime", "LogAppendTime")),
    max_timestamp=nullable(integer("ms; of magic 1 the entry's timestamp")),
    records_count=nullable(integer("records in the batch; null for a compressed entry of magic 0 or 1")),
    batch_length=integer("bytes after this field of the header"),
    partition_leader_epoch=nullable(integer()),
    last_offset_delta=nullable(integer()),
    base_timestamp=nullable(integer("ms; the delete horizon where delete_horizon_ms is set")),
    delete_horizon_ms=nullable(integer()),
    producer_id=nullable(integer("-1: none")),
    producer_epoch=nullable(integer("-1: none")),
    base_sequence=nullable(integer("-1: none")),
    last_sequence=nullable(integer("-1: none")),
    is_transactional=nullable(boolean()),
    is_control=nullable(boolean()),
)

RECORD = RowType(
    "record",
    "A record of the batch before it.",
    file=FILE,
    position=integer("of the batch"),
    offset=integer(),
    timestamp=integer("ms; -1: none"),
    key=optional(anything("text, or JSON with --keys json; null: no key")),
    key_base64=optional(string("instead of `key` where its bytes are not UTF-8")),
    value=optional(anything("text, or JSON with --values json; null: a tombstone")),
    value_base64=optional(string("instead of `value` where its bytes are not UTF-8")),
    headers=array("objects with `key` and `value`, or `key_base64` and `value_base64`, in order"),
    sequence=nullable(integer("-1: none; null in magic 0 and 1")),
    decoded=anything("what a control record, or a record of an internal topic, says"),
)

INDEX_ENTRY = RowType(
    "entry",
    "An entry of an offset index.",
    file=FILE,
    relative_offset=integer(),
    offset=nullable(integer("null where the file's name has no base offset")),
    position=integer("in the log"),
    entry_position=integer("of the entry in the index"),
)
TIME_INDEX_ENTRY = RowType(
    "entry",
    "An entry of a time index.",
    file=FILE,
    timestamp=integer("ms"),
    relative_offset=integer(),
    offset=nullable(integer("null where the file's name has no base offset")),
    position=integer("of the entry in the index"),
)
TRANSACTION_ENTRY = RowType(
    "entry",
    "An aborted transaction.",
    file=FILE,
    version=integer(),
    producer_id=integer(),
    first_offset=integer(),
    last_offset=integer("of the ABORT marker"),
    last_stable_offset=integer(),
    position=integer("of the entry in the index"),
)
PRODUCER_ENTRY = RowType(
    "entry",
    "The state of one producer; -1 stands for absent.",
    file=FILE,
    producer_id=integer(),
    producer_epoch=integer(),
    last_sequence=integer(),
    last_offset=integer(),
    offset_delta=integer(),
    timestamp=integer("ms"),
    coordinator_epoch=integer(),
    current_txn_first_offset=integer(),
    position=integer("of the entry in the snapshot"),
)
OFFSET_ENTRY = RowType(
    "entry",
    "A line of an offset checkpoint.",
    file=FILE,
    topic=string(),
    partition=integer(),
    offset=integer(),
    line=integer("in the file, from 1"),
    evidence=optional(string("the folder given, where several were")),
)
EPOCH_ENTRY = RowType(
    "entry",
    "A line of a leader epoch checkpoint.",
    file=FILE,
    topic=nullable(string("of the folder that the file is in")),
    partition=nullable(integer()),
    epoch=integer(),
    start_offset=integer(),
    line=integer("in the file, from 1"),
    evidence=optional(string("the folder given, where several were")),
)
