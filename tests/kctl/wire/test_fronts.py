"""Partitions that are looked at together are judged as each would be alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.log.columns.headers import PADDING, check_crc, gather, walk
from kctl.wire.replicas.fronts import Data, agree, fronts
from tests.kctl.replica.test_compare import batch

GOOD = [batch(n, n + 1 + n % 3, "v" * (n % 5), n % 2) for n in range(0, 12, 3)]


def shared(parts: list[bytes], gaps: list[bytes]) -> list[memoryview]:
    """Views of one buffer, as the partitions of an answer are."""
    buffer, places = bytearray(), []
    for part, gap in zip(parts, gaps, strict=True):
        buffer += gap
        places.append((len(buffer), len(buffer) + len(part)))
        buffer += part
    whole = memoryview(buffer + bytes(PADDING))
    return [whole[low:high] for low, high in places]


def alone(answers: list[bytes]) -> tuple[int, int, bool] | None:
    """How many batches, what follows, and whether they are equal and sound, the plain way."""
    first = np.frombuffer(answers[0] + bytes(PADDING), np.uint8)
    found = walk(first, 0, min(map(len, answers)))
    if not len(found.positions):
        return None
    headers = gather(first, found.positions)
    magic_is_legal = bool(((headers.magic >= 0) & (headers.magic <= 2)).all())
    if magic_is_legal:
        check_crc(first, headers)
    fronts_of_all = {one[: found.stop] for one in answers}
    is_right = magic_is_legal and len(fronts_of_all) == 1 and bool(headers.crc_valid.all())
    return len(headers), int(headers.last_offset[-1]) + 1, is_right


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Some batches, perhaps cut off, perhaps with one other byte."""
    data = bytearray(b"".join(GOOD[: draw(st.integers(0, len(GOOD)))]))
    if data and draw(st.booleans()):
        data[draw(st.integers(0, len(data) - 1))] ^= draw(st.sampled_from([1, 0x80]))
    return bytes(data[: draw(st.sampled_from([len(data), len(data) - 7, 30]))])


@settings(deadline=None)
@given(st.lists(st.lists(logs(), min_size=3, max_size=3), max_size=6), st.lists(st.binary(max_size=40), min_size=6, max_size=6))  # fmt: skip
def test_together_as_alone(partitions: list[list[bytes]], gaps: list[bytes]) -> None:
    buffers = [
        shared([answers[n] for answers in partitions], gaps[: len(partitions)]) for n in range(3)
    ]  # of three brokers
    for windows in (
        partitions,
        [list(one) for one in zip(*buffers, strict=True)],
    ):
        check: list[list[Data]] = [list(one) for one in windows]
        found = fronts(check)
        expected = [alone(answers) if all(answers) else None for answers in partitions]
        said = [
            None if one is None else (len(one.positions), one.next_offset, is_right)
            for one, is_right in zip(found, agree(found), strict=True)
        ]
        assert said == expected


def test_a_magic_that_nobody_knows_is_not_sound() -> None:
    """Both replicas hold it: equal bytes, whose CRC nobody can tell."""
    for magic in (3, 0x80):
        odd = bytearray(GOOD[0])
        odd[16] = magic
        found = fronts([[bytes(odd), bytes(odd)], [GOOD[0], GOOD[0]]])
        assert agree(found) == [False, True]


def test_nothing_is_no_front() -> None:
    assert fronts([]) == [] and agree([]) == []
    assert fronts([[], [b"", GOOD[0]], [b"short", b"short"]]) == [None, None, None]
    assert agree([None]) == [False]
