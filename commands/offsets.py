"""`kctl offsets`: consumer groups and their offsets, read from `__consumer_offsets` with no broker running."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from commands.cli import completing
from commands.cli.evidence_options import EvidenceOptions, evidence
from commands.cli.frame import Frame, command
from commands.cli.leaving import visible
from commands.cli.options import option
from commands.cli.render import Outcome, Row
from kctl.errors import KctlError, near_names

if TYPE_CHECKING:
    from kctl.evidence.model import FoundEvidence
    from kctl.internal_topics.groups import Groups
    from kctl.internal_topics.reading import TopicRecord, Unreadable

TOPIC = "__consumer_offsets"
STATUS = "0 read · 3 no __consumer_offsets found, or no such group · 5 some of its records cannot be read"


def records_of(frame: Frame, options: EvidenceOptions, trouble: list[Unreadable]) -> Iterator[TopicRecord]:
    """The records of the topic as of the time asked for, partition by partition."""
    from kctl.internal_topics.reading import topic_records, whole_copies

    evidence = options.find(frame, reads_once=True)
    copies = whole_copies(evidence, TOPIC)
    if not copies:
        raise options.no_copy(TOPIC)
    options.note_lacking(frame, evidence, TOPIC, "groups")
    for replica in copies:
        yield from topic_records(replica, as_of=options.bound, trouble=trouble)


def groups_of(frame: Frame, options: EvidenceOptions) -> tuple[Groups, list[Row]]:
    """The groups, and findings about what could not be read."""
    _, groups, findings = _read(frame, options)
    return groups, findings


def _read(frame: Frame, options: EvidenceOptions) -> tuple[FoundEvidence, Groups, list[Row]]:
    """The evidence, its groups, and findings about what could not be read."""
    from kctl.internal_topics.rows import groups_in, unknown_rows, unreadable_rows

    evidence = options.find(frame, reads_once=True)
    read = groups_in(evidence, options.bound)
    if read is None:
        raise options.no_copy(TOPIC)
    options.note_lacking(frame, evidence, TOPIC, "groups")
    groups, trouble = read
    return evidence, groups, [*unreadable_rows(TOPIC, groups.unreadable, trouble), *unknown_rows(groups)]


def check_known(groups: Groups, group: str, *, is_whole: bool) -> None:
    """Raise KctlError where nothing is known of the group."""
    if group not in groups.names():
        hint = near_names(group, groups.names(), otherwise="`kctl offsets list` lists the groups")
        source = "" if is_whole else "what can be read of "
        raise KctlError(f"no group {group!r} in {source}{TOPIC}", hint)


@command("list", paged=True, status=STATUS)
@evidence("broker", "moment", "as-of")
@option("--idle TIME", "Only groups without a commit since this time (ISO 8601, -30d, epoch ms).")
def list_groups(frame: Frame, options: EvidenceOptions, idle: str | None) -> Outcome:
    """List the consumer groups in __consumer_offsets.

    $ kctl offsets list /var/lib/kafka/data
    $ kctl offsets list evidence/ --as-of 2026-11-21T13:00Z
    """
    from kctl.internal_topics.rows import group_row
    from kctl.times import parse_time

    groups, findings = groups_of(frame, options)
    since = None if idle is None else parse_time(idle)
    rows = [
        row
        for row in (group_row(groups, name) for name in groups.names())
        if since is None or not isinstance(last := row["last_commit_timestamp"], int) or last < since
    ]
    return Outcome([*rows, *findings])


@command("show", paged=True, status=STATUS)
@click.argument("group")
@evidence("broker", "moment", "as-of")
def show(frame: Frame, options: EvidenceOptions, group: str) -> Outcome:
    """Show the members and committed offsets of a group.

    Findings name offsets that the logs in the evidence do not have, offsets that wait for a transaction, and those that
    were removed: when, whether they expired or were deleted, and what they were.

    $ kctl offsets show billing /var/lib/kafka/data
    $ kctl offsets show billing evidence/ --as-of -2h
    """
    from kctl.internal_topics.rows import commit_row, member_row, transactions_in
    from kctl.judging.group_findings import outside_findings, pending_findings, removal_findings

    evidence, groups, findings = _read(frame, options)
    pending = [one for one in groups.pending if one.commit.group == group]
    if not (groups.removed.get(group) or pending):
        check_known(groups, group, is_whole=not findings)
    members = [member_row(group, member) for member in groups.group(group).members]
    stored = [commit for _, commit in sorted(groups.commits.get(group, {}).items())]
    noted = [*removal_findings(evidence, groups, [group])]
    if options.as_of is None:
        noted += outside_findings(evidence, stored)
        state = transactions_in(evidence) if pending else None
        noted += pending_findings(pending, state[0] if state else None)
    return Outcome([*members, *map(commit_row, stored), *(finding.row() for finding in noted), *findings])


@command("history", paged=True, status=STATUS)
@click.argument("group")
@evidence("broker", "moment", "as-of")
@option("--topic NAME", "Only commits for this topic.", shell_complete=completing.topics)
def history(frame: Frame, options: EvidenceOptions, group: str, topic: str | None) -> Outcome:
    """Show every commit of a group that the log still holds, oldest first.

    $ kctl offsets history billing evidence/
    $ kctl offsets history billing evidence/ --topic orders
    """
    from kctl.internal_topics.groups import Groups, commit_of, read_group_records
    from kctl.internal_topics.rows import commit_row, unreadable_rows

    trouble: list[Unreadable] = []

    def rows() -> Iterator[Row]:
        state = Groups()
        is_known = False
        for record, read in read_group_records(records_of(frame, options, trouble), state):
            commit = commit_of(record, read)
            if commit and commit.group == group and topic in (None, commit.topic):
                is_known = True
                yield commit_row(commit)
        if not is_known:
            check_known(state, group, is_whole=not (trouble or state.unreadable))
        yield from unreadable_rows(TOPIC, state.unreadable, trouble)

    return Outcome(rows())


RESET_IN_PART = "see `kctl offsets show`, and compare each offset before you reset to them"


@command(
    "reset-file", status="0 printed · 3 no such group, or printed while some of the records cannot be read"
)
@click.argument("group")
@evidence("broker", "moment", "as-of")
def reset_file(frame: Frame, options: EvidenceOptions, group: str) -> Outcome:
    """Print the offsets of a group as a file for kafka-consumer-groups --from-file.

    $ kctl offsets reset-file billing evidence/ --as-of 2026-11-21T13:00Z > billing.csv
    """
    from kctl.findings.internal_topics import RECORD_TYPE_UNKNOWN
    from kctl.internal_topics.groups import reset_lines

    groups, findings = groups_of(frame, options)
    for finding in findings:
        if finding["code"] != RECORD_TYPE_UNKNOWN.code:
            frame.fail(f"some offsets of the group may be missing: {finding['message']}", RESET_IN_PART)
    check_known(groups, group, is_whole=not findings)
    text = "".join(f"{visible(line)}\n" for line in reset_lines(groups.commits.get(group, {}).values()))
    return Outcome(encoded=lambda _: [text.encode()])
