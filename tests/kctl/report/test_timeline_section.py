"""The report's section on leaders: every leadership is in it, nothing of the evidence can write the page."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest

from kctl.broker_logs.history.timeline import timeline
from kctl.broker_logs.merging import read_events
from kctl.report.timeline import leaders_section, leadership_of
from tests.conftest import recording

EVIL = '"><script>alert(1)</script>&'


class Tags(HTMLParser):
    """The tags of a page, in order; a page that is no tree fails."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def count(self, tag: str, class_: str | None = None) -> int:
        return sum(
            name == tag and (class_ is None or given.get("class") == class_) for name, given in self.seen
        )


def rows(name: str) -> list[dict[str, object]]:
    found = timeline(read_events([str(recording(name))]))
    return [one.row() for ones in found.leaderships.values() for one in ones]


def parsed(made: list[dict[str, object]]) -> Tags:
    page = leaders_section(made)
    assert page is not None
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    return tags


def test_partitions_of_one_history_are_one_row_and_every_unclean_election_has_a_mark() -> None:
    made = rows("incidents/unclean-2.8")
    tags = parsed(made)
    one = [row for row in made if row["topic"] == "ledger" and row["partition"] == 0]
    page = leaders_section(made)
    assert page is not None
    assert "ledger-0 … ledger-2 (3)" in page
    assert sum(row["how"] == "unclean" for row in made) == 3
    assert tags.count("text", "unclean") == 1
    assert tags.count("rect", "none") == sum(row["leader"] == -1 for row in one) == 1
    assert tags.count("script") == 0


def test_partitions_that_changed_at_other_times_stay_apart() -> None:
    made = [row for row in rows("incidents/unclean-2.8") if row["topic"] == "ledger"]
    later = [
        {**row, "from_time": str(row["from_time"]).replace("T13:", "T14:")} if row["partition"] == 1 else row
        for row in made
    ]
    page = leaders_section(later)
    assert page is not None
    assert "(3)" not in page
    assert "ledger-0 … ledger-2 (2)" in page


def test_every_bar_leads_to_its_line() -> None:
    folder = str(recording("incidents/unclean-2.8"))
    history = timeline(read_events([folder]))
    page = leaders_section(
        [one.row() for ones in history.leaderships.values() for one in ones],
        [state.row() for state in history.brokers],
    )
    assert page is not None
    tags = Tags()
    tags.feed(page)
    wanted = [str(given["href"])[1:] for name, given in tags.seen if name == "a"]
    ids = {given["id"] for name, given in tags.seen if name == "tr" and "id" in given}
    assert len(wanted) == len(set(wanted)) > 5
    assert set(wanted) == ids
    assert tags.count("text", "life") > 3
    assert "broker-3/logs/state-change.log:176" in page


@pytest.mark.slow
def test_rows_from_tables_hold_lists_as_json() -> None:
    for row in rows("incidents/life-3.9"):
        stored = {key: json.dumps(value) if isinstance(value, list) else value for key, value in row.items()}
        assert leadership_of(stored) == leadership_of(row)


def test_evidence_cannot_write_the_page() -> None:
    made = [{**row, "topic": EVIL, "cause": EVIL} for row in rows("incidents/unclean-2.8")]
    page = leaders_section(made)
    assert page is not None
    assert "<script" not in page
    assert parsed(made).count("text", "unclean") == 1


@pytest.mark.slow
def test_five_hundred_histories_have_low_rows_and_quiet_ones_are_counted() -> None:
    made = rows("incidents/life-2.8")
    alike = [{**row, "topic": f"{row['topic']}-{n}"} for n in range(50) for row in made]
    page = leaders_section(alike)
    assert page is not None
    assert 'class="low"' not in page, "the same history in many topics is one row"
    many = [
        {**row, "leader_epoch": int(str(row["leader_epoch"])) + n}
        for n, row in zip(range(10**6), alike, strict=False)
    ]
    quiet = [{**made[0], "topic": "quiet", "partition": n, "to_time": None} for n in range(7)]
    page = leaders_section(many + quiet)
    assert page is not None
    assert 'class="low"' in page
    assert "7 more partitions without a picture" in page
    assert leaders_section([]) is None
