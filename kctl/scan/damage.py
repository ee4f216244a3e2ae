"""What a damaged range of a segment means."""

from struct import unpack_from

from formats.log.framing import FRAMING_SIZE
from formats.log.records import Damage, DamageReason
from formats.values import replace
from kctl.findings import Finding, FindingType, Place, segments
from kctl.scan.source import Source

TYPES: dict[DamageReason, FindingType] = {
    DamageReason.ZEROS: segments.TRAILING_ZEROS,
    DamageReason.TORN_TAIL: segments.TORN_TAIL,
    DamageReason.ILLEGAL_MAGIC: segments.ILLEGAL_MAGIC,
    DamageReason.ILLEGAL_LENGTH: segments.ILLEGAL_LENGTH,
    DamageReason.CRC_MISMATCH: segments.DAMAGED_CRC,
    DamageReason.GARBAGE: segments.GARBAGE,
}


def finding_of(damage: Damage, source: Source, place: Place, *, is_last: bool) -> Finding:
    """The finding about a range that is no batch; `is_last` where the file ends with it."""
    head = source.read_at(damage.position, FRAMING_SIZE).ljust(FRAMING_SIZE, b"\0")
    length, magic = unpack_from(">i4xb", head, 8)
    kind = TYPES[damage.reason]
    if damage.reason is not DamageReason.TORN_TAIL and not is_last and head == bytes(FRAMING_SIZE):
        kind = segments.ZEROED_RANGE
    where = replace(place, position=damage.position, size_in_bytes=damage.size_in_bytes)
    # Java's magic is a signed byte: 2 and more is read as a batch, the rest as an old message.
    taken_for = "a batch of magic 2" if magic >= 2 else "a message of magic 0 or 1"
    return kind.at(where, size_in_bytes=damage.size_in_bytes, length=length, magic=magic, taken_for=taken_for)
