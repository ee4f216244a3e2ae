"""What can be wrong with checkpoints and other small text files of a log directory."""

from kctl.findings import error, info, warning

CHECKPOINT_COUNT = error("""checkpoint-count
    {what} (line {line}). {refusal}.
    The second line of a checkpoint promises how many entries follow.
    A file that was cut off, joined, or edited.
    Restore the missing lines, or delete the file: Kafka writes offset checkpoints anew and starts from 0.""")
CHECKPOINT_MALFORMED = error("""checkpoint-malformed
    {what} (line {line}). {refusal}.
    A checkpoint is a version line, a count line, and one line an entry.
    A torn write on a full or failing disk, or a hand edit.
    Restore it from another moment, or delete it: Kafka writes offset checkpoints anew and starts from 0.""")
CHECKPOINT_EMPTY = info("""checkpoint-empty-file
    The file has no bytes; Kafka takes it for an empty list.
    A broker makes the file when it starts and writes it some time later.
    A broker that was stopped soon after its first start, or a file that was cut off by a full disk.
    Nothing, where the broker is new.""")
CHECKPOINT_DUPLICATE = warning("""checkpoint-duplicate
    {partition} has {count} lines; since 0.11 Kafka takes the last, up to 0.10.2 it refuses the file.
    Kafka writes one line a partition.
    A file that was edited or joined.
    Find out which line is right with `kctl checkpoint show`.""")
CHECKPOINT_NEGATIVE = warning("""checkpoint-negative-offset
    {partition} has offset {offset}.
    Offsets of a log are never negative.
    A file that was edited.
    Correct the line; Kafka clamps a high watermark to the log.""")
PARTITION_METADATA_BAD = error("""partition-metadata-malformed
    {what} (line {line}); Kafka fails to load the partition.
    The file holds a version and the topic's id.
    A torn write on a full or failing disk, or a hand edit.
    The topic's id is in znode /brokers/topics/TOPIC, in the metadata log, or beside another partition of it.""")
PARTITION_METADATA_LABEL = warning("""partition-metadata-label
    Line {line} is called {label!r}, as no broker writes it; Kafka goes by the order of the lines and takes it.
    The first line is `version`, the second `topic_id`; what else is wrong in the file cannot be told.
    A file damaged on the disk or in the copy, or edited.
    Compare the id with that of another partition or replica of the topic.""")
QUORUM_STATE_BAD = error("""quorum-state-malformed
    {what} (line {line}); the KRaft node fails to start.
    The file remembers the node's vote and the leader that it knows.
    A torn write on a full or failing disk, or a hand edit.
    Let the node's quorum replace it; a lost vote may let a node vote twice in one epoch.""")
REMOTE_LOG_SNAPSHOT_BAD = warning("""remote-log-snapshot-malformed
    {what}; the broker fails to read its cache of remote segments and takes it from the topic again.
    Brokers of 3.5 and 3.6 keep what they know of a partition's remote segments in this file.
    A file cut off by a full disk or a power failure, or a hand edit.
    Delete it: `__remote_log_metadata` has what it held.""")
