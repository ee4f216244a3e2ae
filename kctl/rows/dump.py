"""Rows of `segment dump` and `checkpoint show`."""

from kctl.rows import Field, RowType, anything, array, boolean, integer, nullable, string

FILE: dict[str, Field] = {
    "file": string("relative to the folder given on the command line, the path as given where a file was named"),
}

BATCH = RowType(
    "batch",
    "A batch, or an entry of magic 0 or 1; what a magic has not is null.",
    **FILE,
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
    "A record of the batch before it. Bytes that are not UTF-8 are in `key_base64` and `value_base64`.",
    **FILE,
    position=integer("of the batch"),
    offset=integer(),
    timestamp=integer("ms; -1: none"),
    key=anything("text, or JSON with --keys json; null: no key, or see key_base64"),
    key_base64=nullable(string()),
    value=anything("text, or JSON with --values json; null: a tombstone, or see value_base64"),
    value_base64=nullable(string()),
    headers=array("objects with `key` and `value`, or `key_base64` and `value_base64`, in order"),
    sequence=nullable(integer("-1: none; null in magic 0 and 1")),
    decoded=anything("what a control record, or a record of an internal topic, says"),
)

INDEX_ENTRY = RowType(
    "entry",
    "An entry of an offset index.",
    **FILE,
    relative_offset=integer(),
    offset=nullable(integer("null where the file's name has no base offset")),
    position=integer("in the log"),
    entry_position=integer("of the entry in the index"),
)
TIME_INDEX_ENTRY = RowType(
    "entry",
    "An entry of a time index.",
    **FILE,
    timestamp=integer("ms"),
    relative_offset=integer(),
    offset=nullable(integer("null where the file's name has no base offset")),
    position=integer("of the entry in the index"),
)
TRANSACTION_ENTRY = RowType(
    "entry",
    "An aborted transaction.",
    **FILE,
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
    **FILE,
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
    **FILE,
    topic=string(),
    partition=integer(),
    offset=integer(),
    line=integer("in the file, from 1"),
)
EPOCH_ENTRY = RowType(
    "entry",
    "A line of a leader epoch checkpoint.",
    **FILE,
    topic=nullable(string("of the folder that the file is in")),
    partition=nullable(integer()),
    epoch=integer(),
    start_offset=integer(),
    line=integer("in the file, from 1"),
)
