"""Rows of `kctl segment verify`, `kctl segment rebuild`, `kctl log-dir start` and `kctl collect`."""

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

STEPS = (
    "load|recover|truncate|rebuild_index|delete|rename|complete_swap|raise_log_start|cut_epochs|drop_snapshot"
    "|continue_future|offline"
)

START = RowType("""
    start: The forecast of one broker's start.
    broker_id?
    kafka_version
    starts            boolean?  null: the evidence does not tell
    reason            string    the answer in one sentence
    fails_with        string?   the sentence that Kafka logs
    exception         string?   its class
    log_dirs_offline  array     log directories that go offline
    partitions        integer   partition folders that are loaded
    bytes_read        integer   of logs, to recover them and to rebuild the state of producers
    bytes_written     integer   of indexes that are built anew, about
    bytes_free        integer?  of the file system of a log directory; null: of a copy nobody knows
    moment?
""")

START_STEP = RowType(f"""
    start_step: A step of a start, in order.
    log_dir      string
    topic?, partition?, broker_id?
    step         {STEPS}
    file         string?   in the partition folder, or in the log directory
    from_offset  integer?  of the offsets that the step is about
    to_offset    integer?  exclusive
    records_cut  integer?  records in sound batches that the step takes away
    bytes_cut    integer?
    only_copy    boolean?  no other copy in the evidence holds all of what is cut; null where none was compared
    message      string
    source       string    of the rule, in Kafka
    moment?
    folder       string?   the partition folder: its name tells a live replica from a stray, future or deleted one
""")

COLLECTED = RowType("""
    collected: How the copy of a source went.
    source           string
    broker_id?
    broker_ids       array     of all brokers whose files these are
    files            integer
    bytes
    seconds          number
    left_out         integer   names that were not copied; the manifest has each
    clock_offset_ms  integer?  how far the clock of the source is ahead of this machine's; null for this machine
    incomplete       string?   why not all was copied
""")

COLLECTION_SUMMARY = RowType("""
    summary: Totals of a copy, or of its verification; the last row.
    folder   string
    files    integer
    bytes
    seconds  number
    sha256   string?  the digest of the manifest, as its last line has it
    errors
""")

PACKED = RowType("""
    archive: A copy in one file.
    file           string
    files          integer   in it, beside the manifest
    bytes
    size_in_bytes  integer   of the archive
    sha256         string    of the archive
    seconds        number
""")
