"""A length that lies may end in the middle of what looks like an append that was cut off."""

from formats.log.record_batch import Record, write_batch
from formats.log.records import Damage, DamageReason, LogEntry, walk


def batch(offset: int, number: int = 0) -> bytes:
    return write_batch([Record(offset, 1_000, b"k", b"value %06d" % number)], partition_leader_epoch=0)


def test_batches_behind_a_length_that_is_one_too_large_are_all_got_back() -> None:
    # One byte off, the next frame begins with an offset a little ahead and a length beyond the end of the log.
    # The first byte of its CRC stands where the magic would be.
    third = next(one for one in (batch(3, number) for number in range(10_000)) if one[17] == 2)
    log = bytearray(b"".join(third if offset == 3 else batch(offset) for offset in range(6)))
    size = len(third)
    log[2 * size + 11] += 1
    found = list(walk(bytes(log)))
    assert [(type(one), one.position, one.size_in_bytes) for one in found] == [
        (Damage if n == 2 else LogEntry, n * size, size) for n in range(6)
    ]
    (damage,) = (one for one in found if isinstance(one, Damage))
    assert damage.reason is DamageReason.CRC_MISMATCH
