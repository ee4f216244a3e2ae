"""What is claimed about history carries what it stands on: a file, and a line, an offset or a position in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from kctl.findings import FindingType, all_findings
from tests.conftest import recording, recordings, rows

PRESENT = {
    "log-container-unknown": "which parts of a file were not read",
    "log-broker-by-name": "whose lines a file has",
    "log-broker-name-unclear": "whose lines a file has",
    "log-broker-name-differs": "whose lines a file has",
    "replica-copy-missing": "something is not in the evidence",
    "replica-leader-unknown": "something is not in the evidence",
    "replica-moments-undated": "something is not in the evidence",
    "replica-leader-copy-missing": "something is not in the evidence",
    "replica-copy-unreadable": "a file as it is now",
    "replica-not-recovered": "what a running cluster lacks now",
    "replica-other-bytes-same-records": "how many batches of the copies differ in their bytes",
    "log-compression-damaged": "a file as it is now",
    "log-not-text": "a file as it is now",
    "log-without-date": "a file as it is now",
    "log-day-or-month": "how the dates of a file are read",
    "log-unreadable": "a file as it is now",
    "log-empty": "a file as it is now",
    "log-given-twice": "a file as it is now",
    "log-overlap": "a file as it is now",
    "log-of-another-system": "a file as it is now",
    "log-zone-estimated": "worked out from many lines, which it counts",
    "log-clock-doubtful": "worked out from many lines",
    "log-clock-off": "worked out from many lines, which it counts",
    "log-loggers-unknown": "lines that a file has not",
    "log-level-hides-transitions": "lines that a file has not",
}
"""Findings about replicas and logs that claim nothing about what happened, each with what it is about."""

HISTORY = {
    "replica-damaged-copy", "replica-hole", "replica-hole-everywhere", "replica-gap-everywhere",
    "replica-start-missing", "replica-same-payload-other-epoch", "replica-no-common-range",
    "replica-epochs-contradict",
    "replica-topic-recreated", "replica-topic-of-before", "replica-same-under-two-topic-ids", "replica-sent-again", "replica-tail-of-handover",
    "replica-clusters-mixed", "replica-incomplete-copy", "replica-present-incomplete", "replica-undecided-tail",
    "replica-unclean-cost-unknown", "replica-tail-unproven", "replica-stray-records", "log-clock-back", "log-year-unlikely", "log-zone-changed",
    "unclean-leader-election", "last-of-isr-elected", "isr-below-minimum", "stale-controller-request", "zombie-leader-write",
    "truncated-below-high-watermark",
}  # fmt: skip
WHOLE_COPIES = {
    "replica-topic-recreated", "replica-topic-of-before", "replica-clusters-mixed", "replica-same-under-two-topic-ids"
}  # fmt: skip
"""Their evidence is the identity of a whole copy: a folder."""

COMMANDS = (("state-log", "timeline"), ("replica", "compare"), ("replica", "loss"))
RECORDED = [*recordings("incidents"), *recordings("drills"), *recordings("logs")]


def about_replicas_and_logs() -> Iterator[FindingType]:
    """The rows of the table that `replica` and `state-log` print."""
    from kctl.findings import replica, state_log

    ours = {
        type_.code
        for module in (replica, state_log)
        for type_ in vars(module).values()
        if isinstance(type_, FindingType)
    }
    return (type_ for type_ in all_findings() if type_.code in ours)


def test_every_row_of_the_table_is_one_or_the_other() -> None:
    codes = {type_.code for type_ in about_replicas_and_logs()}
    assert codes == HISTORY | PRESENT.keys()
    assert not HISTORY & PRESENT.keys()


def stands_on(finding: dict[str, Any]) -> bool:
    """Whether a finding names a file and a place in it."""
    if not finding["file"]:
        return False
    is_placed = finding["position"] is not None or finding["base_offset"] is not None
    in_words = re.search(r"\b(line|offset) \d|\bends at \d|:\d+\b", finding["message"]) is not None
    return is_placed or in_words or finding["code"] in WHOLE_COPIES


def baseless(found: list[dict[str, Any]]) -> Iterator[str]:
    """What the rows of a command claim about history without saying what shows it."""
    for row in found:
        match row["kind"]:
            case "finding" if row["code"] in HISTORY and not stands_on(row):
                yield f"{row['code']}: {row['message']} ({row['file']})"
            case "loss" if not any(proof["file"] for proof in row["evidence"]):
                yield f"loss of {row['topic']}-{row['partition']} from {row['from_offset']}: {row['evidence']}"
            case "leader" if not any(proof["file"] for proof in row["evidence"]):
                yield f"leader {row['leader']} of {row['topic']}-{row['partition']} in epoch {row['leader_epoch']}"
            case "event" if not row["file"] or row["line"] is None:
                yield f"event {row}"


@pytest.mark.slow
@pytest.mark.parametrize("verb", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_incidents(name: str, verb: tuple[str, str]) -> None:
    ran = rows(*verb, recording(name))
    assert ran.rows
    assert not list(baseless(ran.rows))
