"""What can be wrong with checkpoints and other small text files of a log directory."""

from kctl.findings import error, info, warning

CHECKPOINT_COUNT = error("""checkpoint-count
    {what} (line {line}). {refusal}.
    The second line of a checkpoint is the number of entries that follow.
    The file was truncated, joined, or edited.
    Restore the missing lines, or delete the file: Kafka writes offset checkpoints anew and starts from 0.""")
CHECKPOINT_MALFORMED = error("""checkpoint-malformed
    {what} (line {line}). {refusal}.
    A checkpoint is a version line, a count line, and one line an entry.
    A torn write on a full or failing disk, or a hand edit.
    Restore it from another moment, or delete it: Kafka writes offset checkpoints anew and starts from 0.""")
CHECKPOINT_EMPTY = info("""checkpoint-empty-file
    The file is empty; Kafka reads it as an empty list.
    A broker creates the file when it starts and writes to it some time later.
    The broker was stopped soon after its first start, or a full disk truncated the file.
    Nothing, if the broker is new.""")
CHECKPOINT_DUPLICATE = warning("""checkpoint-duplicate
    {partition} has {count:line}; Kafka 0.11 and later use the last one, up to 0.10.2 Kafka refuses the file.
    Kafka writes one line per partition.
    The file was edited or joined.
    Find the right line with `kctl checkpoint show`.""")
CHECKPOINT_NEGATIVE = warning("""checkpoint-negative-offset
    {partition} has offset {offset}.
    Offsets of a log are never negative.
    The file was edited.
    Correct the line; Kafka limits a high watermark to the log's range.""")
PARTITION_METADATA_BAD = error("""partition-metadata-malformed
    {what} (line {line}); Kafka fails to load the partition.
    The file holds a version and the topic's id.
    A torn write on a full or failing disk, or a hand edit.
    Find the topic's id in znode /brokers/topics/TOPIC, in the metadata log, or in the folder of another partition.""")
PARTITION_METADATA_LABEL = warning("""partition-metadata-label
    Line {line} has the key {label!r}, which no broker writes; Kafka reads the lines by their order and accepts it.
    The first line is `version`, the second `topic_id`; the rest of the file may be wrong too.
    The file was damaged on the disk or in the copy, or edited.
    Compare the id with that of another partition or replica of the topic.""")
QUORUM_STATE_BAD = error("""quorum-state-malformed
    {what} (line {line}); the KRaft node fails to start.
    The file stores the node's vote and the leader that it knows.
    A torn write on a full or failing disk, or a hand edit.
    Let the quorum replace it; a node that lost its vote may vote twice in one epoch.""")
REMOTE_LOG_SNAPSHOT_BAD = warning("""remote-log-snapshot-malformed
    {what}; the broker cannot read its cache of remote segments and reads them from the topic again.
    Brokers of 3.5 and 3.6 cache the metadata of a partition's remote segments in this file.
    A full disk or a power failure truncated the file, or it was edited.
    Delete it: `__remote_log_metadata` has the same content.""")
