"""What can be wrong with tiered storage: metadata records, objects, and both against the local logs."""

from kctl.findings import error, info, warning

# --- the metadata log ---------------------------------------------------------------------------------

METADATA_UNREADABLE = error("""remote-metadata-unreadable
    The metadata log cannot be read: {reason}.
    Records of this metadata partition are missing from all that follows.
    Missing permission, a failing disk, or a file that went away.
    Give kctl a copy that it can read, or another replica of the metadata partition.""")
METADATA_DAMAGED = error("""remote-metadata-damaged
    Bytes of the metadata log are not a sound batch: {reason}.
    Records here are lost unless another replica of the metadata partition holds them.
    A failing disk, a torn write or a hand edit.
    Add another replica of `__remote_log_metadata` to the evidence; `kctl segment verify` names the range.""")
METADATA_REPLICAS_DIFFER = error("""remote-metadata-replicas-differ
    {count} batches of the metadata partition are not those of {other}, which was taken.
    Brokers that read this replica would know other remote segments.
    An unclean election of the metadata partition, or damage that a CRC does not show.
    Look at both with `kctl replica compare`; audit the objects before a deletion trusts the metadata.""")
METADATA_RECORD_BAD = error("""remote-metadata-record-bad
    No broker can read this record: {reason}.
    A broker's metadata consumer fails on it: no later record of this metadata partition is seen.
    Something other than a broker wrote to the topic, or a version that did not exist yet.
    Find the writer; the record can only be removed by deleting it from the topic.""")
METADATA_LAYOUTS_MIXED = warning("""remote-metadata-layouts-mixed
    {old} records have the layout of 3.0 to 3.5, {new} that of 3.6 and later.
    Neither version reads the other's records: custom metadata was inserted without a new version number.
    A rolling upgrade from 3.5 or earlier, or a plug-in built against it.
    Expect brokers of one side to be blind to the other's segments until the metadata topic is made anew.""")
METADATA_WRONG_PARTITION = error("""remote-metadata-wrong-partition
    Records of the partition lie in metadata partition {found}, where {partitions} partitions give {expected}{kip}.
    Brokers look for them in the other metadata partition and do not see these segments.
    The number of partitions of `__remote_log_metadata` was changed, or the writer follows the text of KIP-405.
    Bring the partition count back to what it was when the records were written.""")
METADATA_STATE_BACKWARDS = warning("""remote-metadata-state-illegal
    The record asks for {after} where the segment is in {before}; brokers drop it.
    3.7 and later log an error and go on, 3.6 and earlier throw.
    Two leaders at work on one segment, records replayed, or a plug-in.
    Compare `broker_id` and times of the segment's records: `kctl remote format --segment ID`.""")
METADATA_UNKNOWN_SEGMENT = warning("""remote-metadata-update-unknown
    {after} for a segment that no earlier record starts, or that is deleted already.
    Brokers drop it. Objects of such a segment are found by nobody.
    The record that started the copy was lost or lies in another metadata partition.
    Look for objects of that segment with `kctl remote audit --tier`.""")
METADATA_CUSTOM_WIPED = warning("""remote-custom-metadata-wiped
    The record has no custom metadata where the segment had {size} bytes: an update replaces it.
    A storage plug-in that finds its objects through it can no longer delete them.
    Not written by the broker's remote log manager, which repeats it: a plug-in or another writer.
    Find who wrote the record; the bytes are still in the segment's earlier record.""")
TOPIC_IDS_DIFFER = info("""remote-topic-ids-differ
    The name stands for {count} topic ids: {ids}.
    A topic was deleted and made again; each id has its own remote log.
    Normal, unless segments of the older ids are left.
    Nothing, as long as no finding names leftovers of a deleted topic.""")

# --- the store ----------------------------------------------------------------------------------------

TIER_UNREADABLE = error("""tier-unreadable
    The object or folder cannot be read from the tier: {reason}.
    What lies here was not examined; everything else was.
    Missing permission, a failing store, or something that went away while it was listed.
    Look at the store's own logs, then run the audit again.""")

# --- metadata against local logs ----------------------------------------------------------------------

COPY_FAILED = warning("""remote-copy-failed
    The copy was started {when} and never finished{retried}; {left}.
    What was copied of it is not readable, and no broker up to 3.9 removes it before retention would.
    The store failed, the leader was stopped during the copy, or the plug-in's metadata were too large.
    Remove the objects (`kctl remote audit --plan-cleanup`); if copies keep failing, look at the leader's log.""")
COPY_UNFINISHED = info("""remote-copy-unfinished
    The copy was started {when} and had not finished when the evidence was taken; {left}.
    Nothing, if the leader was at work on it.
    Evidence of a running broker, or a leader that stopped during the copy.
    Look again later; a newer copy of the same offsets means that this one failed.""")
DELETION_INTERRUPTED = warning("""remote-deletion-interrupted
    The deletion was started {when} and never finished; {left}.
    Consumers no longer read the segment; its objects stay until the leader tries again.
    The leader changed, or the store failed, between the two records.
    The next leader tries again by the same rules; of a deleted topic nobody does: remove the objects.""")
DELETION_UNFINISHED = info("""remote-deletion-unfinished
    The deletion was started {when} and had not finished when the evidence was taken.
    Nothing, if the leader was at work on it.
    Evidence of a running broker.
    Look again later.""")
PARTITION_DELETION = warning("""remote-partition-deletion-unfinished
    The deletion of the partition's remote log is recorded as {state}; {count} segments ({size} bytes) are left.
    No shipped broker writes or acts on such records: a plug-in does.
    A plug-in that deletes partitions in steps, interrupted.
    Ask the plug-in; remove the objects if the topic is gone.""")
SEGMENTS_OVERLAP = info("""remote-segments-overlap
    Offsets [{from_offset}, {to_offset}) of the segment are in other finished segments of the same epochs as well.
    Normal after a leader change: replicas roll segments at other offsets.
    A new leader copies whole segments from where the tier ends.
    Nothing; the bytes are counted twice.""")
SEGMENT_HIDDEN = warning("""remote-segment-hidden
    Offsets [{from_offset}, {to_offset}) of the segment are found by no lookup: a later, shorter copy took its
        place{invisible}.
    Brokers look at the nearest start only; a segment displaced at its own start is not seen by retention either.
    Overlapping copies of two leaders, finished in an unlucky order (KAFKA-15168).
    Check that another segment serves these offsets (`kctl remote lookup`); no broker will remove the objects.""")
GAP = error("""remote-gap
    No remote segment of the present lineage serves offsets [{from_offset}, {to_offset}) of epoch {epoch}.
    Consumers that read these offsets get OFFSET_OUT_OF_RANGE; the local copy was deleted.
    Metadata lost or written to the wrong partition, overlapping copies, or local segments deleted before they were
        copied.
    Look for the offsets in other replicas and in orphaned objects before they are removed.""")
LOCAL_DELETED = error("""remote-local-deleted-before-copy
    The local log begins at {local_start}, the tier ends at {highest}: offsets [{from_offset}, {to_offset}) are in
        neither.
    The records are gone from this replica and were never readable in the tier.
    Copying was disabled or the highest copied offset was taken from another branch (unclean election, 3.6).
    Look for the offsets in other replicas' local logs: `kctl replica compare`.""")
OUTSIDE_LINEAGE = warning("""remote-segment-outside-lineage
    The segment is not part of the log that leads now: {why}; {size} bytes{goes}.
    Its records were replaced by those of another leader; consumers do not get them. Retention leaves it alone until all
        its epochs are older than the leader's first.
    An unclean election, or records lost with an unflushed tail.
    Keep it while you still look for lost records (`kctl replica loss`); then it may go.""")
UNREFERENCED = info("""remote-segment-unreferenced
    All epochs of the segment are older than the leader's first; its next run deletes it ({size} bytes).
    The log start moved past the segment.
    Retention, DeleteRecords, or an epoch cache that was cut.
    Nothing; if it stays for long, expiration does not run on the leader.""")
RETENTION_OVERDUE = warning("""remote-retention-overdue
    By {why} the segment should have gone {overdue} ago ({size} bytes).
    The leader's expiration task does not get to it.
    The task is blocked by a failing store, a segment being copied, or a leader without the task.
    Look for errors of RLMExpirationTask in the leader's log.""")
RETENTION_DUE = info("""remote-retention-due
    By {why} the segment goes with the leader's next run ({size} bytes).
    Nothing: the task runs at intervals.
    Retention.
    Nothing.""")
LOG_START_STALE = info("""remote-log-start-stale
    The checkpoint says that the log starts at {written}, the first remote segment starts at {remote}; what lay between
        was deleted.
    The checkpoint is written once a minute; a new leader takes the start of the first remote segment.
    The broker stopped before it wrote the checkpoint.
    Nothing.""")
LOG_START_BEHIND = info("""remote-log-start-passed
    The log starts at {start}, behind the segment's last offset; the leader's next run deletes it ({size} bytes).
    No consumer reads it any more.
    DeleteRecords or retention moved the log start.
    Nothing; if it stays for long, expiration does not run on the leader.""")
TOPIC_DELETED = warning("""remote-topic-deleted
    The topic with this id does not exist any more; {count} segments ({size} bytes) of the partition are left.
    Nobody deletes them: the partition has no leader.
    The topic was deleted while the store failed, or its leader stopped during the deletion.
    Remove the objects: `kctl remote audit --plan-cleanup FILE` lists them.""")
TOPIC_UNKNOWN = info("""remote-topic-unknown
    No replica of this partition and no znode is in the evidence: metadata were held against objects alone.
    Whether the topic still exists cannot be told.
    Evidence of some brokers only.
    Add the log directories of its replicas, or a znode export.""")
LEADER_ABSENT = info("""remote-leader-absent
    The leader is broker {leader}, whose log is not in the evidence; broker {broker} stands for it.
    Findings about lineage and gaps that depend on the leader's end were left out.
    Evidence of some brokers only.
    Add the leader's log directory.""")
SEEDED_SNAPSHOT = info("""remote-seeded-snapshot-empty
    The replica was built from the tier and its producer snapshot at offset {offset} has no producers, that in the tier
        has {count}.
    If this replica leads before they write again, producers with these ids are not known to it: sequences start anew,
        duplicates of their last batches are not noticed.
    3.9 deletes the downloaded snapshot while it loads it.
    Nothing; producers that are at work fill it again.""")
CACHE_LEFTOVER = info("""remote-index-cache-leftover
    A left-over of the cache of remote indexes.
    Brokers match such names wrongly and never remove them.
    A broker that stopped while it fetched or removed an index (3.6 and later).
    It may be deleted while the broker is stopped.""")
CACHED_INDEX_DIFFERS = warning("""remote-index-cache-differs
    The broker's cached copy of {what} has {held} bytes and that in the tier {stored}; they differ from byte {at} on.
    The broker looks up offsets, timestamps or aborted transactions of the segment in a copy that is not the tier's.
    The cached file or the object was damaged or written over after the broker fetched it.
    If no finding names the object, delete the cached file while the broker is stopped: it is fetched again.""")
LOCAL_SNAPSHOT_BAD = warning("""remote-log-snapshot-bad
    The file that brokers up to 3.5 keep of a partition's remote segments cannot be read: {reason}.
    The broker's metadata manager fails on it when it starts.
    A stop while it was written, or a longer left-over of an earlier writing.
    Delete it: it is made anew from the metadata topic.""")
LOCAL_SNAPSHOT_DIFFERS = warning("""remote-log-snapshot-differs
    The snapshot holds a segment that no metadata record up to its offset {offset} has.
    The broker believes in a segment that the metadata topic does not know.
    The metadata topic was made anew, or records of it were lost.
    Delete the file if the metadata topic is right.""")

# --- objects ------------------------------------------------------------------------------------------

OBJECT_MISSING = error("""remote-object-missing
    {what} of the segment {are} not in the tier ({size} bytes of log).
    Reads of these offsets fail, or followers cannot build their state, or timestamps and aborted transactions are not
        found.
    Deleted by hand, by the store's own life cycle rules, or a copy that was recorded before it was whole.
    Restore the object from the store's versions or a replica that still has the segment; indexes can be rebuilt from
        the log.""")
OBJECT_SIZE = error("""remote-object-size
    The log has {found} bytes in the tier where the metadata say {expected}.
    Records are missing at its end, or bytes that are none follow it.
    A copy cut short, an object written over, or a store that lost bytes.
    Compare with a replica's segment; `first missing offset` is where the readable part ends.""")
OBJECT_MISNAMED = error("""remote-object-misnamed
    An object of the segment lies under another name than {expected}.
    Brokers ask for the name made from the metadata and do not find it.
    Renamed or copied by hand.
    Give it its right name.""")
OBJECT_ORPHAN = warning("""remote-object-orphan
    {count} objects ({size} bytes) belong to a segment that no metadata record names.
    Nobody reads them and nobody deletes them.
    Copied by hand, metadata lost, or a topic of another cluster in the same tier.
    Make sure that no other cluster uses the tier, then remove them (`--plan-cleanup FILE` lists them).""")
SEGMENT_FORGOTTEN = error("""remote-segment-forgotten
    {count} objects ({size} bytes) belong to a segment that the metadata of moment {moment!r} name and those of now do
        not.
    Nobody reads the segment any more; its objects may be the only copy of its records.
    The last disk with the metadata partition was lost or wiped, or the metadata topic was deleted.
    Keep the objects, and look for what was lost with it (`kctl replica loss`).""")
OBJECT_LEFT = warning("""remote-object-left
    {count} objects ({size} bytes) are left of a segment whose deletion is recorded as finished.
    Nobody reads them and nobody deletes them.
    The store said that it deleted them and did not, or they were restored.
    Remove them (`--plan-cleanup FILE` lists them).""")
OBJECT_UNKNOWN = warning("""remote-object-unknown
    The object does not belong to the tier's layout ({size} bytes).
    No broker reads or deletes it.
    A left-over of an upload, or something that is not Kafka's.
    Find out whose it is.""")
OBJECT_VANISHED = warning("""remote-object-vanished
    The object was listed but no longer exists.
    Its content was not examined.
    A broker deleted the segment while it was examined.
    Run the audit again; metadata read before a deletion do not know of it.""")
LOG_OFFSETS = error("""remote-log-offsets
    The log holds {found} where the metadata say [{from_offset}, {to_offset}).
    Consumers get records of other offsets, or none.
    Objects of two segments exchanged, a copy cut short, or a base offset that changed.
    Take the segment from a replica that still has it, or put the objects where they belong.""")
LOG_EPOCHS = error("""remote-log-epochs
    The batch at offset {offset} carries leader epoch {found}, the metadata say {expected}.
    A follower that builds its state from here, or a consumer that checks its position, is misled.
    The field is not covered by the batch's CRC: a flipped bit, or the log of another branch.
    Compare with a replica; the records themselves may be sound.""")
LOG_TIMESTAMP = error("""remote-log-timestamp
    The newest timestamp in the log is {found}, the metadata say {expected}.
    The log is probably not the one that was copied, but another partition's or another segment's.
    Objects exchanged or written over.
    Compare the records with a replica's; look for the other half of an exchange in the findings.""")
LOG_EXCHANGED = error("""remote-log-exchanged
    The log is that of segment {other} of {partition}: its newest timestamp is {found}, as the metadata say of that one;
        of this one they say {expected}.
    Consumers get another partition's or another segment's records, each of them sound.
    Two objects of equal offsets and size exchanged, or one written over the other.
    Give both objects their right names; where one was written over, restore it from the store's versions or a replica.""")
LOCAL_DIFFERS = error("""remote-log-differs-from-local
    {count} batches between offsets {first} and {last} are not those of broker {broker}'s local log.
    Consumers get other records from the tier than the leader holds.
    An object written over, exchanged, or damaged behind a CRC that fits.
    Compare the local log with other replicas (`kctl replica compare`); restore the object from a replica in sync.""")
EPOCHS_OBJECT = error("""remote-leader-epochs-differ
    The leader epochs stored with the segment are not its own: {why}.
    A follower that builds its state from this segment takes them over, and truncates by them.
    The object was written over or belongs to another segment.
    Write it anew: `0`, the number of entries, then the leader's epochs up to the segment's end.""")
SNAPSHOT_OBJECT = error("""remote-producer-snapshot-bad
    The producer snapshot stored with the segment is not right: {why}. On a replica it is `{name}`.
    A follower that builds its state from this segment fails, or does not know its producers.
    A damaged object, or one of another segment.
    Take the snapshot from a replica, or rebuild it with `kctl segment rebuild`.""")
TRANSACTIONS_OBJECT = error("""remote-transaction-index-wrong
    The index of aborted transactions stored with the segment is not right: {why}.
    read_committed consumers get records of aborted transactions, or lose committed ones.
    A damaged object, or one of another segment.
    Rebuild it from the log with `kctl segment rebuild`.""")
OBJECT_MALFORMED = error("""remote-object-malformed
    The object does not have the layout of {what}: {reason}.
    Brokers cannot use it.
    A damaged object, or one of another kind under this name.
    Restore it, or make it anew from the log.""")
OBJECT_ENCRYPTED = info("""remote-object-encrypted
    The segment is encrypted; its content was not examined.
    Only names and sizes were examined.
    The storage plug-in encrypts.
    Nothing.""")
METADATA_ABSENT = info("""remote-metadata-absent
    {count} objects ({size} bytes) of the partition could not be judged: its metadata partition is not in the evidence, or was not read whole.
    They may be in use.
    Evidence of some brokers only.
    Add a replica of every partition of `__remote_log_metadata`.""")
