"""What can be said about replicas of one partition held against each other."""

from kctl.findings import error, info, warning

DAMAGED_COPY = error("""replica-damaged-copy
    Broker {broker_id}'s copy is damaged {where}; {others}.
    Bytes of this copy are not a batch, or do not match the stored CRC. This is damage, not divergence.
    A failing disk, a torn write, or a copy that went wrong.
    Take the range from the copy named, or let the broker fetch the partition anew.""")
HOLE = error("""replica-hole
    Broker {broker_id}'s copy lacks offsets [{start}, {end}) in the middle, which broker {other} holds.
    Batches are missing between others, and nothing suggests that the topic is compacted.
    A segment that was removed by hand or lost by the file system, or a compacted topic that nothing here names.
    If the topic is compacted, give `--compacted TOPIC`; otherwise take the range from the other copy.""")
HOLE_EVERYWHERE = error("""replica-hole-everywhere
    Offsets [{start}, {end}){more} are in no copy: broker {broker_id}'s log goes on behind them in another segment.
    Leaders give offsets without gaps, and the topic is not compacted, which alone leaves some.
    A segment that was removed by hand or lost by the file system of a broker from which the others fetched.
    Look for the range in backups and remote storage. If the topic was compacted before, give `--compacted TOPIC`.""")
GAP_EVERYWHERE = info("""replica-gap-everywhere
    Offsets [{start}, {end}){more} are in no copy: broker {broker_id}'s log goes on behind them.
    Leaders give offsets without gaps. Compaction leaves some, now or before the topic's configuration was changed; so
        does retention at work while a directory is copied.
    A compaction or retention that the evidence does not show, or batches or segments that were cut out of the logs.
    If the topic is or was compacted, give `--compacted TOPIC`; otherwise look for the range in backups.""")
START_MISSING = info("""replica-start-missing
    Broker {broker_id}'s leader epochs begin at offset {said}, and its log at {start}.
    A broker that deletes its oldest segments deletes their leader epochs with them.
    Segments that were removed by hand or lost, segments that lie in a tier alone, or a copy that was taken while
        retention was at work.
    Copy the directory again; if it is the same, look for the range on other brokers, in backups and remote storage.""")
SAME_PAYLOAD = warning("""replica-same-payload-other-epoch
    Brokers {one} and {other} hold the same records at [{start}, {end}) under different leader epochs.
    The lineages have parted, but the bytes of the batches are equal: an idempotent producer sent them again.
    A producer that retried after a change of leader.
    Nothing of these batches is lost; look at the verdict for the rest.""")
OTHER_BYTES_SAME_RECORDS = info("""replica-other-bytes-same-records
    Brokers {one} and {other} store {count} batches in other bytes, with the same records.
    Every record that both hold at one offset is the same.
    The cleaner rewrote batches on one side, or messages of the old format were converted.
    Nothing.""")
NO_COMMON_RANGE = warning("""replica-no-common-range
    Brokers {one} and {other} hold no offset in common, so their records cannot be compared: the copy of broker
        {earlier} ends at {end}, that of broker {later} begins at {start}.
    One log ends before the other begins. Whether they belong to one lineage is not known from bytes.
    A replica that was away longer than the retention, or one started with another disk.
    Compare their epochs with `kctl epoch compare`; older copies or remote segments could settle it.""")
TOPIC_RECREATED = warning("""replica-topic-recreated
    Copies of {partition} are of different topics of that name: {ids}.
    A topic that was deleted and made again starts anew; its offsets say nothing about the old one's.
    The topic was re-created while a broker was away, or copies of different times lie together.
    Compare copies of one topic id; the verdict is unknown until then.""")
TOPIC_OF_BEFORE = info("""replica-topic-of-before
    At moment {moment!r} {partition} was of an earlier topic of that name: {ids}.
    The topic was deleted and made again between the moments. What the old one held is no part of the new one.
    Somebody deleted the topic and created one of the same name.
    Nothing; give the earlier moment alone to look at the old topic.""")
SENT_AGAIN = info("""replica-sent-again
    Broker {broker_id} held records from {start} to {end} that the present log has at other places: they were sent
        again.
    A leader stopped before any follower had them. Producers had no answer and sent the same records, of the same time,
        to the next leader.
    A leader failed or was replaced under load.
    Nothing.""")
TAIL_OF_HANDOVER = info("""replica-tail-of-handover
    When broker {leader} took over {partition} in epoch {epoch}, broker {broker_id} had more from offset {start} on
        ({seen_in}); nothing says that it was committed, and it was dropped.
    A leader that is told to stop has records that no follower has fetched yet. They were never committed: producers
        with acks=all were told to send them again, those with acks=0 or acks=1 lost them.
    A clean change of leader under load: a controlled shutdown, a preferred election or a reassignment.
    Nothing, unless producers use acks=0 or acks=1: then give `--acks 1`, and the records count as lost.""")
CLUSTERS_MIXED = warning("""replica-clusters-mixed
    Copies of {partition} are from different clusters: {ids}.
    Partitions of the same name on different clusters have nothing to do with each other.
    Evidence of several clusters was gathered into one folder.
    Give the folders of one cluster at a time; the verdict is unknown until then.""")
COPY_MISSING = info("""replica-copy-missing
    Broker {broker_id} is assigned a replica of {partition}, but the evidence has no copy of it.
    The verdict covers the copies in the evidence.
    The broker's directory was not copied, or it had not made the replica yet.
    Copy that broker's log directory as well, before it follows another leader.""")
INCOMPLETE_COPY = warning("""replica-incomplete-copy
    Broker {broker_id}'s copy ends at offset {end}, and its {checkpoint} says {said}.
    Either the copy is only half of the log, or the broker lost the tail of it.
    A copy that was broken off, or a power failure before the tail was on the disk.
    Copy the directory again; if it ends there too, the tail is lost on that broker: see `kctl replica loss`.""")
COPY_UNREADABLE = error("""replica-copy-unreadable
    Part of broker {broker_id}'s copy was not compared: {reason}.
    The verdict covers the rest.
    Missing permission, a failing disk, a file that went away, or a batch that cannot be decoded.
    Give kctl a copy that it can read.""")
LEADER_UNKNOWN = warning("""replica-leader-unknown
    {partition} has copies that contradict each other, and the evidence does not show which of them leads.
    Without the current leader it is unknown which records are lost.
    No znode export, no leader epochs in the batches, and no `--leader`.
    Give a znode export of the last moment, brokers' logs, or `--leader ID`.""")
PRESENT_INCOMPLETE = warning("""replica-present-incomplete
    The present leader's copy of {partition} ends at {end} in the epoch in which an earlier copy goes on to {said}.
    A leader does not shorten its log within an epoch, so the later copy is probably not whole.
    A copy that was broken off, or a disk that lost its tail without an election.
    Copy the leader's directory again; what is beyond its end is not called lost.""")
PREFIX_LOST = warning("""replica-leader-copy-missing
    Broker {broker_id} leads {partition}, and no copy of its log is here: the copy of broker {instead} stands for it.
    What the present lineage holds was taken from another broker than its leader, which may be behind.
    The leader's directory was not copied.
    Copy the leader's log directory.""")
UNDECIDED_TAIL = info("""replica-undecided-tail
    Broker {broker_id} holds offsets [{start}, {end}) that the leader's copy lacks; nothing says that they are lost.
    Copies of a live cluster are taken one after the other; the leader may hold them by now.
    The leader's copy was taken first.
    Copy again, or give brokers' logs and a znode export of the same time.""")
UNCLEAN_COST_UNKNOWN = warning("""replica-unclean-cost-unknown
    Broker {leader} became leader of {partition} in epoch {epoch} by an unclean election, at {start}; the ISR had been
        {isr} ({where}). Whether records were dropped is unknown: no log of these brokers and no copy of what they had
        is here.
    The disks of the ISR keep what an unclean election drops until they follow the new leader; their server logs say how
        much they cut then.
    A partition whose last in-sync replica was down, and `unclean.leader.election.enable` or an operator's election.
    Give the server logs of these brokers as well, or a copy of their disks from before they came back.""")
MOMENTS_UNDATED = info("""replica-moments-undated
    Nothing tells which of the moments {moments} came first: of each partition the longest copies are taken for the
        last. What was cut away between two moments cannot be told from what was not written yet.
    Moments are ordered by the zxids of their znode exports, else by the timestamps of batches; messages of format 0
        have none.
    Copies of brokers before 0.10 without znode exports.
    Name the moments in their order: `--moment NAME=FOLDER`, oldest first.""")
