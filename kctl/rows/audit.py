"""Rows of `kctl audit`, and the tables that it writes beside those of its parts."""

from kctl.rows import RowType, array, integer, nullable, number, string

EXAMINED = RowType(
    "examined",
    "A file that the audit read.",
    evidence=nullable(string("the folder given, where several were")),
    moment=nullable(string()),
    broker_id=nullable(integer()),
    topic=nullable(string()),
    partition=nullable(integer()),
    file=string("relative to its evidence"),
    type=string("log, index, timeindex, txnindex, snapshot, checkpoint, epochs, ..."),
    size_in_bytes=integer(),
    batches=nullable(integer()),
    records=nullable(integer()),
    base_offset=nullable(integer()),
    next_offset=nullable(integer()),
    good_bytes=nullable(integer()),
    damaged_bytes=nullable(integer()),
    sha256=nullable(string("of the whole file; null with --no-sha256")),
)

SEGMENT = RowType(
    "segment",
    "A log segment that the audit scanned.",
    evidence=nullable(string("the folder given, where several were")),
    moment=nullable(string()),
    broker_id=nullable(integer()),
    topic=nullable(string()),
    partition=nullable(integer()),
    file=string("relative to its evidence"),
    size_in_bytes=integer(),
    batches=nullable(integer()),
    records=nullable(integer()),
    base_offset=nullable(integer("of the first batch")),
    next_offset=nullable(integer("behind the last sound batch")),
    max_timestamp=nullable(integer("milliseconds")),
    good_bytes=nullable(integer()),
    damaged_bytes=nullable(integer()),
)

CHECKPOINT = RowType(
    "checkpoint",
    "An entry of a checkpoint file.",
    evidence=nullable(string()),
    moment=nullable(string()),
    broker_id=nullable(integer()),
    file=string(),
    checkpoint=string("which checkpoint: the file's name"),
    topic=nullable(string()),
    partition=nullable(integer()),
    epoch=nullable(integer("of leader-epoch-checkpoint")),
    offset=integer("the offset, or the start offset of the epoch"),
)

AUDIT = RowType(
    "audit",
    "How the audit ended; the last row, and the content of summary.json.",
    verdict=string("one sentence"),
    evidence=string("the folder audited"),
    kctl=string("version that made it"),
    started=string("UTC, ISO 8601"),
    seconds=number(),
    files=integer(),
    bytes=integer(),
    batches=integer(),
    records=integer(),
    brokers=array("broker ids"),
    moments=array("copies, in their order"),
    partitions=integer(),
    errors=integer(),
    warnings=integer(),
    infos=integer(),
    lost_records=nullable(integer("records known to be lost; null where the comparison was not possible")),
    parts=array("what was done: name, state, seconds"),
    report=nullable(string("the HTML report")),
)

SQL_ROW = RowType("row", "A row of the statement's result: one key a column, as the statement names them.")
