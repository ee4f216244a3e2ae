"""`kctl group`: groups of a running cluster: list, describe, export, reset, delete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from commands.cli import completing
from commands.cli.changing import CHANGE_STATUS, How, carry_out, changes
from commands.cli.connecting import open_brokers_for_change, wire
from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN_PATH, TIMEOUT, TOPIC, Duration, as_one_value, flag, option
from commands.cli.render import Outcome, Page, Row, aligned, finding_line, folding, table
from formats.words import counted
from kctl.errors import BadValue, KctlError, Refused, file_error
from kctl.model import command_line
from kctl.rows.live_groups import GROUP, MEMBER, OFFSET, RESET

if TYPE_CHECKING:
    from kctl.changes.kinds.groups import GroupOffset
    from kctl.cluster.state import ClusterState
    from kctl.model import TopicPartition
    from kctl.wire.adapter import Wire
    from kctl.wire.group_resets import Reset, ResetGoal
    from kctl.wire.groups import ConsumerGroup

STATUS = "0 done · 2 wrong usage · 3 no such group, no connection"
TO = option("--to FILE", "Write the offsets to FILE as well.", type=GIVEN_PATH)
PARTITIONS = option(
    "--topic TOPIC[:PARTITION]...", "Only this topic or partition; repeatable.", into="topics"
)

ACCEPT_LOSS = flag("--accept-loss", "Accept that deleted offsets cannot be restored.")


@command("list", paged=True, status=STATUS)
@TIMEOUT
@option("--state STATE...", "Only groups in this state; repeatable.", into="states")
def list_groups(frame: Frame, timeout: float, states: tuple[str, ...]) -> Outcome:
    """List the groups of all coordinators, of every group protocol.

    $ kctl group list --bootstrap-server kafka1:9092
    $ kctl group list --state Empty --output jsonl
    """
    from kctl.cluster.rights import Right, grant
    from kctl.wire.groups import list_groups as listed
    from kctl.wire.groups import require_coordinators
    from kctl.wire.hidden import why_groups_may_be_hidden

    with wire(frame, timeout=timeout) as connected:
        groups, failures = listed(connected)
        hidden = why_groups_may_be_hidden(connected)
        principal = connected.principal
        try:
            require_coordinators(connected)
        except KctlError as error:
            failures.append(error)
    for failure in failures:
        frame.report(failure)
    if hidden and not groups:
        frame.fail(hidden, grant([Right("Describe", "Group", "*")], principal))
    elif hidden:
        frame.note(f"{hidden}, and left out")
    wanted_states = {state.lower() for state in states}
    return Outcome(
        (
            GROUP(**{**group._asdict(), "protocol_type": group.protocol_type or None})
            for group in groups
            if not wanted_states or (group.state or "").lower() in wanted_states
        ),
        nothing="no group is in such a state" if wanted_states else "the cluster has no group",
    )


@command(
    "describe",
    paged=True,
    has_metrics=True,
    every="",
    status=f"{STATUS} · 5 an offset is outside the log, or waits for long",
)
@TIMEOUT
@click.argument("groups", nargs=-1, required=True, metavar="GROUP...", shell_complete=completing.groups)
def describe(frame: Frame, timeout: float, groups: tuple[str, ...]) -> Outcome:
    """Describe groups: members, assignments, offsets and lag.

    The lag of a partition without a committed offset is unknown. An offset that the log does not have has no lag: a
    finding says how many records are gone. Another one names the transaction that a pending offset waits for.

    $ kctl group describe billing
    $ kctl group describe billing reports --output jsonl
    $ kctl group describe billing --every 5s
    $ kctl group describe billing --output openmetrics > billing.prom.tmp; mv billing.prom.tmp billing.prom
    """
    from commands.cli.openmetrics import as_metrics, group_metrics
    from kctl.wire.hidden import why_offsets_may_be_hidden
    from kctl.wire.reading import read_cluster

    rows: list[Row] = []
    with wire(frame, timeout=timeout) as connected:
        hidden = why_offsets_may_be_hidden(connected)
        state = read_cluster(connected) if len(groups) > 1 else None
        for group in dict.fromkeys(groups):
            try:
                rows += _described(connected, group, state, hidden)
            except KctlError as error:
                frame.report(error)
    if hidden and rows:
        frame.note(hidden)
    encoded = as_metrics(frame, "group describe", rows, group_metrics)
    return Outcome(rows, text=folding(describe_text), encoded=encoded)


def _described(connected: Wire, name: str, state: ClusterState | None, hidden: str) -> Iterator[Row]:
    from kctl.wire.groups import read_group

    return group_rows(connected, read_group(connected, name), state, hidden)


def group_rows(
    connected: Wire, group: ConsumerGroup, state: ClusterState | None, hidden: str
) -> Iterator[Row]:
    """The rows of a group: itself, members, offsets, findings about these. `hidden`: why offsets may be hidden."""
    import time

    from kctl.wire.group_offsets import offset_findings, pending_offsets
    from kctl.wire.groups import lags_of, total_lag

    name, lags = group.group, lags_of(connected, group, state)
    pending = pending_offsets(connected, group)
    yield GROUP.of(
        group, members=len(group.members), lag=None if hidden else total_lag(lags), why=hidden or None
    )
    for member in group.members:
        assigned, target = (
            None if partitions is None else list(map(str, partitions))
            for partitions in (member.assignment, member.target_assignment)
        )
        yield MEMBER.of(member, group=name, assignment=assigned, target_assignment=target)
    for partition_lag in lags:
        at = (
            partition_lag.committed._asdict()
            if partition_lag.committed
            else dict.fromkeys(("offset", "leader_epoch", "metadata"))
        )
        is_pending = None if pending.partitions is None else partition_lag.partition in pending.partitions
        yield OFFSET.of(partition_lag, group=name, pending=is_pending, **at)
    now = time.time_ns() // 1_000_000
    yield from (finding.row() for finding in offset_findings(name, lags, pending, now))


@command("export", status=STATUS)
@TIMEOUT
@click.argument("group", shell_complete=completing.groups)
@TO
def export(frame: Frame, timeout: float, group: str, to: Path | None) -> Outcome:
    """Export the committed offsets of a group for kafka-consumer-groups --from-file.

    The file has a line TOPIC,PARTITION,OFFSET for each partition.

    $ kctl group export billing --to billing.csv
    $ kctl group export billing --output jsonl
    """
    with wire(frame, timeout=timeout) as connected:
        committed = _known_offsets(connected, group)
        _report_hidden(frame, connected)
    if to is not None:
        _write(to, ((tp, offset.offset) for tp, offset in committed.items()))
    return Outcome(
        OFFSET(group=group, **tp._asdict(), **offset._asdict()) for tp, offset in committed.items()
    )


def _report_hidden(frame: Frame, connected: Wire) -> None:
    """Report that a group may have offsets that this user does not see (status 3)."""
    from kctl.cluster.rights import Right, grant
    from kctl.wire.hidden import why_offsets_may_be_hidden

    if hidden := why_offsets_may_be_hidden(connected):
        frame.fail(hidden, grant([Right("Describe", "Topic", "*")], connected.principal))


def _refuse_hidden(frame: Frame, connected: Wire, *, execute: bool) -> None:
    """The same where all offsets are to be set: raises Refused if they would be set now."""
    from kctl.wire.hidden import why_offsets_may_be_hidden

    if execute and (hidden := why_offsets_may_be_hidden(connected)):
        raise Refused(f"{hidden}; nothing was written", "name the topics that are meant with --topic")
    _report_hidden(frame, connected)


def _known_offsets(connected: Wire, group: str) -> dict[TopicPartition, GroupOffset]:
    from kctl.wire.groups import read_group, read_offsets

    return read_offsets(connected, read_group(connected, group))


def _write(path: Path, offsets: Iterable[tuple[TopicPartition, int]]) -> None:
    text = "".join(f"{tp.topic},{tp.partition},{offset}\n" for tp, offset in offsets)
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise file_error(path, error, KctlError) from error


class Goal(NamedTuple):
    """Where to put offsets, from the options."""

    to_earliest: bool
    to_latest: bool
    to_current: bool
    to_offset: int | None
    shift: int | None
    to_time: str | None
    by_duration: float | None
    from_file: Path | None

    def read(self) -> ResetGoal:
        """The goal. Raises BadValue where not exactly one is given, KctlError for a file that cannot be read."""
        import time

        from kctl.files import read_text
        from kctl.times import parse_time
        from kctl.wire.group_resets import ResetGoal, parse_offsets

        when = parse_time(self.to_time) if self.to_time is not None else None
        if self.by_duration is not None:
            if when is not None:
                raise BadValue(ONE_GOAL, "they exclude each other")
            when = time.time_ns() // 1_000_000 - round(self.by_duration * 1000)
        listed = None
        if self.from_file is not None:
            try:
                listed = parse_offsets(read_text(self.from_file, follow=True), str(self.from_file))
            except (OSError, UnicodeError) as error:
                raise file_error(self.from_file, error, KctlError) from error
        goal = ResetGoal(
            earliest=self.to_earliest,
            latest=self.to_latest,
            current=self.to_current,
            offset=self.to_offset,
            shift=self.shift,
            time=when,
            listed=listed,
        )
        if goal.count != 1:
            raise BadValue(ONE_GOAL, "they exclude each other")
        return goal


ONE_GOAL = (
    "give one of --to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --to-time, --by-duration "
    "and --from-file"
)
resets = as_one_value(
    Goal,
    [
        flag("--to-earliest", "Reset to the log start offset."),
        flag("--to-latest", "Reset to the high watermark."),
        flag("--to-current", "Keep the committed offset, or use the high watermark if there is none."),
        option("--to-offset OFFSET", "Reset to this offset.", type=int),
        click.option(
            "--shift",
            "--shift-by",
            "shift",
            type=int,
            metavar="N",
            help="Move by N offsets; a negative N moves back.",
        ),
        option(
            "--to-time TIME", "Reset to the first record at or after this time (ISO 8601, -2h, epoch ms)."
        ),
        option(
            "--by-duration DURATION", "Reset to the first record at or after this long ago.", type=Duration()
        ),
        option(
            "--from-file FILE", "Reset to the offsets in FILE, lines TOPIC,PARTITION,OFFSET.", type=GIVEN_PATH
        ),
    ],
)


def reset_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """The group, and each partition with what a reset skips or repeats; what rows say twice, once."""
    for group, of_group in groupby(rows, key=lambda row: str(row["group"])):
        yield page.style(group, "bold")
        shown = (
            {
                "kind": row["kind"],
                "partition": f"  {row['topic']}-{row['partition']}",
                "offset": row["offset"],
                "new offset": "none" if row["new_offset"] is None else row["new_offset"],
                "skips": row["skips"],
                "repeats": row["repeats"],
                "": "the nearest in the log" if row["was_outside"] else None,
            }
            for row in of_group
        )
        yield from aligned(shown, page)


def reset_rows(group: str, resets: Sequence[Reset]) -> list[Row]:
    """A row for each partition."""
    return [
        RESET.of(reset, group=group, from_offset=reset.offset, to_offset=reset.new_offset) for reset in resets
    ]


@command("reset", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("group", shell_complete=completing.groups)
@PARTITIONS
@resets
@flag("--execute", "Write the new offsets.")
def reset(frame: Frame, how: How, goal: Goal, group: str, topics: tuple[str, ...], execute: bool) -> Outcome:
    """Reset the offsets of a group; without --execute only show the new ones.

    kctl refuses while the group has members. The journal keeps the old offsets, and `kctl journal undo` restores them.
    --topic resets all partitions of the topic, including those without an offset, and creates a group that does not
    exist.

    $ kctl group reset billing --to-earliest
    $ kctl group reset billing --topic orders:0 --to-offset 1200 --execute
    $ kctl group reset billing --by-duration 2h --execute --yes
    $ kctl group reset billing --from-file billing.csv --execute
    """
    from kctl.wire.group_resets import choose_reset

    target = goal.read()
    with open_brokers_for_change(frame) as cluster:
        chosen = choose_reset(cluster, cluster.wire, group, topics, target)
        rows = reset_rows(group, chosen.resets)
        if not topics and target.listed is None:
            _refuse_hidden(frame, cluster.wire, execute=execute)
        if not execute and not how.dry_run:
            frame.note("nothing was written; add --execute to write it")
            return Outcome(rows, text=reset_text)
        from kctl.wire.group_changes import plan_reset

        return carry_out(frame, how, cluster, plan_reset(cluster, group, chosen), rows, reset_text)


@command("reset-plan", status="0 planned · 2 wrong usage · 3 no such group, no connection")
@TIMEOUT
@click.argument("group", shell_complete=completing.groups)
@resets
@TOPIC
@TO
def reset_plan(
    frame: Frame, goal: Goal, timeout: float, group: str, topics: tuple[str, ...], to: Path | None
) -> Outcome:
    """Plan an offset reset: new offsets, records skipped or read again.

    Writes nothing to the cluster. Use the file of --to with `kctl group reset --from-file` or with
    kafka-consumer-groups --reset-offsets --from-file while the group is empty.

    $ kctl group reset-plan billing --to-earliest
    $ kctl group reset-plan billing --to-time 2026-01-31T09:00:00Z --topic orders --to reset.csv
    $ kctl group reset-plan billing --shift-by -100
    """
    from kctl.wire.group_resets import resets_to

    target = goal.read()
    with wire(frame, timeout=timeout) as connected:
        committed = _known_offsets(connected, group)
        chosen = {
            tp: at.offset
            for tp, at in committed.items()
            if (not topics or tp.topic in topics) and (target.listed is None or tp in target.listed)
        }
        planned = resets_to(connected, chosen, target)
        if not topics and target.listed is None:
            _report_hidden(frame, connected)
    if to is not None:
        _write(to, ((reset.partition, reset.new_offset) for reset in planned))
    return Outcome(reset_rows(group, planned), text=reset_text)


@command("delete-offsets", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("group", shell_complete=completing.groups)
@PARTITIONS
@ACCEPT_LOSS
def delete_offsets(frame: Frame, how: How, group: str, topics: tuple[str, ...], accept_loss: bool) -> Outcome:
    """Delete offsets of a group.

    Works for deleted topics too. kctl refuses while the group has members. `kctl journal undo` restores the offsets;
    those of share groups only from Kafka 4.2 on, so that older brokers require --accept-loss.

    $ kctl group delete-offsets billing --topic orders
    $ kctl group delete-offsets billing --topic orders:3 --yes
    """
    from kctl.cluster.names import is_named, refuse_hidden
    from kctl.wire.group_changes import plan_offset_deletion
    from kctl.wire.groups import read_group, read_offsets

    if not topics:
        raise BadValue(
            "name what is to be deleted with --topic", "`kctl group delete` deletes the whole group"
        )
    with open_brokers_for_change(frame) as cluster:
        described = read_group(cluster.wire, group)
        present = read_offsets(cluster.wire, described)
        gone = [tp for tp in present if is_named(tp, topics)]
        absent = [name for name in topics if not any(is_named(tp, [name]) for tp in gone)]
        if absent:
            named = sorted({name.partition(":")[0] for name in absent})
            refuse_hidden(named, cluster.read_state(named, partition_states=False))
            raise KctlError(
                f"group {group} has no offset of {absent[0]}",
                f"`{command_line('kctl group describe', [group])}` shows its offsets",
            )
        rows = [
            RESET(
                group=group,
                **tp._asdict(),
                offset=present[tp].offset,
                from_offset=present[tp].offset,
                was_outside=False,
            )
            for tp in gone
        ]
        plan = plan_offset_deletion(cluster, cluster.wire, described, present, gone, accepted=accept_loss)
        return carry_out(frame, how, cluster, plan, rows, reset_text)


@command("delete", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("groups", nargs=-1, required=True, metavar="GROUP...", shell_complete=completing.groups)
@ACCEPT_LOSS
def delete(frame: Frame, how: How, groups: tuple[str, ...], accept_loss: bool) -> Outcome:
    """Delete groups and their offsets.

    kctl refuses while a group has members. `kctl journal undo` restores the groups with their offsets; share groups
    only from Kafka 4.2 on, so that older brokers require --accept-loss.

    $ kctl group delete billing
    $ kctl group delete billing reports --yes
    """
    from kctl.wire.group_changes import plan_group_deletion

    with open_brokers_for_change(frame) as cluster:
        plan = plan_group_deletion(cluster, cluster.wire, groups, accepted=accept_loss)
        return carry_out(frame, how, cluster, plan)


@command("remove-member", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("group", shell_complete=completing.groups)
@click.argument("members", nargs=-1, required=True, metavar="MEMBER...")
def remove_member(frame: Frame, how: How, group: str, members: tuple[str, ...]) -> Outcome:
    """Remove members from a group.

    MEMBER is a member id or a group instance id. A consumer that is still running joins again.

    $ kctl group describe billing
    $ kctl group remove-member billing consumer-1-5c7d8b2e --yes
    """
    from kctl.wire.group_changes import plan_member_removal

    with open_brokers_for_change(frame) as cluster:
        return carry_out(frame, how, cluster, plan_member_removal(cluster, cluster.wire, group, members))


def describe_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A heading for each group, its members, and its partitions in columns."""
    offsets: list[Row] = []
    for row in rows:
        if row["kind"] == "group":
            yield from _offsets(offsets, page)
            offsets = []
            about = f"{row['type']}, {row['state']}, coordinator {row['coordinator']}, {counted(row['members'], 'member')}"
            lag = "not known" if row["lag"] is None else row["lag"]
            yield f"{page.style(str(row['group']), 'bold')}   {about}, lag {lag}"
        elif row["kind"] == "member":
            assigned = row["assignment"]
            parts = ", ".join(assigned) if isinstance(assigned, list) else "?"
            yield f"  {row['member_id']}  {row['client_id']} {row['client_host']}  {parts or 'nothing'}"
        elif row["kind"] == "finding":
            yield from _offsets(offsets, page)
            offsets = []
            yield finding_line(row, page)
        else:
            offsets.append(row)
    yield from _offsets(offsets, page)


OUTSIDE = {"beyond_end": "beyond the log's end", "below_start": "below the log's start"}


def _offsets(rows: list[Row], page: Page) -> Iterator[str]:
    yield from table(
        [
            {
                "partition": f"  {row['topic']}-{row['partition']}",
                "offset": row["offset"],
                "high watermark": row["high_watermark"],
                "lag": row["lag"],
                "": OUTSIDE.get(str(row["out_of_range"])) or ("pending" if row["pending"] else None),
            }
            for row in rows
        ],
        page,
    )
