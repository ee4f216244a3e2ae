"""Whether offsets of a group expired or were deleted, by lines, by records and by times."""

from __future__ import annotations

import pytest

from kctl.findings import Severity
from kctl.internal_topics.groups import OffsetCommit, PendingCommit, Removal
from kctl.internal_topics.transactions import Transaction, Transactions
from kctl.judging.group_findings import LoggedRemoval, _how, pending_findings
from kctl.model import TopicPartition

HOUR = 3_600_000
AT = 1_800_000_000_000


def removal(hours: float, expires: int | None = None) -> Removal:
    commit = OffsetCommit("gate", "tickets", 0, 20, None, "", AT - int(hours * HOUR), expires, 3, 0, AT)
    return Removal(commit, OffsetCommit("gate", "tickets", 0, None, None, None, None, None, 3, 1, AT))


EXPIRED = LoggedRemoval(AT + 3, "G146", "Removed 1 expired offsets in 3 milliseconds.")
DELETED = LoggedRemoval(
    AT + 3, "G10", "The following groups were deleted: gate. A total of 1 offsets were removed."
)
OTHER = LoggedRemoval(
    AT + 3, "G10", "The following groups were deleted: other. A total of 1 offsets were removed."
)
LONG_AGO = LoggedRemoval(AT - HOUR, "G146", "Removed 1 expired offsets in 3 milliseconds.")


@pytest.mark.parametrize(
    ("hours", "lines", "minutes", "expires", "empty_since", "says"),
    [
        (1, [EXPIRED], None, -1, None, "they expired (`Removed 1 expired offsets"),
        (1, [DELETED, EXPIRED], None, -1, None, "somebody deleted them (`The following groups"),
        (1, [OTHER, LONG_AGO], None, -1, None, "they expired or somebody deleted them 60 min after the commit"),
        (1, [], 60, -1, None, "they expired (offsets.retention.minutes=60)"),
        (1, [], 10080, -1, None, "somebody deleted them, or the topic (offsets.retention.minutes=10080 was not over)"),
        # It expires after the group became empty, which was later.
        (2, [], 60, -1, AT - HOUR // 2, "somebody deleted them, or the topic"),
        (24 * 8, [], None, -1, None, "they expired, if offsets.retention.minutes is not longer"),
        (1, [], None, AT - 1, None, "they expired, as their record says"),
        (1, [], None, AT + 1, None, "somebody deleted them"),
    ],
)  # fmt: skip
def test_how_offsets_went(
    hours: float,
    lines: list[LoggedRemoval],
    minutes: int | None,
    expires: int,
    empty_since: int | None,
    says: str,
) -> None:
    assert _how(removal(hours, expires), AT, empty_since, lines, minutes).startswith(says)


@pytest.mark.parametrize(
    ("state", "is_whole", "severity", "says"),
    [
        ("Ongoing", True, Severity.INFO, "transactional id pay-1 (producer 7 epoch 0, offset 50 written at 2027-01-15T08:00:00.000Z), Ongoing since"),
        ("CompleteCommit", True, Severity.WARNING, "no coordinator will end it"),
        (None, True, Severity.WARNING, "no transactional id has producer 7"),
        (None, False, Severity.INFO, "which transactional id has it is not in the evidence"),
    ],
)  # fmt: skip
def test_an_offset_in_an_open_transaction(
    state: str | None, is_whole: bool, severity: Severity, says: str
) -> None:
    commit = OffsetCommit("gate", "tickets", 0, 50, None, "", AT, -1, 3, 9, AT)
    known = Transactions(is_whole=is_whole)
    if state:
        log = TopicPartition("__consumer_offsets", 3)
        known.by_id["pay-1"] = Transaction("pay-1", 7, 0, state, 60_000, AT - 5, AT, (log,), 1, 4)
    (finding,) = pending_findings([PendingCommit(commit, 7, 0)], known)
    assert finding.severity is severity and says in finding.message
