"""Rows of `kctl segment verify` and `kctl segment rebuild`."""

from kctl.rows import RowType

FILE = RowType("""
    file: A file that was examined. `good_bytes` and `damaged_bytes` add up to its size.
    file           string    relative to the folder given on the command line
    type           string    log, index, timeindex, txnindex, snapshot, checkpoint, epochs, ...
    size_in_bytes
    batches        integer?  null for files that have none
    records?
    base_offset    integer?  of the first batch; of the file's name where there is none
    next_offset    integer?  behind the last sound batch; where a snapshot ends
    good_bytes     integer   a torn tail and preallocated zeros included
    damaged_bytes  integer
    broker_id?, topic?, partition?, evidence?, moment?
""")

REBUILT = RowType("""
    rebuilt: A file that was written anew, and how it compares with the one that is there.
    file              string       below the folder written to
    type              string       index, timeindex, txnindex, snapshot, epochs
    size_in_bytes     integer      of the new file
    entries           integer
    verdict           equal|equivalent|different|missing?  how it compares with the existing file
    rules             0.8|2.0|3.8  the rules that were followed
    differences       integer?     entries that differ
    first_difference  string?      the first entry that differs
    topic?, partition?
""")
