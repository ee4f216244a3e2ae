"""Times on a terminal: in UTC, or in the zone of the machine where KCTL_LOCAL_TIME is set."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.cli.clock import clock, day, shown
from commands.cli.render import Page, aligned
from commands.replica.explain_text import explain_text
from commands.state_log_chart import chart
from tests.conftest import kctl

AT = 1_795_267_112_931
BEFORE_MIDNIGHT = "2026-11-21T23:30:00.000Z"
EXAMPLE = str(Path(__file__).parents[2] / "examples/unclean-election")


@pytest.fixture(params=["", "1"], ids=["utc", "local"])
def local(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    monkeypatch.setenv("KCTL_LOCAL_TIME", request.param)
    time.tzset()
    yield bool(request.param)
    monkeypatch.undo()
    time.tzset()


def test_times(local: bool) -> None:
    assert shown(AT) == ("2026-11-21T18:48:32.931+05:30" if local else "2026-11-21T13:18:32.931Z")
    assert (day(BEFORE_MIDNIGHT), clock(BEFORE_MIDNIGHT)) == (
        ("2026-11-22 +05:30", "05:00:00.000") if local else ("2026-11-21 UTC", "23:30:00.000")
    )
    for other in ("", "soon", "fooZ", "9999-12-31T23:59:59.999Z"[:-1]):
        assert shown(other) == other
    assert shown(10**17) == f"{10**17} ms"


def test_cells_of_any_table(local: bool) -> None:
    lines = list(aligned([{"kind": "x", "time": BEFORE_MIDNIGHT, "id": 1}], Page(100, color=False)))
    assert lines[1].split()[0] == ("2026-11-22T05:00:00.000+05:30" if local else BEFORE_MIDNIGHT)


def test_a_timeline_says_day_and_zone(local: bool) -> None:
    row = {
        "kind": "broker_state", "broker_id": 1, "state": "up", "how": None, "cause": None, "evidence": [], "time": BEFORE_MIDNIGHT,
    }  # fmt: skip
    later = {**row, "time": "2026-11-22T00:10:00.000Z"}
    lines = [line.strip() for line in chart([row, later], Page(100, color=False))]
    if local:
        assert lines[:2] == ["brokers", "2026-11-22 +05:30"]
        assert [line.split()[0] for line in lines[2:4]] == ["05:00:00.000", "05:40:00.000"]
    else:
        assert [line.split()[0] for line in lines[:5]] == [
            "brokers", "2026-11-21", "23:30:00.000", "2026-11-22", "00:10:00.000",
        ]  # fmt: skip


def test_an_explanation_says_day_and_zone(local: bool) -> None:
    row = {
        "topic": "a", "partition": 0, "offset": 1, "what": "written", "text": "written", "time": BEFORE_MIDNIGHT,
        "file": None, "line": None,
    }  # fmt: skip
    lines = list(explain_text([row], Page(100, color=False)))
    assert lines[0].endswith("2026-11-22 +05:30" if local else "2026-11-21 UTC")
    assert lines[-1].split()[0] == ("05:00:00.000" if local else "23:30:00.000")


@pytest.mark.slow
def test_the_option_and_its_variable(local: bool) -> None:
    def zone(*options: str) -> str:
        ran = kctl(
            "state-log", "timeline", EXAMPLE, "--topic", "ledger", "--partition", "0", *options, columns=80
        )
        return "local" if "+05:30" in ran.out.decode() else "utc"

    assert zone() == ("local" if local else "utc")
    assert (zone("--local-time"), zone("--utc")) == ("local", "utc")


@pytest.mark.parametrize("given", ["0", "false", "no"])
def test_a_variable_that_says_no_is_no(local: bool, given: str) -> None:
    ran = kctl(
        "state-log", "timeline", EXAMPLE, "--topic", "ledger", columns=80, env={"KCTL_LOCAL_TIME": given}
    )
    assert "+05:30" not in ran.out.decode() and "UTC" in ran.out.decode()


def test_rows_stay_in_utc(local: bool) -> None:
    ran = kctl("state-log", "timeline", EXAMPLE, "--topic", "ledger", "--partition", "0", "--output", "jsonl")
    assert b'"from_time":"2026-11-21T13:18:27.173Z"' in ran.out


def test_the_journal_takes_a_line_a_change() -> None:
    from commands.journal import changes_text

    row = {
        "kind": "change", "id": "2026-11-21T14:03:11Z-5f2c9a", "who": "root@vm", "state": "partly_applied",
        "title": "create topic orders", "finished": False, "reason": "OPS-812", "outcome": None,
    }  # fmt: skip
    assert list(changes_text([row], Page(80, color=False))) == [
        "2026-11-21T14:03:11Z-5f2c9a  root@vm  partly applied, not finished  create topic orders",
        "    reason: OPS-812",
    ]
