"""Rows of `kctl log-dir start`."""

from kctl.rows import RowType

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
""")
