"""Rows of `kctl segment verify` and `kctl segment rebuild`."""

from kctl.rows import RowType

FILE = RowType("""
    file: A file that was examined. `good_bytes` and `damaged_bytes` add up to its size.
    file           string    relative to the folder given on the command line
    type           string    log, index, timeindex, txnindex, snapshot, checkpoint, epochs, ...
    size_in_bytes
    batches        integer?  null for files without batches
    records?
    base_offset    integer?  of the first batch, or of the file's name if there is none
    next_offset    integer?  after the last sound batch; the end of a snapshot
    good_bytes     integer   including a torn tail and preallocated zeros
    damaged_bytes  integer
    broker_id?, topic?, partition?, evidence?, moment?
""")

REBUILT = RowType("""
    rebuilt: A rebuilt file, and how it compares with the existing one.
    file              string       relative to the output folder
    type              string       index, timeindex, txnindex, snapshot, epochs
    size_in_bytes     integer      of the new file
    entries           integer
    verdict           equal|equivalent|different|missing?  how it compares with the existing file
    rules             0.8|2.0|3.8  the rules applied
    differences       integer?     entries that differ
    first_difference  string?      the first entry that differs
    topic?, partition?
""")
