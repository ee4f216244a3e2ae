"""Rows that many commands print."""

from kctl.rows import RowType

FINDING = RowType("""
    finding: A finding of a check; `kctl finding CODE` explains it.
    code      string    stable name, see `kctl finding`
    severity  error|warning|info
    message   string    one sentence
    broker_id?, topic?, partition?
    file      string?   relative to the folder given on the command line
    line      integer?  in the file, from 1
    position  integer?  byte in the file, from 0
    size_in_bytes?, base_offset?, last_offset?, remote_log_segment_id?, evidence?, moment?
""")

SUMMARY = RowType("""
    summary: Totals of the run; the last row.
    files    integer
    bytes, batches, records, errors, warnings
    seconds  number
""")
