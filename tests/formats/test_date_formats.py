"""Dates of log4j's patterns; the texts are what `SimpleDateFormat` of Java 17 printed for one time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.broker_logs.date_formats import date_format, zone_of
from formats.broker_logs.layouts import layout_of_pattern
from formats.errors import FormatError
from tests.conftest import kctl, rows

MILLIS = 1_795_267_107_173
INDIA = int(5.5 * 3_600_000)
# Letters, what they print in UTC, and in Asia/Kolkata.
PRINTED = (
    ("dd MMM yyyy HH:mm:ss,SSS", "21 Nov 2026 13:18:27,173", "21 Nov 2026 18:48:27,173"),
    ("DATE", "21 Nov 2026 13:18:27,173", "21 Nov 2026 18:48:27,173"),
    ("dd/MM/yyyy HH:mm:ss.SSS", "21/11/2026 13:18:27.173", "21/11/2026 18:48:27.173"),
    ("dd/MM/yy HH:mm:ss.SSS", "21/11/26 13:18:27.173", "21/11/26 18:48:27.173"),
    ("ISO8601_BASIC", "20261121T131827,173", "20261121T184827,173"),
    ("COMPACT", "20261121131827173", "20261121184827173"),
    ("yyyy-MM-dd hh:mm:ss.SSS a", "2026-11-21 01:18:27.173 PM", "2026-11-21 06:48:27.173 PM"),
    ("EEEE, d MMMM yyyy H:m:s.SSS", "Saturday, 21 November 2026 13:18:27.173", "Saturday, 21 November 2026 18:48:27.173"),
    ("yyyy.DDD kk:mm:ss.SSS", "2026.325 13:18:27.173", "2026.325 18:48:27.173"),
    ("yyyy-MM-dd 'at' HH 'o''clock' mm:ss.SSS", "2026-11-21 at 13 o'clock 18:27.173", "2026-11-21 at 18 o'clock 48:27.173"),
    ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2026-11-21T13:18:27.173Z", "2026-11-21T18:48:27.173+05:30"),
    ("yyyy-MM-dd HH:mm:ss,SSS Z", "2026-11-21 13:18:27,173 +0000", "2026-11-21 18:48:27,173 +0530"),
    ("MM/dd/yyyy hh:mm:ss.SSS aa z", "11/21/2026 01:18:27.173 PM UTC", "11/21/2026 06:48:27.173 PM IST"),
    ("UNIX_MILLIS", "1795267107173", "1795267107173"),
)  # fmt: skip


@pytest.mark.parametrize(("form", "in_utc", "in_india"), PRINTED, ids=[form for form, *_ in PRINTED])
def test_what_java_prints(form: str, in_utc: str, in_india: str) -> None:
    dates = date_format(form)
    assert dates.has_date and dates.millis(in_utc) == MILLIS
    names_zone = in_utc.endswith(("Z", "+0000", "UTC")) or form.startswith("UNIX")
    assert dates.tells_zone(in_utc) == names_zone
    # Several zones have the abbreviation IST: it tells none.
    is_utc = names_zone and "IST" not in in_india
    assert dates.millis(in_india) == (MILLIS if is_utc else MILLIS + INDIA)
    assert dates.tells_zone(in_india) == is_utc
    if not names_zone:
        there = date_format(form, "Asia/Kolkata")
        assert there.millis(in_india) == MILLIS and there.tells_zone(in_india)


@pytest.mark.parametrize("zone", ["GMT+5:30", "UTC+05:30", "+0530", "+05:30", "Asia/Kolkata"])
def test_zones_of_a_pattern(zone: str) -> None:
    zone_there = zone_of(zone)
    assert zone_there and zone_there.utcoffset(datetime(2026, 1, 1)) == timedelta(hours=5.5)


@pytest.mark.parametrize(
    ("form", "zone", "words"),
    [
        ("dd MMM HH:mm:ss", None, "has no year"),
        ("yyyy-MM HH:mm", None, "has no day"),
        ("yyyy-MM-dd", None, "has no hour"),
        ("yyyy-MM-dd 'at HH:mm", None, "does not end"),
        ("yyyy-bb-dd HH", None, "'b' is no letter of a date"),
        ("HH:mm HH", None, "has a part twice"),
        ("yyyy-MM-dd HH:mm:ss", "PST", "is no zone"),
        ("yyyy-MM-dd HH:mm:ss", "Nowhere/Land", "is no zone"),
    ],
)
def test_what_is_no_date_is_said(form: str, zone: str | None, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        date_format(form, zone)


@pytest.mark.parametrize(
    "text", ["31/02/2026 13:18:27.173", "21/13/2026 13:18:27.173", "21/11/2026", "21/11/0000 13:18:27.173"]
)
def test_times_that_are_none(text: str) -> None:
    assert date_format("dd/MM/yyyy HH:mm:ss.SSS").millis(text) is None


@given(st.datetimes(datetime(2011, 1, 1), datetime(2099, 1, 1)), st.text(max_size=30))
def test_each_time_is_read_and_no_text_is_too_strange(then: datetime, text: str) -> None:
    dates = date_format("EEE dd-MMM-yyyy hh:mm:ss,SSS a")
    written = f"{then:%a %d-%b-%Y %I:%M:%S},{then.microsecond // 1000:03} {then:%p}"
    assert dates.millis(written) == int((then.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1))  # fmt: skip
    dates.millis(text)


LINES = (
    ("%d{DATE} %-5p [%t] %c - %m%n", "21 Nov 2026 13:18:27,173 INFO  [main] kafka.server.KafkaServer - [KafkaServer id=3] started"),
    ("%d{dd.MM.yyyy HH:mm:ss,SSS} [%p] %c: %m%n", "21.11.2026 13:18:27,173 [INFO] kafka.server.KafkaServer: [KafkaServer id=3] started"),
    ("%p %d{yyyy-MM-dd HH:mm:ss.SSS}{GMT+1} %c %m%n", "INFO 2026-11-21 14:18:27.173 kafka.server.KafkaServer [KafkaServer id=3] started"),
    ("%d{ISO8601}{UTC} %p %m (%c)%n", "2026-11-21T13:18:27,173 INFO [KafkaServer id=3] started (kafka.server.KafkaServer)"),
    ("%d{ISO8601_OFFSET_DATE_TIME_HHCMM} %p %m (%c)%n", "2026-11-21T14:18:27,173+01:00 INFO [KafkaServer id=3] started (kafka.server.KafkaServer)"),
    ("%d{UNIX_MILLIS} %p %c{1} %m%n", "1795267107173 INFO KafkaServer [KafkaServer id=3] started"),
    ("%d{UNIX} %p %c %m%n", "1795267107 INFO kafka.server.KafkaServer [KafkaServer id=3] started"),
)  # fmt: skip


@pytest.mark.parametrize(("pattern", "line"), LINES, ids=[pattern for pattern, _ in LINES])
def test_a_log_of_a_pattern_is_read(tmp_path: Path, pattern: str, line: str) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"{line}\n\tat a.stack.Trace\n{line}\n")
    ran = rows("state-log", "merge", log, "--pattern", pattern)
    expected = "2026-11-21T13:18:27.000Z" if "{UNIX}" in pattern else "2026-11-21T13:18:27.173Z"
    assert [(row["time"], row["event"], row["broker_id"], row["level"]) for row in ran.of("event")] == [
        (expected, "U12", 3, "INFO")
    ] * 2


def test_a_clock_without_a_date_counts_from_midnight(tmp_path: Path) -> None:
    log = tmp_path / "server.log.2026-11-21"
    log.write_text("13:18:27,173 INFO kafka.server.KafkaServer [KafkaServer id=3] started\n")
    (row,) = rows("state-log", "merge", log, "--pattern", "%d{ABSOLUTE} %p %c %m%n").of("event")
    assert row["time"] == "2026-11-21T13:18:27.173Z"


def test_a_pattern_whose_dates_cannot_be_read_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("x\n")
    ran = kctl("state-log", "merge", tmp_path, "--pattern", "%d{dd MMM HH:mm} %m%n")
    assert ran.status == 2 and "has no year" in ran.err


def test_forms_that_the_standard_has_are_read_as_before() -> None:
    for form in ("", "{ISO8601}", "{yyyy-MM-dd HH:mm:ss,SSS}", "{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}", "{DEFAULT}"):
        layout = layout_of_pattern(f"%d{form} %p %m (%c)%n")
        assert len(layout.find(b"2026-11-21 13:18:27,173 INFO x (kafka.X)\n").starts) == 1
