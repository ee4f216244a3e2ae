"""Rows that many commands print."""

from kctl.rows import RowType, integer, nullable, number, string

FINDING = RowType(
    "finding",
    "Something a check has to say; `kctl finding CODE` explains it.",
    code=string("stable name, see `kctl finding`"),
    severity=string("", "error", "warning", "info"),
    message=string("one sentence"),
    broker_id=nullable(integer()),
    topic=nullable(string()),
    partition=nullable(integer()),
    file=nullable(string("relative to the folder given on the command line")),
    position=nullable(integer("byte in the file, from 0")),
    size_in_bytes=nullable(integer()),
    base_offset=nullable(integer()),
    last_offset=nullable(integer()),
    remote_log_segment_id=nullable(string()),
    evidence=nullable(string("the folder given, where several were")),
    moment=nullable(string("the copy it is from, where there are several")),
)

SUMMARY = RowType(
    "summary",
    "What was examined and how it ended; the last row.",
    files=integer(),
    bytes=integer(),
    batches=integer(),
    records=integer(),
    errors=integer(),
    warnings=integer(),
    seconds=number(),
)
