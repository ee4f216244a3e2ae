"""Rows of `kctl audit`, and the tables that it writes beside those of its parts."""

from kctl.rows import RowType

EXAMINED = RowType("""
    examined: A file that the audit read.
    evidence?, moment?, broker_id?, topic?, partition?
    file    string   relative to its evidence
    type    string   log, index, timeindex, txnindex, snapshot, checkpoint, epochs, ...
    size_in_bytes, batches?, records?, base_offset?
    next_offset, good_bytes, damaged_bytes  integer?
    sha256   string?  of the whole file; null with --digests none or blake2b
    blake2b  string?  of the whole file, as b2sum prints it; null but with --digests blake2b
""")

SEGMENT = RowType("""
    segment: A log segment that the audit scanned.
    evidence?, moment?, broker_id?, topic?, partition?
    file                       string    relative to its evidence
    size_in_bytes, batches?, records?
    base_offset                integer?  of the first batch
    next_offset                integer?  behind the last sound batch
    max_timestamp              integer?  milliseconds
    good_bytes, damaged_bytes  integer?
""")

CHECKPOINT = RowType("""
    checkpoint: An entry of a checkpoint file.
    evidence?, moment?, broker_id?
    file        string
    checkpoint  string    which checkpoint: the file's name
    topic?, partition?
    epoch       integer?  of leader-epoch-checkpoint
    offset      integer   the offset, or the start offset of the epoch
""")

AUDIT = RowType("""
    audit: How the audit ended; the last row, and the content of summary.json.
    verdict       string    one sentence
    evidence      string    the paths audited, quoted as for a shell
    options       array?    `[option, value]` of --broker and --moment, as given
    kctl          string    version that made it
    started       string    UTC, ISO 8601
    seconds       number
    files         integer
    bytes, batches, records
    brokers       array     broker ids
    moments       array     copies, in their order
    partitions    integer
    errors, warnings, infos
    lost_records  integer?  records known to be lost; null where the comparison was not possible
    judgements    array     the `coverage` row of each question that was asked
    parts         array     what was done: name, state, seconds
    requests      integer? or absent  made of stores, listings included, without those that a store's client repeats; null where no evidence lies in one
    bytes_read    integer? or absent  of objects; null as before
    retries       integer? or absent  tasks that Spark began again; null where it does not say, and on this machine
    report        string?   the HTML report
""")

AUDIT_ESTIMATE = RowType("""
    audit-estimate: What `audit run --dry-run` found that the audit would do.
    evidence      string    the paths
    files         integer   of log directories and those named; tiers and brokers' logs are read besides
    bytes
    tasks         integer   pieces of work that go to a core each: a partition folder, or a file named alone
    largest_task  integer   bytes
    comparisons   integer   partitions whose copies would be compared
    requests      integer?  of stores, at least; null where no evidence lies in one
    cores         integer?  null where a cluster decides
    core_seconds  number    an estimate; machines differ by three times
    seconds       number?   the same on these cores, and not below that of the largest task
""")

SQL_ROW = RowType("""
    row: A row of the statement's result: one key a column, as the statement names them.
""")
