"""Rows of `segment dump` and `checkpoint show`."""

from kctl.rows import RowType

FILE = (
    "file  string  relative to the folder given on the command line, the path as given where a file was named"
)

BATCH = RowType(f"""
    batch: A batch, or an entry of magic 0 or 1; fields that its magic lacks are null.
    {FILE}
    position           integer   byte in the file, from 0
    size_in_bytes      integer   header included
    base_offset        integer?  null for a compressed entry of magic 0 or 1: only the last is stored
    last_offset
    magic              integer
    crc                integer   as stored, unsigned
    crc_valid          boolean
    codec              string    none, gzip, snappy, lz4, zstd, or unknown(N)
    attributes         integer
    timestamp_type     CreateTime|LogAppendTime?
    max_timestamp      integer?  ms; of magic 1 the entry's timestamp
    records_count      integer?  records in the batch; null for a compressed entry of magic 0 or 1
    batch_length       integer   bytes after this field of the header
    partition_leader_epoch, last_offset_delta  integer?
    base_timestamp     integer?  ms; the delete horizon where delete_horizon_ms is set
    delete_horizon_ms  integer?
    producer_id        integer?  -1: none
    producer_epoch     integer?  -1: none
    base_sequence      integer?  -1: none
    last_sequence      integer?  -1: none
    is_transactional, is_control  boolean?
""")

RECORD = RowType(f"""
    record: A record of the batch before it.
    {FILE}
    position      integer   of the batch
    offset
    timestamp     integer   ms; -1: none
    key           any or absent  text, or JSON with --keys json; null: no key
    key_base64    string or absent  instead of `key` where its bytes are not UTF-8
    value         any or absent  text, or JSON with --values json; null: a tombstone
    value_base64  string or absent  instead of `value` where its bytes are not UTF-8
    headers       array     objects with `key` and `value`, or `key_base64` and `value_base64`, in order
    sequence      integer?  -1: none; null in magic 0 and 1
    decoded       any       content of a control record or of a record of an internal topic
""")

INDEX_ENTRY = RowType(f"""
    entry: An entry of an offset index.
    {FILE}
    relative_offset  integer
    offset           integer?  null where the file's name has no base offset
    position         integer   in the log
    entry_position   integer   of the entry in the index
""")
TIME_INDEX_ENTRY = RowType(f"""
    entry: An entry of a time index.
    {FILE}
    timestamp        integer   ms
    relative_offset  integer
    offset           integer?  null where the file's name has no base offset
    position         integer   of the entry in the index
""")
TRANSACTION_ENTRY = RowType(f"""
    entry: An aborted transaction.
    {FILE}
    version, producer_id
    first_offset        integer
    last_offset         integer  of the ABORT marker
    last_stable_offset  integer
    position            integer  of the entry in the index
""")
PRODUCER_ENTRY = RowType(f"""
    entry: The state of one producer; -1 stands for absent.
    {FILE}
    producer_id, producer_epoch
    last_sequence  integer
    last_offset
    offset_delta   integer
    timestamp      integer  ms
    coordinator_epoch, current_txn_first_offset  integer
    position       integer  of the entry in the snapshot
""")
OFFSET_ENTRY = RowType("""
    entry: A line of an offset checkpoint.
    file      string   relative to the folder given on the command line, the path as given where a file was
        named
    topic, partition, offset
    line      integer  in the file, from 1
    evidence  string or absent  the folder given, if there are several
""")
EPOCH_ENTRY = RowType("""
    entry: A line of a leader epoch checkpoint.
    file      string   relative to the folder given on the command line, the path as given where a file was
        named
    topic     string?  of the folder that the file is in
    partition?
    epoch     integer
    start_offset
    line      integer  in the file, from 1
    evidence  string or absent  the folder given, if there are several
""")
