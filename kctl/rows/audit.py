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
    blake2b  string?  of the whole file, as b2sum prints it; null without --digests blake2b
""")

SEGMENT = RowType("""
    segment: A log segment that the audit scanned.
    evidence?, moment?, broker_id?, topic?, partition?
    file                       string    relative to its evidence
    size_in_bytes, batches?, records?
    base_offset                integer?  of the first batch
    next_offset                integer?  after the last sound batch
    max_timestamp              integer?  milliseconds
    good_bytes, damaged_bytes  integer?
""")

BATCH = RowType("""
    batch: A batch of a scanned log, or an entry of magic 0 or 1.
    evidence?, moment?, broker_id?, topic?, partition?
    file                    string    relative to its evidence
    position                integer   byte in the file, from 0
    size_in_bytes           integer   header included
    base_offset             integer   of magic 0 and 1 the stored offset: of a compressed entry that of its last record
    last_offset, magic      integer
    crc                     integer   as stored, unsigned
    crc_valid               boolean
    codec                   string    none, gzip, snappy, lz4, zstd, or unknown(N)
    attributes              integer
    timestamp_type          string?   CreateTime or LogAppendTime; null in magic 0
    base_timestamp          integer   the delete horizon where delete_horizon_ms is set; of magic 1 the entry's timestamp;
        -1: none
    max_timestamp           integer   of magic 1 the entry's timestamp; -1: none
    delete_horizon_ms       integer?
    records_count           integer?  null for a compressed entry of magic 0 or 1 whose records were not read
    last_offset_delta       integer?  null in magic 0 and 1, like all columns below
    partition_leader_epoch  integer?  -1: none
    producer_id             integer?  -1: none
    producer_epoch          integer?  -1: none
    base_sequence           integer?  -1: none
    is_transactional, is_control  boolean?
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
    audit: The result of the audit; the last row, and the content of summary.json.
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
    lost_records  integer?  records known to be lost; null if replicas could not be compared
    judgements    array     the `coverage` row of each question that was asked
    parts         array     parts of the audit: name, state, seconds
    requests      integer? or absent  requests to stores, with listings and without retries of the client; null if no evidence is in a store
    bytes_read    integer? or absent  of objects; null as for `requests`
    retries       integer? or absent  tasks that Spark repeated; null if unknown, and with --engine local
    report        string?   the HTML report
""")

AUDIT_ESTIMATE = RowType("""
    audit-estimate: The work of an audit, as `audit run --dry-run` estimates it.
    evidence      string    the paths
    files         integer   in log directories and named; without tiers and broker logs
    bytes
    tasks         integer   work items for one core each: a partition folder, or a named file
    largest_task  integer   bytes
    comparisons   integer   partitions whose copies would be compared
    requests      integer?  to stores, at least; null if no evidence is in a store
    cores         integer?  null if a Spark cluster decides
    core_seconds  number    an estimate; can be off by a factor of three
    seconds       number?   estimated duration on these cores, at least that of the largest task
""")

EVIDENCE_FILE = RowType("""
    evidence_file: A file of evidence: what it was recognised as, and how much of its start was understood.
    file              string    relative to the folder given
    group             log-dirs|logs|settings|tier|znodes|other
    what              string    segment, offset-index, checkpoint, broker-log, ...; empty, text, binary: not recognised;
        link, special, unreadable: not looked at
    broker_id?, topic?, partition?
    size_in_bytes?
    looked_at         integer   bytes at its start that were read
    understood        integer   of these bytes
    lines             integer?  in these bytes, of a text
    lines_understood  integer?  of these lines
    is_read           boolean   commands read it if they are given the folder
    note              string?   what is odd, or how its lines were found
    evidence?
""")

EVIDENCE_GROUP = RowType("""
    evidence_group: The files of one group of one broker.
    broker_id?
    group             log-dirs|logs|settings|tier|znodes|other
    files             integer
    folders           integer  of partitions
    bytes
    looked_at         integer  bytes at the starts of files that were read
    understood        integer  of these bytes
    lines             integer  in these bytes, of texts
    lines_understood  integer  of these lines
""")

INVENTORY = RowType("""
    inventory: What the evidence holds; the last row.
    files          integer
    bytes
    looked_at      integer  bytes at the starts of files that were read
    understood     integer  of these bytes
    not_looked_at  integer  links, special files, and what cannot be read
    brokers        array    broker ids
""")

SQL_ROW = RowType("""
    row: A row of the statement's result: one key per column, as the statement names them.
""")
