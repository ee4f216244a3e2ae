"""Brokers before 2.3 do not say which zone they log in: what they send each other does."""

from __future__ import annotations

import gzip
import re
import shutil
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kctl.broker_logs.clocks import offsets as clock_offsets
from kctl.broker_logs.clocks.offsets import ClockOffsets, _placed, _settle, agreed_gap
from kctl.broker_logs.clocks.skew import ClockBounds, HandledRequest, OrderedPairs, State, estimate_skew
from kctl.broker_logs.history.timeline import Timeline, timeline
from kctl.broker_logs.merging import Merge, prepare
from kctl.broker_logs.sources import find_sources
from kctl.model import TopicPartition
from kctl.text_logs.log_files import LogSource
from kctl.text_logs.zones import Zone
from tests.conftest import kctl, recording, rows

HEAD = re.compile(rb"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),", re.MULTILINE)
# A recording, and by how many minutes each broker's clock is put ahead.
SHIFTS = [
    ("incidents/pauses-1.1", {2: 540}),
    ("incidents/pauses-1.1", {1: -210, 3: 345}),
    ("incidents/unclean-1.1", {1: 60}),
    ("incidents/unclean-1.1", {3: -480}),
    ("incidents/unclean-0.10.2", {1: 540, 2: -210}),
    ("incidents/unclean-0.10.2", {3: 60}),
    ("incidents/life-0.8.2", {1: -60}),
    ("incidents/life-0.8.2", {2: 330, 3: -720}),
    ("incidents/hwloss-1.1", {2: 120}),
    ("incidents/diverge-0.10.2", {3: 840}),
]


def shifted(name: str, minutes: dict[int, int], into: Path) -> Path:
    """A copy of a recording in which some brokers log in other zones."""
    folder = into / "shifted"
    shutil.copytree(recording(name), folder, copy_function=shutil.copyfile)
    for broker_id, ahead in minutes.items():
        for path in (folder / f"broker-{broker_id}" / "logs").iterdir():
            data = path.read_bytes()
            packed = path.suffix == ".gz"
            data = moved(gzip.decompress(data) if packed else data, ahead)
            path.write_bytes(gzip.compress(data) if packed else data)
    return folder


def moved(data: bytes, minutes: int) -> bytes:
    """A log whose times are so much later."""

    @cache
    def later(text: bytes) -> bytes:
        time = datetime.fromisoformat(text.decode()) + timedelta(minutes=minutes)
        return b"[" + time.isoformat(" ").encode() + b","

    return HEAD.sub(lambda match: later(match[1]), data)


def history(folder: Path) -> tuple[Timeline, Merge]:
    merging = prepare(find_sources([str(folder)]))
    return timeline(merging.events(), doubtful=merging.doubtful), merging


def told(found: Timeline) -> list[tuple[Any, ...]]:
    """What does not hang on where the clocks stand."""
    return [
        (
            tp,
            one.leader,
            one.leader_epoch,
            one.controller_epoch,
            one.isr,
            tuple(change.isr for change in one.isr_changes),
            one.how,
            None if one.to_ms is None else one.to_ms - one.from_ms,
        )
        for tp, ones in found.leaderships.items()
        for one in ones
    ]


@cache
def unshifted(name: str) -> list[tuple[Any, ...]]:
    return told(history(recording(name))[0])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "minutes"), SHIFTS)
def test_a_timeline_is_the_same_whatever_zones_the_brokers_log_in(
    name: str, minutes: dict[int, int], tmp_path: Path
) -> None:
    found, merging = history(shifted(name, minutes, tmp_path))
    assert told(found) == unshifted(name)
    assert not merging.doubtful
    offsets = {b: merging.zones[b].offsets[0] // 60_000 for b in merging.zones if b is not None}
    ahead = {b: minutes.get(b, 0) for b in offsets}
    assert len({offsets[b] - ahead[b] for b in offsets}) == 1  # which zone the others are in nobody says
    codes = [finding.code for finding in merging.sources.findings]
    assert codes.count("log-zone-estimated") == sum(1 for offset in offsets.values() if offset)


def told_losses(folder: Path) -> list[tuple[Any, ...]]:
    found = rows("replica", "loss", folder).rows
    keys = (
        "topic",
        "partition",
        "from_offset",
        "to_offset",
        "class",
        "cause",
        "replaced",
        "missing",
        "lost_in_epoch",
    )
    return [tuple(str(row[key]) for key in keys) for row in found if row["kind"] == "loss"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "minutes"),
    [
        ("incidents/unclean-0.10.2", {1: 540, 2: -210}),
        ("incidents/unclean-1.1", {1: 60}),
        ("incidents/pauses-1.1", {2: 540, 3: -210}),
    ],
)
def test_losses_are_the_same_whatever_zones_the_brokers_log_in(
    name: str, minutes: dict[int, int], tmp_path: Path
) -> None:
    expected = told_losses(recording(name))
    assert expected
    assert told_losses(shifted(name, minutes, tmp_path)) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["pauses-1.1", "unclean-1.1", "unclean-0.10.2", "life-0.8.2", "halt-0.10.2", "life-1.1"]
)
def test_brokers_of_one_zone_are_left_where_they_are(name: str) -> None:
    _, merging = history(recording(f"incidents/{name}"))
    assert {zone.source for zone in merging.zones.values()} == {""}
    assert not merging.doubtful


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "minutes"),
    [
        ("incidents/pauses-1.1", {2: -37}),
        ("incidents/diverge-0.10.2", {1: -37, 3: 37}),
        ("incidents/unclean-1.1", {2: -37}),
    ],
)
def test_a_clock_that_is_off_is_no_zone_and_is_corrected_or_nothing_is_claimed_by_it(
    name: str, minutes: dict[int, int], tmp_path: Path
) -> None:
    """Thirty-seven minutes are no zone. The order of times would split histories and say that the ISR was another."""
    found, merging = history(shifted(name, minutes, tmp_path))
    assert {zone.source for zone in merging.zones.values()} == {""}
    codes = [finding.code for finding in merging.sources.findings]
    assert "log-zone-estimated" not in codes
    assert ("log-clock-doubtful" in codes) == bool(merging.doubtful)
    assert ("log-clock-off" in codes) == bool(merging.ahead)
    assert len(merging.doubtful | merging.ahead.keys()) == len(minutes)
    for broker_id, ahead in merging.ahead.items():
        assert (
            broker_id not in minutes or len(minutes) > 1 or abs(ahead - minutes[broker_id] * 60_000) < 2_000
        )
    known = history(recording(name))[0]
    assert epochs_of(found) == epochs_of(known)
    assert unclean_in(found) == unclean_in(known)


def unclean_in(found: Timeline) -> list[tuple[str, int]]:
    return [
        (str(partition), one.leader_epoch)
        for partition, ones in found.leaderships.items()
        for one in ones
        if one.is_unclean
    ]


def epochs_of(found: Timeline) -> list[tuple[str, int, int | None]]:
    """Leader epochs in order of the partitions, each with its leader."""
    every = [one for ones in found.leaderships.values() for one in ones]
    return [(str(one.topic_partition), one.leader_epoch, one.leader) for one in every]


def test_zones_that_were_given_are_believed(tmp_path: Path) -> None:
    from kctl.text_logs.zones import zone_named

    folder = shifted("incidents/unclean-1.1", {2: 540}, tmp_path)
    given = {broker_id: zone_named("UTC") for broker_id in (1, 2, 3)}
    merging = prepare(find_sources([str(folder)]), given)
    assert merging.zones[2] is given[2]
    assert not merging.sources.findings
    assert abs(max(estimate_skew(merging.events()).ahead.values(), key=abs)) > 9 * 3_600_000 - 1000


@pytest.mark.slow
def test_no_more_is_read_than_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ends of logs say it, unless a broker is missing from them; one that never speaks is not searched for."""
    read: list[tuple[int | None, int]] = []
    listen = clock_offsets._listen

    def watched(said: clock_offsets._Said, source: LogSource, zone: Zone | None, most: int) -> bool:
        read.append((source.broker_id, most))
        listen(said, source, zone, most)
        return False

    monkeypatch.setattr(clock_offsets, "_listen", watched)
    folder = tmp_path / "unclean"
    shutil.copytree(recording("incidents/unclean-1.1"), folder, copy_function=shutil.copyfile)
    history(folder)
    first, second, third = clock_offsets.ENDS
    assert {most for _, most in read} == {first}
    history(shifted("incidents/unclean-2.8", {2: 7}, tmp_path))
    assert {most for _, most in read} == {first, second}, "how far a clock is off takes more pairs"
    read.clear()
    (folder / "broker-9" / "logs").mkdir(parents=True)
    (folder / "broker-9" / "logs" / "state-change.log").write_bytes(
        b"[2026-11-21 10:00:00,000] INFO quiet (x)\n"
    )
    history(folder)
    assert {most for _, most in read} == {first, second}
    assert third > second


HOUR = 3_600_000
STEADY = [(n * 60_000, n * 60_000 + HOUR + 3) for n in range(5)]


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (STEADY, (HOUR + 3, 5)),
        ([(a, b - HOUR) for a, b in STEADY], (3, 5)),
        ([(b, a) for a, b in STEADY], (-HOUR - 3, 5)),
        (STEADY[:2], None),  # too few
        ([(n, n + HOUR) for n in range(50)], None),  # one moment: one broker that was away for an hour
        ([(n * 60_000, 10 * HOUR + n) for n in range(9)], None),  # all at once, when it was back
        ([(a, b + 400_000) for a, b in STEADY], (HOUR + 400_003, 5)),
        ([(a, a + 27 * HOUR) for a, _ in STEADY], None),
        ([(a, a + 24 * HOUR) for a, _ in STEADY], None),  # the same again the next day
        ([*STEADY, *[(a + HOUR, b) for a, b in STEADY]], None),  # a zone that changed
        ([*STEADY, (5, 5 + 700_000)], (HOUR + 3, 5)),  # one that came late
        ([], None),
    ],
)
def test_an_offset_is_believed_where_it_comes_again(
    pairs: list[tuple[int, int]], said: tuple[int, int] | None
) -> None:
    assert agreed_gap(pairs) == said


@pytest.mark.slow
def test_rows_of_a_broker_whose_clock_is_off_say_by_how_much_they_are_corrected(tmp_path: Path) -> None:
    folder = shifted("incidents/pauses-1.1", {2: 7}, tmp_path)
    told = rows("state-log", "timeline", folder).rows
    known = rows("state-log", "timeline", recording("incidents/pauses-1.1")).rows
    times = [[row["time"] for row in one if row["kind"] == "broker_state"] for one in (told, known)]
    assert len(times[0]) == len(times[1])
    off = {
        row["evidence"][0]["broker_id"]: row["clock_offset_ms"]
        for row in told
        if row["kind"] == "broker_state"
    }
    assert off[1] is None and abs(off[2] - 7 * 60_000) < 1_000
    assert {"log-clock-off"} <= {row.get("code") for row in told}
    merged = rows("state-log", "merge", folder).rows
    assert {"log-clock-off"}.isdisjoint(row.get("code") for row in merged)


@pytest.mark.slow
def test_what_was_found_out_is_said_on_both_outputs(tmp_path: Path) -> None:
    folder = shifted("incidents/unclean-0.10.2", {2: 540}, tmp_path)
    sentence = "the times of broker 2 differ by +09:00 from those of broker 1"
    for verb in ("timeline", "merge"):
        ran = rows("state-log", verb, folder)
        assert sentence in ran.err
        assert [
            sentence in row["message"] for row in ran.rows if row.get("code") == "log-zone-estimated"
        ] == [True]
    assert sentence in kctl("state-log", "merge", folder).err
    assert any(row.get("code") == "log-zone-estimated" for row in rows("replica", "loss", folder).rows)


def test_a_clock_that_is_off_is_found_where_every_logger_writes_to_one_file(tmp_path: Path) -> None:
    """The file is named server.log, and has what controllers send as well."""
    folder = shifted("incidents/pauses-1.1", {2: 7}, tmp_path)
    for logs in folder.glob("broker-*/logs"):
        records: list[bytes] = []
        for path in sorted(logs.iterdir()):
            records += re.split(rb"^(?=\[\d{4}-)", path.read_bytes(), flags=re.MULTILINE)
            path.unlink()
        records.sort(key=lambda record: record[:25])
        (logs / "server.log").write_bytes(b"".join(records))
    _, merging = history(folder)
    assert merging.ahead.keys() == {2}
    assert abs(merging.ahead[2] - 7 * 60_000) < 2_000


def test_what_one_clock_is_ahead_of_another_is_limited_from_both_sides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bounds = {
        (1, 3): ClockBounds(at_least=419_000, at_most=421_000, pairs=9),
        (3, 1): ClockBounds(at_least=-420_003, at_most=-420_001, pairs=9),
        (2, 4): ClockBounds(at_most=9_000, pairs=9),
    }
    monkeypatch.setattr(OrderedPairs, "bounds", lambda self: bounds)
    assert clock_offsets._BrokerMessages().limits() == {
        (1, 3): ClockBounds(at_least=420_001, at_most=420_003, pairs=18),
        (2, 4): ClockBounds(at_most=9_000, pairs=9),
    }


@pytest.mark.parametrize(
    ("at_least", "at_most", "said", "ahead"),
    [
        (0, 4_900, None, (0, 9)),  # a slow broker is no wrong clock
        (420_001, 420_003, None, (420_002, 9)),
        (-420_003, 9_000, None, None),
        (None, 8_094, (14_543, 36), (0, 36)),  # it heard late, and received late
        (None, 420_002, (420_030, 36), (420_002, 36)),
        (None, 420_002, (431_000, 36), (420_002, 36)),
        (417_606, None, (417_594, 47), (417_606, 47)),
        (8_000, None, (2_000, 5), (8_000, 5)),
        (None, None, (300, 5), (300, 5)),
        (None, None, None, None),
    ],
)
def test_pairs_count_as_far_as_what_came_first_allows(
    at_least: int | None, at_most: int | None, said: tuple[int, int] | None, ahead: tuple[int, int] | None
) -> None:
    assert clock_offsets._within(ClockBounds(at_least, at_most, 9), said) == ahead


def test_what_was_sent_before_the_part_that_was_read_bounds_nothing() -> None:
    """A state sent again to a broker that came back: it had received it a minute before the sending that is known."""
    pairs = OrderedPairs()
    states = [State(TopicPartition("ledger", number), 3, 1, 7) for number in range(3)]
    for number, (state, sent, received) in enumerate(
        zip(states, (0, 60_000, 90_000), (420_003, 420_000, 510_009), strict=True)
    ):
        pairs.sent[state] = {1: sent}
        pairs.received[state, 2] = received
        pairs.handled[request := HandledRequest(1, 7, 2, number)] = (420_000, 420_000)
        pairs.answered[request] = [1]
    assert pairs.bounds() == {(1, 2): ClockBounds(at_least=419_999, at_most=420_003, pairs=5)}


def test_the_clock_that_is_off_is_not_that_of_most(tmp_path: Path) -> None:
    """Broker 3 was paused, so that its pairs with broker 1, whose clock is ahead, lie some seconds further apart."""
    clock_offsets = ClockOffsets()
    edges = {(1, 2): (-420_000, 97), (1, 3): (-426_100, 116), (2, 3): (300, 40)}
    (component,) = _placed(edges, {1, 2, 3})
    _settle(clock_offsets, component, edges, {1, 2, 3})
    assert (clock_offsets.ahead, clock_offsets.doubtful) == ({1: 420_000}, {})
