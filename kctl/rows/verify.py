"""Rows of `kctl segment verify` and `kctl segment rebuild`."""

from kctl.rows import RowType, integer, nullable, string

FILE = RowType(
    "file",
    "A file that was examined. `good_bytes` and `damaged_bytes` add up to its size.",
    file=string("relative to the folder given on the command line"),
    type=string("log, index, timeindex, txnindex, snapshot, checkpoint, epochs, ..."),
    size_in_bytes=integer(),
    batches=nullable(integer("null for files that have none")),
    records=nullable(integer()),
    base_offset=nullable(integer("of the first batch; of the file's name where there is none")),
    next_offset=nullable(integer("behind the last sound batch; where a snapshot ends")),
    good_bytes=integer("a torn tail and preallocated zeros included"),
    damaged_bytes=integer(),
    broker_id=nullable(integer()),
    topic=nullable(string()),
    partition=nullable(integer()),
    evidence=nullable(string("the folder given, where several were")),
    moment=nullable(string("the copy it is from, where there are several")),
)

REBUILT = RowType(
    "rebuilt",
    "A file that was written anew, and how it compares with the one that is there.",
    file=string("below the folder written to"),
    type=string("index, timeindex, txnindex, snapshot, epochs"),
    size_in_bytes=integer("of the new file"),
    entries=integer(),
    verdict=nullable(
        string("how it compares with the existing file", "equal", "equivalent", "different", "missing")
    ),
    rules=string("the rules that were followed", "0.8", "2.0", "3.8"),
    differences=nullable(integer("entries that differ")),
    first_difference=nullable(string("the first entry that differs")),
    topic=nullable(string()),
    partition=nullable(integer()),
)
