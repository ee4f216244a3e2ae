"""Reading and merging brokers' logs: order, copies, zones, layouts, damage."""

from __future__ import annotations

import gzip
import itertools
import json
import lzma
import os
import random
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.broker_logs.layouts import KAFKA, detect, layout_of_pattern
from formats.broker_logs.line import find_records
from kctl.broker_logs import sources
from kctl.broker_logs.clocks.skew import estimate_skew
from kctl.broker_logs.events import Event
from kctl.broker_logs.merging import merged, prepare, read_events
from kctl.broker_logs.sources import LogFile, LogSource, find_sources, layouts_of
from kctl.errors import BadValue
from kctl.text_logs.blocks import Reading, blocks_of
from kctl.text_logs.opening import STDIN
from kctl.text_logs.zones import Zone, zone_named
from kctl.times import iso
from tests.conftest import examples, recording, rows

LINE = "[2026-11-21 13:{:02d}:{:02d},{:03d}] INFO [Broker id={}] {} (state.change.logger)\n"


def line(millis: int, broker: int = 1, text: str = "Deleting 1 partition(s).") -> str:
    return LINE.format(millis // 60_000, millis // 1000 % 60, millis % 1000, broker, text)


def write(folder: Path, **logs: str | bytes) -> Path:
    """Logs `broker-1/state-change.log` and so on, the text of each given as `b1="..."`."""
    for name, text in logs.items():
        path = folder / f"broker-{name[1:]}" / "state-change.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def texts(events: Sequence[Event]) -> list[str]:
    return [f"{event.broker_id} {event.time} {event.text}" for event in events]


# --- properties -------------------------------------------------------------------------------------------

TIMES = st.lists(st.integers(0, 50), max_size=12)
LOGS = st.lists(TIMES, min_size=1, max_size=4)


def sources_of(folder: Path, logs: list[list[int]]) -> list[LogSource]:
    out = []
    for number, times in enumerate(logs):
        path = folder / f"{number}.log"
        path.write_text(
            "".join(line(t, number, f"record {n}") + "  at line\n" * (n % 2) for n, t in enumerate(times))
        )
        out.append(LogSource(number, "other", (LogFile(str(path), path.name, "other", number, KAFKA, 0),)))
    return out


def merged_text(sources: list[LogSource], chunk: int) -> list[bytes]:
    found = merged([blocks_of(one, rank, None, Reading(), chunk=chunk) for rank, one in enumerate(sources)])
    return [
        block.data[a:b]
        for some in found
        for block, low, high in some.runs()
        for a, b in spans(block, low, high)
    ]


def spans(block: object, low: int, high: int) -> list[tuple[int, int]]:
    starts, ends = block.starts, block.ends  # type: ignore[attr-defined]
    return list(zip(starts[low:high].tolist(), ends[low:high].tolist(), strict=True))


@settings(deadline=None, max_examples=examples(60))
@given(logs=LOGS, chunk=st.sampled_from([60, 130, 400, 1 << 20]))
def test_the_merge_is_a_stable_permutation_in_order(
    logs: list[list[int]], chunk: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = sources_of(tmp_path_factory.mktemp("logs"), logs)
    out = merged_text(made, chunk)
    # What a plain merge of records by the greatest time so far gives.
    keyed = []
    for rank, times in enumerate(logs):
        for n, key in enumerate(itertools.accumulate(times, max)):
            keyed.append(
                (key, rank, n, (line(times[n], rank, f"record {n}") + "  at line\n" * (n % 2)).encode())
            )
    assert out == [record for *_, record in sorted(keyed)]


@settings(deadline=None, max_examples=40)
@given(logs=st.lists(TIMES, min_size=2, max_size=4), cut=st.integers(1, 3))
def test_merging_in_two_steps_is_merging_at_once(
    logs: list[list[int]], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    logs = [sorted(times) for times in logs]
    made = sources_of(folder, logs)
    halves = []
    for number, half in enumerate((made[:cut], made[cut:])):
        path = folder / f"half-{number}"
        path.write_bytes(b"".join(merged_text(half, 200)))
        halves.append(LogSource(number, "other", (LogFile(str(path), path.name, "other", number, KAFKA, 0),)))
    assert merged_text(halves, 200) == merged_text(made, 200)


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_have_records_or_not_and_never_fail(data: bytes) -> None:
    head = b"[2026-11-21 13:00:00,000] INFO x (y)\n"
    for text in (data, head + data, data + b"\n" + head):
        found = find_records(text)
        assert (np.diff(found.starts) > 0).all()
        detect(text)
    assert len(find_records(data + b"\n" + head).starts) >= 1


@pytest.mark.parametrize("place", range(24))
def test_a_line_with_one_wrong_byte_in_its_time_continues_the_record_before_it(place: int) -> None:
    sound = b"[2026-11-21 13:00:01,000] INFO x (kafka.A)\n"
    wrong = sound[: 1 + place] + b"x" + sound[2 + place :]
    assert find_records(sound + wrong + sound).starts.tolist() == [0, 2 * len(sound)]


@pytest.mark.parametrize(
    ("time", "is_so"),
    [
        *(
            ("2026-11-21 23:59:60,999", True),
            ("2026-11-21 13:00:61,000", False),
            ("2026-11-21 24:00:00,000", False),
        ),
        *(
            ("2026-11-21 13:60:00,000", False),
            ("2026-02-29 13:00:00,000", False),
            ("2024-02-29 13:00:00,000", True),
        ),
        *(("1969-12-31 13:00:00,000", False), ("1970-01-01 00:00:00,000", True)),
    ],
)
def test_a_line_begins_a_record_if_its_time_exists(time: str, is_so: bool) -> None:
    assert len(find_records(f"[{time}] INFO x (a.B)\n".encode()).starts) == is_so


def test_a_time_of_the_same_minute_of_another_month_is_its_own() -> None:
    found = find_records(b"[2026-10-21 13:00:01,000] INFO x\n[2026-11-21 13:00:01,000] INFO x\n")
    assert np.diff(found.millis).tolist() == [31 * 86_400_000]


# --- sources ----------------------------------------------------------------------------------------------


def test_rotated_and_compressed_parts_are_one_log(tmp_path: Path) -> None:
    folder = tmp_path / "broker-7"
    folder.mkdir()
    parts = {
        "state-change.log.2026-11-21-13.gz": gzip.compress(line(1, 7).encode()),
        "state-change.log.3": line(2, 7).encode(),
        "state-change.log.2.zst": zstandard.compress(line(3, 7).encode()),
        "state-change.log.1": line(4, 7).encode().replace(b"\n", b"\r\n"),
        "state-change.log": line(5, 7).rstrip("\n").encode(),
    }
    for name, data in parts.items():
        (folder / name).write_bytes(data)
    found = find_sources([str(tmp_path)])
    assert [[file.file for file in one.files] for one in found.sources] == [
        [f"broker-7/{name}" for name in parts]
    ]
    events = list(prepare(found).events())
    assert [event.event for event in events] == ["K03"] * 5
    assert [event.line for event in events] == [1] * 5
    assert {event.broker_id for event in events} == {7}


def test_parts_of_a_log_are_in_the_order_of_their_times_however_they_are_numbered(tmp_path: Path) -> None:
    (tmp_path / "server.log.1").write_text(line(1))
    (tmp_path / "server.log.2").write_text(line(2))
    (tmp_path / "server.log").write_text(line(3))
    assert [event.file for event in read_events([str(tmp_path)])] == [
        "server.log.1",
        "server.log.2",
        "server.log",
    ]


def test_standard_input_is_given_out_while_it_stays_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    monkeypatch.setattr("sys.stdin", os.fdopen(reading))
    os.write(writing, "".join(map(line, range(9))).encode())
    end = threading.Timer(5, os.close, [writing])
    end.start()
    source = LogSource(1, "other", (LogFile(STDIN, STDIN, "other", 1, KAFKA, 0),))
    first = next(blocks_of(source, 0, None, Reading()))
    assert not end.finished.is_set() and len(first.starts) == 8
    end.cancel()
    os.close(writing)


def test_a_time_a_little_before_that_of_the_line_before_counts_as_that(tmp_path: Path) -> None:
    """Threads take the time before they take the file."""
    (tmp_path / "server.log").write_text(line(5000) + line(4000) + line(3999))
    found = list(read_events([str(tmp_path)]))
    assert [(event.time or "")[17:-1] for event in found] == ["05.000", "05.000", "03.999"]
    assert [(event.logged_time or "")[17:-1] for event in found] == ["05.000", "04.000", "03.999"]


def test_half_of_the_lines_tell_a_layout_from_one_that_begins_alike() -> None:
    head = "[2026-11-21 13:00:00,000] INFO {}\n"
    own, bare = head.format("Created: a log (kafka.log.LogManager)"), head.format("Created: a log")
    assert detect((own * 2 + bare).encode())[0] is KAFKA
    assert detect((own * 3 + bare * 2).encode())[0] is KAFKA
    named = head.format("kafka.log.LogManager: created (kafka.Log)")
    other, _ = detect((named + head.format("kafka.log.LogManager: created") * 4).encode())
    assert other is not None and other.name == "[%d] %-5p %c: %m%n"


def test_the_broker_is_found_in_the_lines_where_no_name_tells_it(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "state-change.log").write_text(line(1, 5))
    (tmp_path / "x" / "log-cleaner.log").write_text(
        "[2026-11-21 13:00:00,000] INFO nothing (kafka.log.LogCleaner)\n"
    )
    assert {event.broker_id for event in read_events([str(tmp_path)])} == {5}


def test_a_copy_that_overlaps_is_read_once(tmp_path: Path) -> None:
    lines = [line(n // 3, text=f"Deleting {n // 2} partition(s).") for n in range(40)]
    write(tmp_path, b1="".join(lines[:30]))
    (tmp_path / "broker-1" / "state-change.log.1").write_text("".join(lines[:25]))
    (tmp_path / "broker-1" / "state-change.log.2026-11-21-13").write_text("".join(lines[10:]))
    merge = prepare(find_sources([str(tmp_path)]))
    assert sorted(event.record.decode() for event in merge.events()) == sorted(lines)
    assert merge.reading.duplicates == 45
    assert {finding.code for finding in merge.reading.findings} == {"log-overlap"}
    counts = [(f.place.file or "", f.message.split()[0]) for f in merge.reading.findings]
    assert [(file.rpartition("log")[2], count) for file, count in counts] == [
        ("", "25"),
        (".2026-11-21-13", "20"),
    ]


def test_a_copy_may_begin_with_the_last_line_of_the_one_before(tmp_path: Path) -> None:
    write(tmp_path, b1=line(2) + line(3))
    (tmp_path / "broker-1" / "state-change.log.1").write_text(line(1) + line(2))
    merge = prepare(find_sources([str(tmp_path)]))
    assert [event.logged_ms % 1000 for event in merge.events() if event.logged_ms] == [1, 2, 3]


def test_a_line_behind_one_of_a_later_time_is_found_in_its_copy(tmp_path: Path) -> None:
    """The clock stepped back between the two lines, and the copy begins behind the first."""
    write(tmp_path, b1=line(30_500) + line(1_000) + line(31_000))
    (tmp_path / "broker-1" / "kafkaServer.out").write_text(line(1_000) + line(31_000))
    merge = prepare(find_sources([str(tmp_path)]))
    assert [event.logged_ms % 3_600_000 for event in merge.events() if event.logged_ms] == [
        30_500,
        1_000,
        31_000,
    ]


def test_standard_input_is_not_compared_with_since_it_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(
        f"[2026-11-21 13:00:0{n},000] INFO [KafkaServer id=1] x (kafka.server.KafkaServer)\n"
        for n in range(4)
    )
    (tmp_path / "kafkaServer.out").write_text(text)
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    monkeypatch.setattr("sys.stdin", os.fdopen(reading))
    merge = prepare(find_sources([STDIN, str(tmp_path / "kafkaServer.out")]))
    assert sorted(event.file == STDIN for event in merge.events()) == [False] * 4 + [True] * 4


def test_captured_output_repeats_nothing(tmp_path: Path) -> None:
    write(tmp_path, b1=line(1) + line(2))
    captured = tmp_path / "broker-1" / "kafkaServer.out"
    captured.write_text("OpenJDK warning\n" + line(1) + line(2) + line(3))
    paths = [str(tmp_path / "broker-1" / "state-change.log"), str(captured)]
    merge = prepare(find_sources(paths))
    said = [event.line for event in merge.events() if event.shape.is_record]
    assert said == [1, 2, 4]


def test_the_same_file_given_twice_is_read_once(tmp_path: Path) -> None:
    path = write(tmp_path, b1=line(1)) / "broker-1" / "state-change.log"
    link = tmp_path / "state-change.log"
    link.hardlink_to(path)
    found = find_sources([str(path), str(link)])
    assert len(list(prepare(found).events())) == 1
    assert [finding.code for finding in found.findings] == ["log-given-twice"]


# --- lines ------------------------------------------------------------------------------------------------


def test_stack_traces_and_wrapped_lists_stay_with_their_line(tmp_path: Path) -> None:
    text = (
        "[2026-11-21 13:00:00,001] ERROR [Controller id=1 epoch=1] Controller 1 epoch 1 failed to change state for"
        " partition t-0 from OfflinePartition to OnlinePartition (state.change.logger)\n"
        "kafka.common.StateChangeFailedException: no\n\tat kafka.X(Y.scala:1)\n"
        "[2026-11-21 13:00:00,002] INFO KafkaConfig values: \n\tbroker.id = 1\n\tx = y\n (kafka.server.KafkaConfig)\n"
    )
    write(tmp_path, b1=text)
    one, two = read_events([str(tmp_path)])
    assert (one.event, one.fields["topic"], one.fields["partition"]) == ("C22", "t", 0)
    assert one.text.endswith("at kafka.X(Y.scala:1)")
    assert (two.logger, two.line) == ("kafka.server.KafkaConfig", 4)
    assert "broker.id = 1" in two.text


@pytest.mark.slow
def test_bytes_that_are_no_text_and_lines_of_ten_megabytes(tmp_path: Path) -> None:
    wide = line(2, text="x" * 10_000_000)
    write(
        tmp_path,
        b1=line(1, text="\udcff\udcfe broken").encode("utf-8", "surrogateescape")
        + wide.encode()
        + line(3).encode(),
    )
    events = list(read_events([str(tmp_path)]))
    assert [event.line for event in events] == [1, 2, 3]
    assert "\\xff\\xfe broken" in events[0].text


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (
            "%d{ISO8601} [%t] %-5p %c - %m%n",
            "2026-11-21 13:00:00,001 [main] INFO  state.change.logger - {}\n",
        ),
        (  # Strimzi's, of log4j 1 and 2
            "%d{ISO8601} %p %m (%c) [%t]%n",
            "2026-11-21 13:00:00,001 INFO {} (state.change.logger) [controller-event-thread]\n",
        ),
        (
            "%d %-5p [%t] %c:%L - %m%n",
            "2026-11-21 13:00:00.001 INFO  [controller-event-thread] state.change.logger:66 - {}\n",
        ),
        (
            "%d %p [%c] [%t] [%X] [%X] %m%n",
            "2026/11/21 13:00:00.001 INFO [state.change.logger] [request-handler-7] [kafka-server] [] {}\n",
        ),
        ("[%d] %p [%t] %m (%c)%n", "[2026-11-21 13:00:00,001] INFO [main] {} (state.change.logger)\n"),
        (
            "%d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX} %p %c: %m%n",
            "2026-11-21T15:00:00.001+02:00 INFO state.change.logger: {}\n",
        ),
        (
            "json",
            '{{"@timestamp":"2026-11-21T13:00:00.001Z","level":"INFO","logger":"state.change.logger","message":"{}"}}\n',
        ),
        (
            "json",
            '{{"timeMillis":1795266000001,"level":"INFO","loggerName":"state.change.logger","message":"{}"}}\n',
        ),
        (  # log4j's JsonLayout as it comes
            "json, indented",
            '{{\n  "instant" : {{\n    "epochSecond" : 1795266000,\n    "nanoOfSecond" : 1000000\n  }},\n'
            '  "thread" : "main",\n  "level" : "INFO",\n  "loggerName" : "state.change.logger",\n'
            '  "message" : "{}",\n  "endOfBatch" : true\n}}\n',
        ),
        (  # logback's with `prettyPrint`, which ends no line behind an object
            "json, indented",
            '{{\n  "timestamp" : "1795266000001",\n  "level" : "INFO",\n  "thread" : "main",\n'
            '  "logger" : "state.change.logger",\n  "message" : "{}",\n  "context" : "default"\n}}',
        ),
        (  # Spring Boot
            "%d %5p %r --- [%t] %-40.40c : %m%n",
            "2026-11-21T13:00:00.001Z  INFO 1 --- [           main] state.change.logger                      : {}\n",
        ),
        ("%d{UNIX_MILLIS} %p %m (%c)%n", "1795266000001 INFO {} (state.change.logger)\n"),
        ("[%d{UNIX_MILLIS}] [%p] %m (%c)%n", "[1795266000001] [INFO] {} (state.change.logger)\n"),
        ("%d{UNIX_MILLIS} [%t] %p %m (%c)%n", "1795266000001 [main] INFO {} (state.change.logger)\n"),
        ("%d %p (%c) %m%n", "2026-11-21 13:00:00,001 INFO (state.change.logger) {}\n"),
        ("[%d] %p (%c) %m%n", "[2026-11-21 13:00:00,001] INFO (state.change.logger) {}\n"),
        (  # since 3.2, with the name of the application
            "%d %5p %r --- [%t] %-40.40c : %m%n",
            "2026-11-21T13:00:00.001Z  INFO 1 --- [kafka] [main] state.change.logger                      : {}\n",
        ),
    ],
)
def test_other_layouts(tmp_path: Path, pattern: str, text: str) -> None:
    said = "[Broker id=3] Leader t-0 starts at leader epoch 4 from offset 5 with high watermark 5 ISR [3,1] addingReplicas [] removingReplicas []. Previous leader epoch was 3."
    path = tmp_path / "broker-3.log"
    path.write_text(text.format(said) * 3)
    for layouts in ((), (layout_of_pattern(pattern),)):
        events = list(prepare(find_sources([str(path)], layouts=layouts)).events())
        assert [event.event for event in events] == ["L01"] * 3
        assert {event.time for event in events} == {"2026-11-21T13:00:00.001Z"}
        assert events[0].fields["isr"] == [3, 1]
        assert events[0].broker_id == 3
        assert [event.text for event in events] == [said] * 3


def test_an_object_inside_an_indented_record_begins_none(tmp_path: Path) -> None:
    thrown = {
        "message": "no space",
        "extendedStackTrace": [{"class": "kafka.log.Log", "line": 1}, {"class": "x"}],
    }
    records = [
        {
            "timeMillis": 1795266000001,
            "thrown": thrown,
            "loggerName": "kafka.server.KafkaServer",
            "message": said,
        }
        for said in (
            "[KafkaServer id=1] starting",
            "[KafkaServer id=1] started",
            "[KafkaServer id=1] shut down completed",
        )
    ]
    told = {}
    for indent in (None, 1, 2, 4):
        (tmp_path / f"server-{indent}.log").write_text(
            "".join(json.dumps(one, indent=indent) + "\n" for one in records)
        )
        events = prepare(find_sources([str(tmp_path / f"server-{indent}.log")])).events()
        told[indent] = [(event.event, event.time, event.broker_id) for event in events]
    assert len(told[None]) == 3 and {tuple(one) for one in told.values()} == {tuple(told[None])}


def test_lines_without_a_date_hide_none_that_have_one(tmp_path: Path) -> None:
    first = "".join(f"10:00:0{n}.000 [main] INFO  init - step\n" for n in range(9))
    then = "2026-11-21 13:00:00,001 [main] INFO  kafka.server.KafkaServer - [KafkaServer id=1] started\n"
    (tmp_path / "server.log").write_text(first + then)
    events = list(prepare(find_sources([str(tmp_path / "server.log")])).events())
    assert [event.time for event in events if event.time] == ["2026-11-21T13:00:00.001Z"]


BY_DAY = "13:00:00.001 [main] INFO  state.change.logger - [Broker id=3] Deleting 1 partition(s).\n"


@pytest.mark.parametrize("dash", [" - ", " -- "])
def test_times_without_a_date_have_the_day_in_the_name_of_their_file(tmp_path: Path, dash: str) -> None:
    """logback's default; past midnight it is the next day, also where a block ends between."""
    text = "".join(BY_DAY.replace("13:00", time) for time in ("13:00", "12:59", "23:59", "00:00", "00:01"))
    path = tmp_path / "server.log.2026-11-21"
    path.write_text(text.replace(" - ", dash))
    for chunk in (1 << 20, 100):
        (source,) = find_sources([str(path)]).sources
        times = [int(t) for block in blocks_of(source, 0, None, Reading(), chunk=chunk) for t in block.times]
        assert [iso(time)[:16] for time in times] == [
            "2026-11-21T13:00", "2026-11-21T12:59", "2026-11-21T23:59", "2026-11-22T00:00", "2026-11-22T00:01",
        ]  # fmt: skip


def test_times_without_a_date_have_the_day_of_what_carried_them(tmp_path: Path) -> None:
    path = tmp_path / "kafka.log"
    path.write_text(f"2026-11-21T23:00:00.123456789Z {BY_DAY}" * 3)  # ten hours behind
    events = list(read_events([str(path)]))
    assert [(event.time, event.event) for event in events] == [("2026-11-21T23:00:00.001Z", "K03")] * 3


def test_the_writers_of_a_log_that_is_left_out_are_not_those_of_its_folder(tmp_path: Path) -> None:
    undated = "".join(
        f"13:00:00.000 [main] INFO kafka.server.KafkaServer - [KafkaServer id={n}] x\n" for n in (1, 2, 1)
    )
    (tmp_path / "controller.log").write_text(undated)
    (tmp_path / "server.log").write_text(
        "[2026-11-21 13:00:03,003] INFO [KafkaServer id=1] x (kafka.server.KafkaServer)\n"
    )
    (tmp_path / "state-change.log").write_text("[2026-11-21 13:00:01,000] INFO hello (state.change.logger)\n")
    assert {source.broker_id for source in find_sources([str(tmp_path)]).sources} == {1}


def test_a_log_without_dates_is_left_out_and_told(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text(BY_DAY * 3)
    found = find_sources([str(tmp_path)])
    assert not found.sources
    [finding] = found.findings
    assert finding.code == "log-without-date" and "%d{HH:mm:ss.SSS}" in finding.message


# --- time -------------------------------------------------------------------------------------------------


def test_zones_are_told_by_start_up_lines() -> None:
    """Three brokers logged in UTC, Tokyo and St. John's; state-change logs alone say nothing of it."""
    folder = recording("incidents/zones-2.8")
    logs = [str(path) for path in sorted(folder.glob("broker-*/logs/state-change.log"))]
    for paths in ([str(folder)], logs):
        merge = prepare(find_sources(paths))
        names = {broker: zone.name for broker, zone in merge.zones.items()}
        assert names == {1: "+00:00", 2: "+09:00", 3: "-03:30"}


def test_skew_is_measured_where_zones_are_not_known() -> None:
    folder = recording("incidents/zones-2.8")
    logs = [str(path) for path in sorted(folder.glob("broker-*/logs/state-change.log"))]
    utc = {broker: zone_named("UTC") for broker in (1, 2, 3)}
    skew = estimate_skew(read_events(logs, zones=utc))
    assert skew.reference == 2
    assert skew.ahead == {1: -9 * 3_600_000, 3: -45_000_000}


def test_the_repeated_hour_of_a_named_zone_is_passed_twice() -> None:
    zone = zone_named("Europe/Berlin")
    minutes = [*range(60, 180, 10), *range(120, 240, 10)]  # 01:00 to 02:50, then from 02:00 on again
    local = np.array([1_792_886_400_000 + m * 60_000 for m in minutes], np.int64)  # 25 October 2026
    utc = zone.to_utc(local)
    assert (np.diff(utc) > 0).all()
    assert iso(int(utc[0])) == "2026-10-24T23:00:00.000Z"
    assert iso(int(utc[-1])) == "2026-10-25T02:50:00.000Z"


def test_a_clock_that_steps_back_keeps_the_order_of_the_file(tmp_path: Path) -> None:
    write(tmp_path, b1=line(1_000_000) + line(2_000) + line(2_001), b2=line(1_500, 2))
    merge = prepare(find_sources([str(tmp_path)]))
    events = list(merge.events())
    assert [(event.broker_id, event.logged_ms % 3_600_000) for event in events if event.logged_ms] == [
        (2, 1_500), (1, 1_000_000), (1, 2_000), (1, 2_001),
    ]  # fmt: skip
    assert [finding.code for finding in merge.reading.findings] == ["log-clock-back"]


def test_offsets_of_a_zone_change_with_the_start_that_tells_them() -> None:
    zone = Zone("", since=[1000, 2000], offsets=[100, 300])
    assert zone.to_utc(np.array([500, 1500, 2500], np.int64)).tolist() == [400, 1400, 2200]


# --- damage -----------------------------------------------------------------------------------------------


def test_a_torn_gzip_gives_what_it_has(tmp_path: Path) -> None:
    lines = "".join(line(n, text=f"Deleting {random.Random(n).random()} partition(s).") for n in range(2000))
    packed = gzip.compress(lines.encode())
    path = tmp_path / "broker-1" / "state-change.log.1.gz"
    path.parent.mkdir()
    path.write_bytes(packed[: len(packed) // 2])
    merge = prepare(find_sources([str(tmp_path)]))
    count = len(list(merge.events()))
    assert 500 < count < 2000
    assert [finding.code for finding in merge.reading.findings] == ["log-compression-damaged"]


@pytest.mark.parametrize("where", [0.5, 1.0])
def test_a_gzip_that_breaks_in_the_middle_gives_what_comes_before(tmp_path: Path, where: float) -> None:
    lines = "".join(line(n, text=f"Deleting {random.Random(n).random()} partition(s).") for n in range(2000))
    packed = bytearray(gzip.compress(lines.encode()))
    at = min(int(len(packed) * where), len(packed) - 8)  # the checksum at the end
    packed[at : at + 8] = bytes(byte ^ 0xA5 for byte in packed[at : at + 8])
    path = tmp_path / "broker-1" / "state-change.log.1.gz"
    path.parent.mkdir()
    path.write_bytes(packed)
    merge = prepare(find_sources([str(tmp_path)]))
    assert len(list(merge.events())) >= 2000 * where * 0.9
    assert [finding.code for finding in merge.reading.findings] == ["log-compression-damaged"]


def test_a_gzip_that_gives_nothing_is_damaged_not_empty(tmp_path: Path) -> None:
    path = tmp_path / "broker-1" / "state-change.log.1.gz"
    path.parent.mkdir()
    path.write_bytes(b"\x1f\x8b\x08" + b"\xff" * 50)
    assert [one.code for one in find_sources([str(tmp_path)]).findings] == ["log-compression-damaged"]


def test_binary_and_empty_files_are_findings(tmp_path: Path) -> None:
    write(tmp_path, b1=bytes(range(256)) * 100, b2="", b3=line(1, 3))
    found = find_sources([str(tmp_path)])
    assert sorted(finding.code for finding in found.findings) == ["log-empty", "log-not-text"]
    assert len(list(prepare(found).events())) == 1


def test_a_log_of_blank_lines_is_empty(tmp_path: Path) -> None:
    write(tmp_path, b1="\r\n", b2=line(1))
    found = find_sources([str(tmp_path)])
    assert [finding.code for finding in found.findings] == ["log-empty"]


def test_a_zone_that_changes_between_two_starts_is_a_finding(tmp_path: Path) -> None:
    start = "[2026-11-21 {:02d}:00:00,000] INFO Kafka startTimeMs: {} (org.apache.kafka.common.utils.AppInfoParser)\n"
    log = tmp_path / "broker-1" / "server.log"
    log.parent.mkdir()
    first = 1_795_262_400_000  # 12:00 UTC
    log.write_text(start.format(14, first) + start.format(16, first + 3 * 3_600_000))
    found = find_sources([str(tmp_path)])
    events = list(prepare(found).events())
    assert [finding.code for finding in found.findings] == ["log-zone-changed"]
    assert [event.time for event in events] == ["2026-11-21T12:00:00.000Z", "2026-11-21T15:00:00.000Z"]


def test_a_log_that_cannot_be_read_is_a_finding_below_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, b1=line(1), b2=line(2, 2))
    real = sources.chunks_of

    def failing(path: str, *arguments: Any, **options: Any) -> Iterator[bytes]:
        if "broker-1" in path:
            raise OSError(5, "Input/output error")
        return real(path, *arguments, **options)

    monkeypatch.setattr(sources, "chunks_of", failing)
    found = find_sources([str(tmp_path)])
    assert [finding.code for finding in found.findings] == ["log-unreadable"]
    assert [event.broker_id for event in prepare(found).events()] == [2]
    named = find_sources([str(tmp_path / "broker-1" / "state-change.log")])
    assert "input/output error" in str(named.failures[0])


# --- what carries lines -----------------------------------------------------------------------------------

STARTS = (
    "[Broker id=3] Leader t-0 starts at leader epoch 4 from offset 5 with high watermark 5 ISR [3,1] "
    "addingReplicas [] removingReplicas []. Previous leader epoch was 3."
)
TRACE = "java.lang.IllegalStateException: no\n\tat kafka.X(Y.scala:1)\n"
# Written by a broker in Tokyo; what carried the lines names UTC.
PLAIN = (
    f"[2026-11-21 22:00:00,001] ERROR {STARTS} (state.change.logger)\n{TRACE}"
    f"[2026-11-21 22:00:00,002] INFO {STARTS} (state.change.logger)\n"
)
STAMP = "2026-11-21T13:00:00.003456789Z"


def each(prefix: str) -> str:
    return "".join(prefix + text for text in PLAIN.splitlines(keepends=True))


def json_lines(key: str, **more: object) -> str:
    return "".join(json.dumps({key: text, **more}) + "\n" for text in PLAIN.splitlines(keepends=True))


LOCAL, UTC = "2026-11-21T22:00:00.001Z", "2026-11-21T13:00:00.001Z"
CARRIED: dict[str, tuple[str, str]] = {
    "compose": (each("kafka-3  | "), LOCAL),
    "compose in colours": (each("\x1b[36mkafka-3  | \x1b[0m"), LOCAL),
    "compose -t": (each(f"kafka-3  | {STAMP} "), UTC),
    "colours": (PLAIN.replace("INFO", "\x1b[32mINFO\x1b[0m").replace("ERROR", "\x1b[31mERROR\x1b[0m"), LOCAL),
    "Kubernetes node": (each(f"{STAMP} stdout F "), UTC),
    "kubectl --timestamps": (each(f"{STAMP} "), UTC),
    "kubectl --prefix": (each("[pod/kafka-3/kafka] "), LOCAL),
    "kubectl --prefix --timestamps": (each(f"[pod/kafka-3/kafka] {STAMP} "), UTC),
    "stern": (each("my-cluster-kafka-3 kafka "), LOCAL),
    "journald short-iso": (each("2026-11-21T14:00:00+0100 host kafka-server-start.sh[812]: "), UTC),
    "journald short": (each("Nov 21 22:00:00 host kafka[812]: "), LOCAL),
    "journald -o json": (
        json_lines("MESSAGE", __REALTIME_TIMESTAMP="1795266000003000", _COMM="java"), UTC,
    ),
    "RFC 5424": (each("<14>1 2026-11-21T13:00:00.173Z host kafka 812 - - "), UTC),
    "json-file": (json_lines("log", stream="stdout", time=STAMP), UTC),
    "shipper": (json_lines("message", **{"@timestamp": STAMP, "kubernetes": {"pod": "kafka-3"}}), UTC),
}  # fmt: skip


@pytest.mark.parametrize("name", CARRIED)
def test_lines_of_containers_and_services_are_read(tmp_path: Path, name: str) -> None:
    text, first_time = CARRIED[name]
    path = tmp_path / "kafka.log"
    path.write_text(text)
    for path_given in (tmp_path, path):
        one, two = prepare(
            find_sources([str(path_given)]), zones={None: zone_named("UTC"), 3: zone_named("UTC")}
        ).events()
        assert (one.event, two.event) == ("L01", "L01")
        assert (one.time, one.line, two.line) == (first_time, 1, 4)
        assert (one.broker_id, one.fields["isr"], one.fields["topic"]) == (3, [3, 1], "t")
        assert one.text == f"{STARTS}\n{TRACE.rstrip()}"
        assert two.text == STARTS


def test_a_level_is_no_host_of_the_system_log(tmp_path: Path) -> None:
    """Cloudera's layout has a time, then two words and a colon, as the system's log has."""
    path = tmp_path / "kafka-broker-host.log"
    loggers = [
        "kafka.server.KafkaServer",
        "kafka.controller.KafkaController",
        "kafka.utils.Registration$",
    ] * 9
    path.write_text("".join(f"2026-11-21 13:00:00,001 INFO {name}: a line\n" for name in loggers))
    assert [event.logger for event in read_events([str(path)])] == loggers


def test_the_broker_of_a_line_is_not_the_number_of_its_container(tmp_path: Path) -> None:
    path = tmp_path / "compose.log"
    said = "[2026-11-21 13:00:00,001] INFO [Broker id={}] Deleting 1 partition(s). (state.change.logger)\n"
    path.write_text("kafka-1  | " + said.format(7) + "kafka-2  | " + said.format(8))
    assert [event.broker_id for event in read_events([str(path)])] == [7, 8]


ENCODINGS = {
    "UTF-8 with a mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "UTF-16": PLAIN.encode("utf-16"),
    "UTF-16, big end first": b"\xfe\xff" + PLAIN.encode("utf-16-be"),
    "CRLF": PLAIN.replace("\n", "\r\n").encode(),
    "xz": lzma.compress(PLAIN.encode()),
    "zstd": zstandard.ZstdCompressor().compress(PLAIN.encode()),
    "UTF-16 in gzip": gzip.compress(PLAIN.encode("utf-16")),
}


@pytest.mark.parametrize(
    "name", ["server.log", "server.log.2026-11-21-13", "server.log.1", "kafkaServer.out"]
)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_encodings_and_names(tmp_path: Path, name: str, encoding: str) -> None:
    path = tmp_path / name
    path.write_bytes(ENCODINGS[encoding])
    one, two = read_events([str(tmp_path)])
    assert (one.event, two.event, one.line, two.line) == ("L01", "L01", 1, 4)
    assert one.text.replace("\r", "") == f"{STARTS}\n{TRACE.rstrip()}"


def test_an_xz_file_that_breaks_off(tmp_path: Path) -> None:
    path = tmp_path / "server.log.1.xz"
    path.write_bytes(lzma.compress(PLAIN.encode() * 5000)[:-40])
    merge = prepare(find_sources([str(path)]))
    assert list(merge.events())
    assert "log-compression-damaged" in {finding.code for finding in merge.reading.findings}


def test_an_xz_file_of_several_streams_with_padding(tmp_path: Path) -> None:
    path = tmp_path / "server.log.xz"
    path.write_bytes(
        lzma.compress(PLAIN.encode(), preset=9) + bytes(8) + lzma.compress(PLAIN.encode()) + bytes(4)
    )
    merge = prepare(find_sources([str(path)]))
    assert len(list(merge.events())) == 4
    assert not merge.reading.findings


def test_an_xz_file_that_asks_for_more_memory_than_any_log_does(tmp_path: Path) -> None:
    """A dictionary is filled with what is unpacked: one of a gibibyte took that much."""
    path = tmp_path / "server.log.xz"
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 128 << 20}]
    path.write_bytes(lzma.compress(PLAIN.encode(), filters=filters))
    ran = rows("state-log", "merge", path)
    assert ran.status == 5 and not ran.of("event")
    assert any("memory usage limit" in finding["message"] for finding in ran.of("finding"))


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("2026.325 13:00:00 INFO kafka.server.KafkaServer: a\n", "%d{ISO8601} %-5p %c: %m%n"),
        ("kafka-3  | something without a time\n", "docker compose logs"),
    ],
)
def test_of_an_unknown_layout_the_nearest_known_one_is_told(tmp_path: Path, text: str, known: str) -> None:
    path = tmp_path / "server.log"
    path.write_text(text * 200)
    (finding,) = find_sources([str(tmp_path)]).findings
    assert finding.code == "log-not-text"
    assert repr(known) in finding.message


def test_lines_of_unlikely_years_are_placed_by_their_neighbours_and_told(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    times = ["1970-01-01 00:00:03", "2026-11-21 13:00:00", "2000-01-01 00:00:00", "2569-11-21 13:00:05"]
    log.write_text("".join(f"[{time},000] INFO line (kafka.server.KafkaServer)\n" for time in times))
    merging = prepare(find_sources([str(log)]))
    assert [event.time for event in merging.events()] == [
        "2026-11-21T13:00:00.000Z",
        "2026-11-21T13:00:00.000Z",
        "2026-11-21T13:00:00.000Z",
        "2026-11-21T13:00:05.000Z",
    ]
    [finding] = merging.reading.findings
    assert finding.code == "log-year-unlikely" and "Line 1 " in finding.message and "1970" in finding.message


@pytest.mark.parametrize(
    ("layout", "line"),
    [
        (r"(?P<level>[A-Z])\|(?P<time>[^|]*)\|(?P<logger>[\w.]+)\|(?P<message>.*)", "I|2026-11-21 13:00:05,000|kafka.server.KafkaServer|starting"),
        ("docker compose logs", "kafka-1  | [2026-11-21 13:00:05,000] INFO starting (kafka.server.KafkaServer)"),
        ("Kafka", "[2026-11-21 13:00:05,000] INFO starting (kafka.server.KafkaServer)"),
    ],
)  # fmt: skip
def test_a_layout_is_given_by_its_name_or_described(tmp_path: Path, layout: str, line: str) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"{line}\njava.lang.Exception: trace\n")
    found = find_sources([str(log)], layouts=layouts_of([], [layout]))
    [event] = prepare(found).events()
    assert (event.time, event.event, event.message) == ("2026-11-21T13:00:05.000Z", "U11", "starting")


@pytest.mark.parametrize("layout", ["no such name", "(", "(?P<time>.*)"])
def test_what_is_neither_a_layout_nor_describes_one_is_wrong_usage(layout: str) -> None:
    with pytest.raises(BadValue, match="--layout") as raised:
        layouts_of([], [layout])
    assert "--pattern" in raised.value.hint
    described = re.findall(r"'([^']*)'", raised.value.hint)
    # What the hint says is a layout is one.
    assert len(layouts_of(described[1:], described[:1])) == 2


@pytest.mark.parametrize(
    ("line", "system", "records"),
    [
        (
            "INFO  2026-11-21 13:00:05,000 [shard 0:main] cluster - members_manager.cc:88 - joined",
            "Redpanda",
            0,
        ),
        ("[2026-11-21 13:00:05,000] INFO opened (com.automq.stream.s3.S3Storage)", "AutoMQ", 1),
    ],
)
def test_logs_of_other_systems_are_told_and_not_called_damaged(
    tmp_path: Path, line: str, system: str, records: int
) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"{line}\n")
    found = find_sources([str(log)])
    assert [(f.code, f.severity, system in f.message) for f in found.findings] == [
        ("log-of-another-system", "info", True)
    ]
    assert len(list(prepare(found).events())) == records


@pytest.mark.parametrize("lines", [100, 2_000])
def test_a_thread_before_each_message_tells_a_layout_of_short_and_of_long_logs(lines: int) -> None:
    text = "".join(
        f"[2026-11-21 13:{n // 60:02d}:{n % 60:02d},000] INFO [main] x is done (kafka.log.LogManager)\n"
        for n in range(lines)
    )
    layout, first = detect(text.encode())
    assert layout is not None and layout.name == "[%d] %p [%t] %m (%c)%n"
    assert first == detect(text.replace("[main] ", "").encode())[1]
