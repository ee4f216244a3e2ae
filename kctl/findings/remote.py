"""What can be wrong with tiered storage: metadata records, objects, and both against the local logs."""

from kctl.findings import FindingType, Severity

# --- the metadata log ---------------------------------------------------------------------------------

METADATA_UNREADABLE = FindingType(
    "remote-metadata-unreadable",
    Severity.ERROR,
    "The metadata log cannot be read: {reason}.",
    "Records of this metadata partition are missing from all that follows.",
    "Missing permission, a failing disk, or a file that went away.",
    "Give kctl a copy that it can read, or another replica of the metadata partition.",
)
METADATA_DAMAGED = FindingType(
    "remote-metadata-damaged",
    Severity.ERROR,
    "Bytes of the metadata log are no sound batch: {reason}.",
    "Records here are lost unless another replica of the metadata partition holds them.",
    "A failing disk, a torn write or a hand edit.",
    "Add another replica of `__remote_log_metadata` to the evidence; `kctl segment verify` names the range.",
)
METADATA_REPLICAS_DIFFER = FindingType(
    "remote-metadata-replicas-differ",
    Severity.ERROR,
    "{count} batches of the metadata partition are not those of {other}, which was taken.",
    "Brokers that read this replica would know other remote segments.",
    "An unclean election of the metadata partition, or damage that a CRC does not show.",
    "Look at both with `kctl replica compare`; audit the objects before a deletion trusts the metadata.",
)
METADATA_RECORD_BAD = FindingType(
    "remote-metadata-record-bad",
    Severity.ERROR,
    "The record is none that a broker can read: {reason}.",
    "A broker's metadata consumer fails on it: no later record of this metadata partition is seen.",
    "Something other than a broker wrote to the topic, or a version that did not exist yet.",
    "Find the writer; the record can only be removed by deleting it from the topic.",
)
METADATA_LAYOUTS_MIXED = FindingType(
    "remote-metadata-layouts-mixed",
    Severity.WARNING,
    "{old} records have the layout of 3.0 to 3.5, {new} that of 3.6 and later.",
    "Neither version reads the other's records: custom metadata was inserted without a new version number.",
    "A rolling upgrade from 3.5 or earlier, or a plug-in built against it.",
    "Expect brokers of one side to be blind to the other's segments until the metadata topic is made anew.",
)
METADATA_WRONG_PARTITION = FindingType(
    "remote-metadata-wrong-partition",
    Severity.ERROR,
    "Records of the partition lie in metadata partition {found}, where {partitions} partitions give {expected}{kip}.",
    "Brokers look for them in the other metadata partition and do not see these segments.",
    "The number of partitions of `__remote_log_metadata` was changed, or the writer follows the text of KIP-405.",
    "Bring the partition count back to what it was when the records were written.",
)
METADATA_STATE_BACKWARDS = FindingType(
    "remote-metadata-state-illegal",
    Severity.WARNING,
    "The record asks for {after} where the segment is in {before}; brokers drop it.",
    "3.7 and later log an error and go on, 3.6 and earlier throw.",
    "Two leaders at work on one segment, records replayed, or a plug-in.",
    "Compare `broker_id` and times of the segment's records: `kctl remote format --segment ID`.",
)
METADATA_UNKNOWN_SEGMENT = FindingType(
    "remote-metadata-update-unknown",
    Severity.WARNING,
    "{after} for a segment that no earlier record starts, or that is deleted already.",
    "Brokers drop it. Objects of such a segment are found by nobody.",
    "The record that started the copy was lost or lies in another metadata partition.",
    "Look for objects of that segment with `kctl remote audit --tier`.",
)
METADATA_CUSTOM_WIPED = FindingType(
    "remote-custom-metadata-wiped",
    Severity.WARNING,
    "The record has no custom metadata where the segment had {size} bytes: an update replaces it.",
    "A storage plug-in that finds its objects through it can no longer delete them.",
    "Not written by the broker's remote log manager, which repeats it: a plug-in or another writer.",
    "Find who wrote the record; the bytes are still in the segment's earlier record.",
)
TOPIC_IDS_DIFFER = FindingType(
    "remote-topic-ids-differ",
    Severity.INFO,
    "The name stands for {count} topic ids: {ids}.",
    "A topic was deleted and made again; each id has its own remote log.",
    "Normal, unless segments of the older ids are left.",
    "Nothing, as long as no finding names leftovers of a deleted topic.",
)

# --- the store ----------------------------------------------------------------------------------------

TIER_UNREADABLE = FindingType(
    "tier-unreadable",
    Severity.ERROR,
    "It cannot be read from the tier: {reason}.",
    "Nothing is known about what lies here; everything else was examined.",
    "Missing permission, a failing store, or something that went away while it was listed.",
    "Look at the store's own logs, then run the audit again.",
)
