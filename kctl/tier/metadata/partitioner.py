"""Which partition of `__remote_log_metadata` holds the records of a partition.

The topic's id and the partition number are hashed, the least significant half of the id first; the topic's name
is not used. KIP-405's text says otherwise, but no release does that.

Source: storage/.../metadata/storage/RemoteLogMetadataTopicPartitioner.java @ 3.1.2, 3.9.0-rc3;
clients/.../common/utils/Utils.java @ 3.9.0-rc3
"""

from formats.errors import FormatError
from formats.messages.schema import uuid_bytes
from kctl.errors import BadValue
from kctl.rows.remote import METADATA_PARTITION

DEFAULT_PARTITIONS = 50
MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The murmur2 hash of Kafka's clients, unsigned."""
    m = 0x5BD1E995
    h = (0x9747B28C ^ len(data)) & MASK
    whole = len(data) & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * m & MASK
        h = (h * m & MASK) ^ ((k ^ (k >> 24)) * m & MASK)
    if data[whole:]:
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & MASK
    h = (h ^ (h >> 13)) * m & MASK
    return h ^ (h >> 15)


def objects_hash(topic_id: str, partition: int) -> int:
    """The 32 bits that Kafka hashes for a partition, unsigned."""
    raw = uuid_bytes(topic_id)
    most, least = int.from_bytes(raw[:8], "big"), int.from_bytes(raw[8:], "big")
    h = 1
    for x in ((least ^ (least >> 32)) & MASK, (most ^ (most >> 32)) & MASK, partition):
        h = (31 * h + x) & MASK
    return h


def placing_hash(topic_id: str, partition: int) -> int:
    """The hash whose remainder by the number of metadata partitions is the metadata partition."""
    return murmur2(objects_hash(topic_id, partition).to_bytes(4, "big")) & 0x7FFFFFFF


def metadata_partition(topic_id: str, partition: int, partitions: int = DEFAULT_PARTITIONS) -> int:
    return placing_hash(topic_id, partition) % partitions


def metadata_partition_by_name(topic: str, partition: int, partitions: int = DEFAULT_PARTITIONS) -> int:
    """The metadata partition by the text of KIP-405; no release of Kafka writes there."""
    return (murmur2(f"{topic}-{partition}".encode()) & 0x7FFFFFFF) % partitions


def metadata_partition_row(text: str, partitions: int) -> dict[str, object]:
    """The row for `TOPIC-ID:PARTITION` or `TOPIC-ID:TOPIC-PARTITION`; `BadValue` for anything else."""
    topic_id, _, rest = text.partition(":")
    topic, dash, number = rest.rpartition("-")
    try:
        uuid_bytes(topic_id)
        is_well_formed = bool(topic) == bool(dash)
        partition = int(number) if is_well_formed and number.isdecimal() and len(number) < 11 else -1
    except FormatError:
        partition = -1
    if not 0 <= partition < 1 << 31:
        raise BadValue(f"{text!r} is not TOPIC-ID:PARTITION", "a topic id has 22 characters")
    return METADATA_PARTITION(
        topic_id=topic_id,
        partition=partition,
        metadata_partitions=partitions,
        metadata_partition=metadata_partition(topic_id, partition, partitions),
        metadata_partition_of_kip=metadata_partition_by_name(topic, partition, partitions) if topic else None,
    )
