"""Consumer groups of a running cluster: list, describe, export, reset-plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.changing import Duration
from commands.connecting import wire
from commands.frame import Frame, command
from commands.path_types import GIVEN_PATH
from commands.render import Outcome, Page, Row, table

if TYPE_CHECKING:
    from kctl.model import TopicPartition
    from kctl.wire.adapter import Wire
    from kctl.wire.groups import Committed

STATUS = "0 done · 2 wrong usage · 3 no such group, no connection"
TIMEOUT = click.option(
    "--timeout",
    type=Duration(),
    default="10s",
    show_default=True,
    help="How long to wait for an answer.",
)
TO = click.option("--to", type=GIVEN_PATH, metavar="FILE", help="Write it there too.")


@command(
    "list",
    examples="""
    kctl group list --bootstrap-server kafka1:9092
    kctl group list --state Empty --output jsonl
    """,
    status=STATUS,
)
@TIMEOUT
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only groups in it; repeatable.")
def list_groups(frame: Frame, timeout: float, states: tuple[str, ...]) -> Outcome:
    """List the groups of all coordinators, of both group protocols."""
    from kctl.rows.live_groups import GROUP
    from kctl.wire.groups import list_groups as listed

    with wire(frame, timeout=timeout) as connected:
        found, failures = listed(connected)
    for failure in failures:
        frame.report(failure)
    wanted = {state.lower() for state in states}
    return Outcome(
        GROUP(
            group=one.group,
            type=one.type,
            state=one.state,
            protocol_type=one.protocol_type or None,
            coordinator=one.coordinator,
        )
        for one in found
        if not wanted or (one.state or "").lower() in wanted
    )


@command(
    "describe",
    examples="""
    kctl group describe billing
    kctl group describe billing reports --output jsonl
    """,
    status=STATUS,
)
@TIMEOUT
@click.argument("groups", nargs=-1, required=True, metavar="GROUP...")
def describe(frame: Frame, timeout: float, groups: tuple[str, ...]) -> Outcome:
    """Describe groups: members, what each has, committed offsets and how far behind they are."""
    from kctl.errors import KctlError

    rows: list[Row] = []
    with wire(frame, timeout=timeout) as connected:
        for group in dict.fromkeys(groups):
            try:
                rows += _described(connected, group)
            except KctlError as error:
                frame.report(error)
    return Outcome(rows, text=describe_text)


def _described(connected: Wire, group: str) -> Iterator[Row]:
    from kctl.rows.live_groups import GROUP, MEMBER, OFFSET
    from kctl.wire.group_resets import watermarks
    from kctl.wire.groups import read_committed, read_group

    found = read_group(connected, group)
    committed = read_committed(connected, group, found.coordinator)
    ends = watermarks(connected, list(committed))
    lags = {tp: max(0, end - committed[tp].offset) for tp, end in ends.items()}
    yield GROUP(
        group=group,
        type=found.type,
        state=found.state,
        protocol_type="consumer",
        protocol=found.protocol,
        epoch=found.epoch,
        coordinator=found.coordinator,
        members=len(found.members),
        lag=sum(lags.values()),
    )
    owners: dict[TopicPartition, str] = {}
    for member in found.members:
        owners |= dict.fromkeys(member.assignment or (), member.member_id)
        yield MEMBER(
            group=group,
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            assignment=None if member.assignment is None else [str(tp) for tp in member.assignment],
        )
    for tp, one in committed.items():
        yield OFFSET(
            group=group,
            topic=tp.topic,
            partition=tp.partition,
            offset=one.offset,
            leader_epoch=one.leader_epoch,
            metadata=one.metadata,
            high_watermark=ends.get(tp),
            lag=lags.get(tp),
            member_id=owners.get(tp),
        )


@command(
    "export",
    examples="""
    kctl group export billing --to billing.csv
    kctl group export billing --output jsonl
    """,
    status=STATUS,
)
@TIMEOUT
@click.argument("group")
@TO
def export(frame: Frame, timeout: float, group: str, to: Path | None) -> Outcome:
    """Export a group's committed offsets, in the form that kafka-consumer-groups resets from.

    The file has a line TOPIC,PARTITION,OFFSET for each partition.
    """
    from kctl.rows.live_groups import OFFSET

    with wire(frame, timeout=timeout) as connected:
        committed = _known_offsets(connected, group)
    if to is not None:
        _write(to, ((tp, one.offset) for tp, one in committed.items()))
    return Outcome(
        OFFSET(
            group=group,
            topic=tp.topic,
            partition=tp.partition,
            offset=one.offset,
            leader_epoch=one.leader_epoch,
            metadata=one.metadata,
        )
        for tp, one in committed.items()
    )


def _known_offsets(connected: Wire, group: str) -> dict[TopicPartition, Committed]:
    from kctl.wire.groups import coordinator_of, read_committed, read_group

    committed = read_committed(connected, group, coordinator_of(connected, group))
    if not committed:
        read_group(connected, group)  # says where there is no such group
    return committed


def _write(path: Path, offsets: Iterable[tuple[TopicPartition, int]]) -> None:
    from kctl.errors import KctlError, reason_of

    text = "".join(f"{tp.topic},{tp.partition},{offset}\n" for tp, offset in offsets)
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise KctlError(f"{path}: {reason_of(error)}") from error


@command(
    "reset-plan",
    examples="""
    kctl group reset-plan billing --to-earliest
    kctl group reset-plan billing --to-time 2026-01-31T09:00:00Z --topic orders --to reset.csv
    kctl group reset-plan billing --shift-by -100
    """,
    status="0 planned · 2 wrong usage · 3 no such group, no connection",
)
@TIMEOUT
@click.argument("group")
@click.option("--to-earliest", is_flag=True, help="Where the log begins.")
@click.option("--to-latest", is_flag=True, help="At the high watermark.")
@click.option("--to-offset", type=int, metavar="OFFSET", help="At this offset.")
@click.option("--shift-by", type=int, metavar="N", help="So many on; back where it is negative.")
@click.option(
    "--to-time", metavar="TIME", help="At the first record of this time or later (ISO 8601, -2h, epoch ms)."
)
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Only this topic; repeatable.")
@TO
def reset_plan(
    frame: Frame,
    timeout: float,
    group: str,
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    shift_by: int | None,
    to_time: str | None,
    topics: tuple[str, ...],
    to: Path | None,
) -> Outcome:
    """Plan where a group's offsets would be put, and what it would skip or read again.

    Nothing is written to the cluster. The file of --to is what
    kafka-consumer-groups --reset-offsets --from-file takes, while the group is empty.
    """
    from kctl.errors import BadValue
    from kctl.times import parse_time
    from kctl.wire.group_resets import Goal, plan_reset

    goal = Goal(
        earliest=to_earliest,
        latest=to_latest,
        offset=to_offset,
        shift=shift_by,
        time=parse_time(to_time) if to_time is not None else None,
    )
    if goal.count != 1:
        raise BadValue("say one of --to-earliest, --to-latest, --to-offset, --shift-by and --to-time")
    with wire(frame, timeout=timeout) as connected:
        committed = _known_offsets(connected, group)
        chosen = {tp: one.offset for tp, one in committed.items() if not topics or tp.topic in topics}
        resets = plan_reset(connected, chosen, goal)
    if to is not None:
        _write(to, ((one.partition, one.new_offset) for one in resets))
    from kctl.rows.live_groups import RESET

    return Outcome(
        RESET(
            group=group,
            topic=one.partition.topic,
            partition=one.partition.partition,
            offset=one.offset,
            new_offset=one.new_offset,
            change=one.new_offset - one.offset,
            was_outside=one.was_outside,
        )
        for one in resets
    )


def describe_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A heading a group, its members, and its partitions in columns."""
    offsets: list[Row] = []
    for row in rows:
        if row["kind"] == "group":
            yield from _offsets(offsets, page)
            offsets = []
            about = (
                f"{row['type']}, {row['state']}, coordinator {row['coordinator']}, {row['members']} members"
            )
            yield f"{page.style(str(row['group']), 'bold')}   {about}, lag {row['lag']}"
        elif row["kind"] == "member":
            assigned = row["assignment"]
            parts = ", ".join(assigned) if isinstance(assigned, list) else "?"
            yield f"  {row['member_id']}  {row['client_id']} {row['client_host']}  {parts or 'nothing'}"
        else:
            offsets.append(row)
    yield from _offsets(offsets, page)


def _offsets(rows: list[Row], page: Page) -> Iterator[str]:
    yield from table(
        [
            {
                "kind": "group_offset",
                "partition": f"  {row['topic']}-{row['partition']}",
                "offset": row["offset"],
                "high watermark": row["high_watermark"],
                "lag": row["lag"],
            }
            for row in rows
        ],
        page,
    )
