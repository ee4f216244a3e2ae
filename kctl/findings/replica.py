"""Findings about replicas of one partition that are compared with each other."""

from kctl.findings import error, info, warning

DAMAGED_COPY = error("""replica-damaged-copy
    Broker {broker_id}'s copy is damaged {where}; {others}.
    Bytes of this copy are not a batch, or do not match the stored CRC. This is damage, not divergence.
    A failing disk, a torn write, or a failed copy.
    Take the range from the named copy, or let the broker fetch the partition again.""")
HOLE = error("""replica-hole
    Broker {broker_id}'s copy lacks offsets [{start}, {end}) in the middle, which broker {other} holds.
    Batches are missing between others, and the evidence does not show that the topic is compacted.
    A segment was removed by hand or lost by the file system, or the topic is compacted.
    If the topic is compacted, give `--compacted TOPIC`; otherwise take the range from the other copy.""")
HOLE_EVERYWHERE = error("""replica-hole-everywhere
    Offsets [{start}, {end}){more} are in no copy: broker {broker_id}'s log continues after them in another segment.
    Leaders assign offsets without gaps. Only compaction leaves gaps, and the topic is not compacted.
    A segment was removed by hand or lost by the file system of a broker from which the others fetched.
    Look for the range in backups and remote storage. If the topic was compacted before, give `--compacted TOPIC`.""")
GAP_EVERYWHERE = info("""replica-gap-everywhere
    Offsets [{start}, {end}){more} are in no copy: broker {broker_id}'s log continues after them.
    Leaders assign offsets without gaps. Compaction leaves gaps, now or before the topic's configuration changed; so
        does retention that runs while a directory is copied.
    Compaction or retention that the evidence does not show, or batches or segments that were cut out of the logs.
    If the topic is or was compacted, give `--compacted TOPIC`; otherwise look for the range in backups.""")
START_MISSING = info("""replica-start-missing
    Broker {broker_id}'s leader epochs begin at offset {said}, and its log at {start}{left}.
    A broker that deletes its oldest segments also deletes their leader epochs.
    Segments that were removed by hand or lost, segments that are only in a tier, or a copy taken while retention was
        running.
    Copy the directory again; if it is the same, look for the range on other brokers, in backups and remote storage.""")
SAME_PAYLOAD = warning("""replica-same-payload-other-epoch
    Brokers {one} and {other} hold the same records at [{start}, {end}) under different leader epochs.
    The lineages have diverged, but the bytes of the batches are equal: an idempotent producer sent them again.
    A producer retried after a change of leader.
    These batches are not lost; see the verdict for the rest.""")
OTHER_BYTES_SAME_RECORDS = info("""replica-other-bytes-same-records
    Brokers {one} and {other} store {count:batch/batches} in other bytes, with the same records.
    Every record that both hold is the same at each offset.
    The cleaner rewrote batches on one side, or messages of the old format were converted.
    Nothing.""")
EPOCHS_CONTRADICT = error("""replica-epochs-contradict
    Brokers {one} and {other} are not of one lineage: broker {older} has epoch {older_epoch} up to offset {last}, and
        broker {newer} has epoch {newer_epoch} from offset {first} on.
    Epochs only grow along a log, so that no log holds both. At the offsets that both had, a cleaner took the records.
    A leader was elected that did not have the end of the other's log, and the topic is compacted.
    Take the copy of the newer epoch as the present one; what lies behind in the older epoch is dropped when its broker
        follows.""")
NO_COMMON_RANGE = warning("""replica-no-common-range
    Brokers {one} and {other} hold no offset in common, so their records cannot be compared: the copy of broker
        {earlier} ends at {end}, that of broker {later} begins at {start}.
    One log ends before the other begins. The bytes do not show whether they belong to one lineage.
    A replica was offline longer than the retention time, or it was started with another disk; or brokers that ran were
        copied one after the other, with a short retention.
    Compare their epochs with `kctl epoch compare`; older copies or remote segments could settle it.""")
TOPIC_RECREATED = warning("""replica-topic-recreated
    Copies of {partition} are of different topics of that name: {ids}.
    A topic that is deleted and created again starts an empty log; its offsets are unrelated to those of the old topic.
    The topic was created again while a broker was offline, or the evidence mixes copies of different times.
    Compare copies of one topic id; the verdict is unknown until then.""")
SAME_UNDER_TWO_IDS = error("""replica-same-under-two-topic-ids
    Copies of {partition} have different topic ids, and hold the same batches up to offset {end}: {ids}.
    Offsets, epochs and CRCs agree: the copies are of one log, and none is stale. Brokers refuse each other's fetches
        (INCONSISTENT_TOPIC_ID, 2.8 and later), so that followers stay behind.
    Two controllers gave the topic an id each, or an old client rewrote its znode (KAFKA-12835, KAFKA-14190).
    Keep the id that the cluster's metadata have: remove `partition.metadata` from the folders with another one and restart
        their brokers, which write it anew. Delete no folder.""")
TOPIC_OF_BEFORE = info("""replica-topic-of-before
    At moment {moment!r} {partition} was of an earlier topic of that name: {ids}.
    The topic was deleted and created again between the moments. The new topic does not contain the old one's records.
    Somebody deleted the topic and created one of the same name.
    Nothing; to examine the old topic, give only the earlier moment.""")
SENT_AGAIN = info("""replica-sent-again
    Broker {broker_id} held records from {start} to {end} that the current log has at other offsets: producers sent them
        again.
    A leader stopped before any follower had fetched them. Producers got no answer and sent the same records, with the
        same timestamps, to the next leader.
    A leader failed or was replaced under load.
    Nothing.""")
TAIL_OF_HANDOVER = info("""replica-tail-of-handover
    When broker {leader} took over {partition} in epoch {epoch}, broker {broker_id} had more records from offset {start}
        on ({seen_in}); they were dropped, and the evidence does not show that they were committed.
    A leader that stops can hold records that no follower has fetched yet. They were never committed: producers with
        acks=all were told to send them again, those with acks=0 or acks=1 lost them.
    A clean change of leader under load: a controlled shutdown, a preferred election or a reassignment.
    Nothing, unless producers use acks=0 or acks=1: then give `--acks 1`, and the records count as lost.""")
CLUSTERS_MIXED = warning("""replica-clusters-mixed
    Copies of {partition} are from different clusters: {ids}.
    Partitions of the same name on different clusters are unrelated.
    Evidence of several clusters was gathered into one folder.
    Give the folders of one cluster at a time; the verdict is unknown until then.""")
COPY_MISSING = info("""replica-copy-missing
    Broker {broker_id} is assigned a replica of {partition}, but the evidence has no copy of it.
    The verdict covers the copies in the evidence.
    The broker's directory was not copied, or the broker had not created the replica yet.
    Copy that broker's log directory too, before it follows another leader.""")
INCOMPLETE_COPY = warning("""replica-incomplete-copy
    Broker {broker_id}'s copy ends at offset {end}, and its {checkpoint} says {said}.
    The copy is incomplete, or the broker lost the tail of its log.
    The copy was interrupted, or power failed before the tail was on the disk.
    Copy the directory again; if it ends at the same offset, that broker lost the tail: see `kctl replica loss`.""")
COPY_UNREADABLE = error("""replica-copy-unreadable
    Part of broker {broker_id}'s copy was not compared: {reason}.
    The verdict covers the rest.
    Missing permission, a failing disk, a file that was removed, or a batch that cannot be decoded.
    Give kctl a readable copy.""")
LEADER_UNKNOWN = warning("""replica-leader-unknown
    {partition} has copies that contradict each other, and the evidence does not show which broker leads.
    Without the current leader it is unknown which records are lost.
    No znode export, no leader epochs in the batches, and no `--leader`.
    Give a znode export of the last moment, brokers' logs, or `--leader ID`.""")
PRESENT_INCOMPLETE = warning("""replica-present-incomplete
    The current leader's copy of {partition} ends at {end}; an earlier copy goes up to {said} in the same epoch.
    A leader does not shorten its log within an epoch, so the later copy is probably incomplete.
    The copy was interrupted, or a disk lost the tail without an election.
    Copy the leader's directory again; kctl does not call records beyond its end lost.""")
PREFIX_LOST = warning("""replica-leader-copy-missing
    Broker {broker_id} leads {partition}, but the evidence has no copy of its log; kctl used the copy of broker {instead}.
    The current lineage was read from another broker than the leader; that broker may be behind.
    The leader's directory was not copied.
    Copy the leader's log directory.""")
UNDECIDED_TAIL = info("""replica-undecided-tail
    Broker {broker_id} holds offsets [{start}, {end}) that the leader's copy lacks; the evidence does not show that they
        are lost.
    Copies of a running cluster are taken one after the other; the leader may hold these offsets by now.
    The leader's copy was taken first.
    Copy again, or give brokers' logs and a znode export of the same time.""")
UNCLEAN_COST_UNKNOWN = warning("""replica-unclean-cost-unknown
    Broker {leader} became leader of {partition} in epoch {epoch} by an unclean election, at {start}; the ISR was {isr}
        ({where}). It is unknown whether records were dropped: the evidence has no log of these brokers and no earlier
        copy of their disks.
    The disks of the ISR keep the records that an unclean election drops until these brokers follow the new leader;
        their server logs then say how much they truncated.
    The last in-sync replica was down, and `unclean.leader.election.enable` or an operator allowed the election.
    Add the server logs of these brokers, or a copy of their disks from before they came back.""")
TAIL_UNPROVEN = info("""replica-tail-unproven
    {when} each member of the ISR [{isr}] had ended without a shutdown, or begun with a new log ({where}). If their hosts lost power or a disk, committed records may be
        gone from every copy, and nothing in the evidence tells.
    Kafka acknowledges records before they are on a disk, and counts on another replica to keep them. Here none ran all
        along.
    All brokers of the ISR were killed, their hosts failed, or their disks were replaced, before one of them led again.
    Find out whether these hosts lost power (`last -x`, the kernel's log): a killed process alone loses nothing. Offsets of
        consumers and answers to producers beyond this offset show a loss.""")
STRAY_RECORDS = info("""replica-stray-records
    {name} of broker {broker_id} holds {records:record} that the present log of {partition} lacks: {records:it is|they are} of another topic of
        this name, and nothing in the evidence says that somebody deleted it.
    A broker of 3.6 and later renames a folder that its metadata do not name to `-stray` at its start. Nothing serves its
        records any more.
    The topic was deleted and created again while the broker was down, or the metadata were lost and topics made anew.
    If nobody deleted the topic, copy the folder before anybody removes it: `kctl segment dump --records` reads it, and a
        producer can write its records to the topic again.""")
MOMENTS_UNDATED = info("""replica-moments-undated
    The order of the moments {moments} is unknown: kctl treats the longest copies of each partition as the latest.
        Records removed between two moments look the same as records not written yet.
    Moments are ordered by the zxids of their znode exports, otherwise by the timestamps of batches; messages of format
        0 have none.
    Copies of brokers before 0.10 without znode exports.
    Name the moments in their order: `--moment NAME=FOLDER`, oldest first.""")
NOT_RECOVERED = error("""replica-not-recovered
    {missing:,} of {records:lost record} {missing:is|are} not in {target}.
    Neither a record with the header that a recovery writes nor an equal record was found in the present log.
    The records were not recovered, or retention or compaction has removed them since.
    Run `kctl replica recover` on the same evidence; it writes what is not there.""")
