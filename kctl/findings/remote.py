"""What can be wrong with tiered storage: metadata records, objects, and both against the local logs."""

from kctl.findings import error, info, warning

# --- the metadata log ---------------------------------------------------------------------------------

METADATA_UNREADABLE = error("""remote-metadata-unreadable
    The metadata log cannot be read: {reason}.
    All results lack the records of this metadata partition.
    Missing permission, a failing disk, or a file that was removed.
    Give kctl a readable copy, or another replica of the metadata partition.""")
METADATA_DAMAGED = error("""remote-metadata-damaged
    Bytes of the metadata log are not a sound batch: {reason}.
    Records here are lost unless another replica of the metadata partition holds them.
    A failing disk, a torn write or a hand edit.
    Add another replica of `__remote_log_metadata` to the evidence; `kctl segment verify` names the range.""")
METADATA_REPLICAS_DIFFER = error("""remote-metadata-replicas-differ
    {count:batch/batches} of the metadata partition {count:differs|differ} from {count:that|those} of {other}, which kctl used.
    A broker that reads this replica knows other remote segments.
    An unclean election of the metadata partition, or damage that no CRC covers.
    Compare both with `kctl replica compare`; audit the objects before you delete anything based on the metadata.""")
METADATA_RECORD_BAD = error("""remote-metadata-record-bad
    No broker can read this record: {reason}.
    A broker's metadata consumer fails on it and reads no later record of this metadata partition.
    Something other than a broker wrote to the topic, or a version that kctl does not know.
    Find the writer; delete the record from the topic.""")
METADATA_LAYOUTS_MIXED = warning("""remote-metadata-layouts-mixed
    {old:record} {old:has|have} the layout of 3.0 to 3.5, {new} that of 3.6 and later.
    Neither version reads the other's records: custom metadata was added without a new version number.
    A rolling upgrade from 3.5 or earlier, or a plug-in built against it.
    Brokers of one version do not see the segments of the other until the metadata topic is created again.""")
METADATA_WRONG_PARTITION = error("""remote-metadata-wrong-partition
    Records of the partition are in metadata partition {found}; with {partitions:partition} they belong in {expected}{kip}.
    Brokers look for them in the other metadata partition and do not see these segments.
    The number of partitions of `__remote_log_metadata` was changed, or the writer follows the text of KIP-405.
    Restore the partition count that the topic had when the records were written.""")
METADATA_STATE_BACKWARDS = warning("""remote-metadata-state-illegal
    The record sets state {after} while the segment is in {before}; brokers drop the record.
    3.7 and later log an error and continue, 3.6 and earlier throw.
    Two leaders changed one segment, records were replayed, or a plug-in wrote the record.
    Compare `broker_id` and times of the segment's records: `kctl remote format --segment ID`.""")
METADATA_UNKNOWN_SEGMENT = warning("""remote-metadata-update-unknown
    {after} is for a segment without an earlier record, or one that is already deleted.
    Brokers drop the record and do not find the objects of such a segment.
    The record that started the copy was lost or is in another metadata partition.
    Look for objects of that segment with `kctl remote audit --tier`.""")
METADATA_CUSTOM_WIPED = warning("""remote-custom-metadata-wiped
    The record has no custom metadata and replaces the segment's {size} bytes of it.
    A storage plug-in that needs custom metadata to find its objects can no longer delete them.
    A plug-in or another program wrote the record; the broker's remote log manager repeats custom metadata.
    Find the writer; an earlier record of the segment still has the bytes.""")
TOPIC_IDS_DIFFER = info("""remote-topic-ids-differ
    The topic name has {count} topic ids: {ids}.
    The topic was deleted and created again; each id has its own remote log.
    Normal, unless segments of the older ids are left.
    Nothing, unless a finding names leftovers of a deleted topic.""")

# --- the store ----------------------------------------------------------------------------------------

TIER_UNREADABLE = error("""tier-unreadable
    The object or folder cannot be read from the tier: {reason}.
    This object or folder was not examined; everything else was.
    Missing permission, a failing store, or an object that was removed while it was listed.
    Check the store's own logs, then run the audit again.""")

# --- metadata against local logs ----------------------------------------------------------------------

COPIED_AGAIN = ", and the same offsets were copied again"
COPY_FAILED = warning("""remote-copy-failed
    The copy was started {when} and never finished{retried}; {left}.
    The copied part is not readable, and no broker up to 3.9 removes it before retention does.
    The store failed, the leader was stopped during the copy, or the plug-in's metadata were too large.
    `kctl remote audit --plan-cleanup` lists what can be removed, where anything is left; if copies keep failing, look
        at the leader's log.""")
COPY_UNFINISHED = info("""remote-copy-unfinished
    The copy was started {when} and had not finished when the evidence was taken; {left}.
    This is normal if the leader was copying the segment.
    Evidence of a running broker, or a leader that stopped during the copy.
    Check again later; a newer copy of the same offsets means that this one failed.""")
DELETION_INTERRUPTED = warning("""remote-deletion-interrupted
    The deletion was started {when} and never finished; {left}.
    Consumers no longer read the segment; its objects stay until the leader tries again.
    The leader changed, or the store failed, between the two records.
    The next leader tries again by the same rules. If the topic is deleted, no broker does: remove the objects.""")
DELETION_UNFINISHED = info("""remote-deletion-unfinished
    The deletion was started {when} and had not finished when the evidence was taken.
    This is normal if the leader was deleting the segment.
    Evidence of a running broker.
    Check again later.""")
PARTITION_DELETION = warning("""remote-partition-deletion-unfinished
    The deletion of the partition's remote log is recorded as {state}; {count:segment} ({size:byte}) {count:is|are} left.
    Apache Kafka's brokers neither write nor act on such records; a plug-in does.
    A plug-in that deletes partitions in steps was interrupted.
    Check the plug-in; remove the objects if the topic is gone.""")
SEGMENTS_OVERLAP = info("""remote-segments-overlap
    Offsets [{from_offset}, {to_offset}) of the segment are also in other finished segments of the same epochs.
    Normal after a leader change: replicas roll segments at different offsets.
    A new leader copies whole segments from the end of the tier.
    Nothing; the bytes count twice.""")
SEGMENT_HIDDEN = warning("""remote-segment-hidden
    No lookup finds offsets [{from_offset}, {to_offset}) of the segment: a later, shorter copy took its
        place{invisible}.
    Brokers use only the nearest start offset; retention does not see a segment replaced at its own start offset.
    Overlapping copies of two leaders, finished in an unlucky order (KAFKA-15168).
    Check with `kctl remote lookup` that another segment serves these offsets; no broker removes the objects.""")
GAP = error("""remote-gap
    No remote segment of the present lineage serves offsets [{from_offset}, {to_offset}) of epoch {epoch}.
    Consumers that read these offsets get OFFSET_OUT_OF_RANGE; the local copy was deleted.
    Metadata lost or written to the wrong partition, overlapping copies, or local segments deleted before they were
        copied.
    Look for the offsets in other replicas and in orphaned objects before you remove those.""")
LOCAL_DELETED = error("""remote-local-deleted-before-copy
    The local log begins at {local_start} and the tier ends at {highest}: neither has offsets
        [{from_offset}, {to_offset}).
    The records are gone from this replica and were never readable in the tier.
    Copying was disabled, or the broker used the highest copied offset of another branch (unclean election, 3.6).
    Look for the offsets in other replicas' local logs: `kctl replica compare`.""")
OUTSIDE_LINEAGE = warning("""remote-segment-outside-lineage
    The segment is not part of the current leader's log: {why}; {size} bytes{goes}.
    Another leader's records replaced its records; consumers do not get them. Retention keeps it until all its epochs
        are older than the leader's first.
    An unclean election, or records lost with an unflushed tail.
    Keep it while you look for lost records (`kctl replica loss`); after that it can be deleted.""")
UNREFERENCED = info("""remote-segment-unreferenced
    All epochs of the segment are older than the leader's first; the leader's next run deletes it ({size} bytes).
    The log start moved past the segment.
    Retention, DeleteRecords, or a truncated epoch cache.
    Nothing; if it stays for long, expiration does not run on the leader.""")
RETENTION_OVERDUE = warning("""remote-retention-overdue
    By {why} the segment should have been deleted {overdue} ago ({size} bytes).
    The leader's expiration task does not delete it.
    A failing store or a running copy blocks the task, or the leader does not run it.
    Look for errors of RLMExpirationTask in the leader's log.""")
RETENTION_DUE = info("""remote-retention-due
    By {why} the leader's next run deletes the segment ({size} bytes).
    Normal: the task runs at intervals.
    Retention.
    Nothing.""")
LOG_START_STALE = info("""remote-log-start-stale
    The checkpoint has log start offset {written}, the first remote segment starts at {remote}; the records between
        were deleted.
    The checkpoint is written once a minute; a new leader uses the start of the first remote segment.
    The broker stopped before it wrote the checkpoint.
    Nothing.""")
LOG_START_BEHIND = info("""remote-log-start-passed
    The log starts at {start}, after the segment's last offset; the leader's next run deletes it ({size} bytes).
    Consumers no longer read it.
    DeleteRecords or retention moved the log start.
    Nothing; if it stays for long, expiration does not run on the leader.""")
TOPIC_DELETED = warning("""remote-topic-deleted
    The topic with this id no longer exists; {count:segment} ({size:byte}) of the partition {count:is|are} left.
    No broker deletes them, because the partition has no leader.
    The topic was deleted while the store failed, or its leader stopped during the deletion.
    Remove the objects: `kctl remote audit --plan-cleanup FILE` lists them.""")
TOPIC_UNKNOWN = info("""remote-topic-unknown
    The evidence has no replica of this partition and no znodes: metadata were compared with objects only.
    It is unknown whether the topic still exists.
    The evidence covers only some brokers.
    Add the log directories of its replicas, or a znode export.""")
LEADER_ABSENT = info("""remote-leader-absent
    The evidence lacks the log of the leader, broker {leader}; kctl used the log of broker {broker} instead.
    Findings about lineage and gaps that depend on the leader's log end were omitted.
    The evidence covers only some brokers.
    Add the leader's log directory.""")
SEEDED_SNAPSHOT = info("""remote-seeded-snapshot-empty
    The replica was built from the tier; its producer snapshot at offset {offset} has no producers, but the one in the
        tier has {count}.
    If this replica leads before these producers write again, it does not know them: sequences start again, and it
        accepts duplicates of their last batches.
    3.9 deletes the downloaded snapshot while it loads it.
    Nothing; active producers fill it again.""")
CACHE_LEFTOVER = info("""remote-index-cache-leftover
    The file is a leftover of the cache of remote indexes.
    Brokers do not recognize such names and never remove these files.
    The broker stopped while it fetched or removed an index (3.6 and later).
    Delete the file while the broker is stopped.""")
CACHED_INDEX_DIFFERS = warning("""remote-index-cache-differs
    The broker's cached copy of {what} has {held} bytes, the object in the tier {stored}; they differ from byte {at} on.
    The broker looks up offsets, timestamps or aborted transactions of the segment in a wrong copy.
    The cached file or the object was damaged or overwritten after the broker fetched it.
    If no finding names the object, delete the cached file while the broker is stopped: the broker fetches it again.""")
LOCAL_SNAPSHOT_BAD = warning("""remote-log-snapshot-bad
    The list of remote segments that brokers up to 3.5 keep for a partition cannot be read: {reason}.
    The broker's metadata manager fails on it when it starts.
    The broker stopped while it wrote the file, or the end of an earlier, longer version is left.
    Delete the file: the broker builds it again from the metadata topic.""")
LOCAL_SNAPSHOT_DIFFERS = warning("""remote-log-snapshot-differs
    The snapshot lists a segment that no metadata record up to its offset {offset} contains.
    The broker knows a segment that the metadata topic does not know.
    The metadata topic was created again, or some of its records were lost.
    Delete the file if the metadata topic is correct.""")

# --- objects ------------------------------------------------------------------------------------------

OBJECT_MISSING = error("""remote-object-missing
    {what} of the segment {are} not in the tier ({size} bytes of log).
    Reads of these offsets fail, or followers cannot build their state, or timestamps and aborted transactions are not
        found.
    The object was deleted by hand or by the store's life cycle rules, or the copy was recorded before it was complete.
    Restore the object from the store's versions or from a replica that still has the segment; indexes can be rebuilt
        from the log.""")
OBJECT_SIZE = error("""remote-object-size
    The log has {found} bytes in the tier; the metadata say {expected}.
    Records are missing at its end, or other bytes follow them.
    An incomplete copy, an overwritten object, or a store that lost bytes.
    Compare with a replica's segment; the readable part ends at `first missing offset`.""")
OBJECT_MISNAMED = error("""remote-object-misnamed
    An object of the segment has another name than {expected}.
    Brokers build the name from the metadata and do not find the object.
    The object was renamed or copied by hand.
    Rename it to the expected name.""")
OBJECT_ORPHAN = warning("""remote-object-orphan
    {count:object} ({size:byte}) {count:belongs|belong} to a segment that no metadata record names.
    No broker reads or deletes them.
    Objects copied by hand, lost metadata, or a topic of another cluster in the same tier.
    Make sure that no other cluster uses the tier, then remove them (`--plan-cleanup FILE` lists them).""")
SEGMENT_FORGOTTEN = error("""remote-segment-forgotten
    {count:object} ({size:byte}) {count:belongs|belong} to a segment that the metadata of moment {moment!r} list, but the current
        metadata do not.
    No broker reads the segment any more; its objects may be the only copy of its records.
    The last disk with the metadata partition was lost or wiped, or the metadata topic was deleted.
    Keep the objects, and look for lost records with `kctl replica loss`.""")
OBJECT_LEFT = warning("""remote-object-left
    {count:object} ({size:byte}) {count:remains|remain} of a segment whose deletion is recorded as finished.
    No broker reads or deletes them.
    The store reported the deletion but did not delete them, or they were restored.
    Remove them (`--plan-cleanup FILE` lists them).""")
OBJECT_UNKNOWN = warning("""remote-object-unknown
    The object does not belong to the tier's layout ({size} bytes).
    No broker reads or deletes it.
    A leftover of an upload, or an object of another program.
    Find out what wrote it.""")
OBJECT_VANISHED = warning("""remote-object-vanished
    The object was listed but no longer exists.
    Its content was not examined.
    A broker deleted the segment during the audit.
    Run the audit again; the metadata were read before the deletion.""")
LOG_OFFSETS = error("""remote-log-offsets
    The log holds {found}; the metadata say [{from_offset}, {to_offset}).
    Consumers get records of other offsets, or none.
    Objects of two segments were swapped, a copy is incomplete, or a base offset changed.
    Restore the segment from a replica that still has it, or swap the objects back.""")
LOG_EPOCHS = error("""remote-log-epochs
    The batch at offset {offset} has leader epoch {found}, the metadata say {expected}.
    A follower that builds its state from this log, or a consumer that checks its position, uses a wrong epoch.
    A flipped bit, which the batch's CRC does not cover in this field, or the log of another branch.
    Compare with a replica; the records themselves may be sound.""")
LOG_TIMESTAMP = error("""remote-log-timestamp
    The newest timestamp in the log is {found}, the metadata say {expected}.
    The log is probably that of another partition or segment.
    Objects were swapped or overwritten.
    Compare the records with a replica's; look for the other swapped object in the findings.""")
LOG_EXCHANGED = error("""remote-log-exchanged
    The log is that of segment {other} of {partition}: its newest timestamp is {found}, as in the metadata of that
        segment; the metadata of this one say {expected}.
    Consumers get sound records of another partition or segment.
    Two objects with equal offsets and size were swapped, or one overwrote the other.
    Rename both objects; restore an overwritten one from the store's versions or from a replica.""")
LOCAL_DIFFERS = error("""remote-log-differs-from-local
    {count:batch/batches} between offsets {first} and {last} {count:differs|differ} from {count:that|those} in broker {broker}'s local log.
    Consumers get other records from the tier than the leader holds.
    The object was overwritten, swapped, or damaged so that its CRC still matches.
    Compare the local log with other replicas (`kctl replica compare`); restore the object from an in-sync replica.""")
EPOCHS_OBJECT = error("""remote-leader-epochs-differ
    The leader epochs stored with the segment do not belong to it: {why}.
    A follower that builds its state from this segment uses them and truncates by them.
    The object was overwritten or belongs to another segment.
    Write it again: `0`, the number of entries, then the leader's epochs up to the segment's end.""")
SNAPSHOT_OBJECT = error("""remote-producer-snapshot-bad
    The producer snapshot stored with the segment is wrong: {why}. On a replica it is `{name}`.
    A follower that builds its state from this segment fails, or does not know its producers.
    A damaged object, or one of another segment.
    Copy the snapshot from a replica, or rebuild it with `kctl segment rebuild`.""")
TRANSACTIONS_OBJECT = error("""remote-transaction-index-wrong
    The index of aborted transactions stored with the segment is wrong: {why}.
    read_committed consumers get records of aborted transactions, or miss committed ones.
    A damaged object, or one of another segment.
    Rebuild it from the log with `kctl segment rebuild`.""")
OBJECT_MALFORMED = error("""remote-object-malformed
    The object does not have the layout of {what}: {reason}.
    Brokers cannot use it.
    A damaged object, or one of another kind under this name.
    Restore it, or rebuild it from the log.""")
OBJECT_ENCRYPTED = info("""remote-object-encrypted
    The segment is encrypted; its content was not examined.
    Only names and sizes were examined.
    The storage plug-in encrypts.
    Nothing.""")
METADATA_ABSENT = info("""remote-metadata-absent
    {count:object} ({size:byte}) of the partition could not be judged: the evidence lacks its metadata partition, or part
        of it could not be read.
    They may be in use.
    The evidence covers only some brokers.
    Add a replica of every partition of `__remote_log_metadata`.""")
