"""What can be wrong with the offsets of consumer groups, of a running cluster and in evidence."""

from kctl.findings import info, warning

GROUP_OFFSET_BEYOND_END = warning("""group-offset-beyond-end
    Group {group} committed offset {offset} of {partition}, and the log ends at {edge}: {gone:offset} that the group had passed {gone:is|are} not there.
    Consumers get OFFSET_OUT_OF_RANGE and go on by `auto.offset.reset`: `latest` skips what is new, `earliest` reads all again.
    The log lost its end (an unclean election, a topic made anew, an emptied replica), or somebody set the offset by hand.
    Find out whether records were lost (`kctl replica loss`), then set the offset with `kctl group reset` while the group is empty.""")

GROUP_OFFSET_BELOW_START = warning("""group-offset-below-start
    Group {group} committed offset {offset} of {partition}, and the log begins at {edge}: up to {gone:record} {gone:is|are} gone that the group has not read.
    Consumers get OFFSET_OUT_OF_RANGE and go on by `auto.offset.reset`: `latest` skips all that is left as well.
    Retention or DeleteRecords removed them before the group read them: it is too slow, or has stopped.
    Set the offset with `kctl group reset GROUP --to-earliest` to read what is left; raise `retention.ms` or `retention.bytes`.""")

GROUP_OFFSET_PENDING = warning("""group-offset-pending
    Group {group} has an offset of {partition} that waits for the end of a transaction: {held}.
    Brokers answer UNSTABLE_OFFSET_COMMIT for it; a consumer that starts waits until the transaction ends.
    A transactional producer (Kafka Streams, exactly once) is within a transaction, or died in one.
    Wait for the transaction's end, or restart its producer with the same transactional id; `kctl transactions abort` ends one that hangs.""")

GROUP_OFFSETS_REMOVED = info("""group-offsets-removed
    {count:offset} of group {group} {count:was|were} removed at {time}: {how}. Before, {partition} was at {offset}, committed at {committed};
        `{command}` prints them.
    A consumer of this group begins anew by `auto.offset.reset`.
    Offsets expire `offsets.retention.minutes` after a group became empty, or after their commit in a group that assigns partitions
        itself; or somebody deleted the group, its offsets or the topic.
    Set the offsets of before with the file and `kctl group reset --from-file`. If they expired, raise `offsets.retention.minutes`.""")
