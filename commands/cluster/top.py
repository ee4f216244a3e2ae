"""`kctl top`: brokers, problems, moves and lag on one screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, cast

from commands.cli.connecting import At, reads, wire
from commands.cli.frame import Frame, command
from commands.cli.render import Outcome, Page, Row, folding, table
from commands.cluster.describe import broker_rows, brokers_text, health_rows, health_text
from commands.topic import note_hidden, note_problems
from kctl.errors import KctlError

if TYPE_CHECKING:
    from kctl.cluster.state import ClusterState

MOST_GROUPS = 10


@command(
    "top", every="2s", status="0 nothing wrong at the last look · 3 failed · 5 something was wrong, or moving"
)
@reads
def top(frame: Frame, at: At) -> Outcome:
    """Show brokers, problems, moves and lag on one screen that refreshes.

    Refreshes until q or Ctrl-C. In a pipe, prints once unless --every is given. Lists the groups with the largest lag, which
    needs --bootstrap-server.

    $ kctl top
    $ kctl top --every 10s
    $ kctl top --output jsonl --every 1m >> top.jsonl
    """
    from commands.reassign.rows import move_status_row
    from kctl.cluster.moves import moving_targets
    from kctl.operations.reassignment.verification import move_statuses

    with at.open(frame) as cluster:
        state = cluster.read_state(configs=("topics", "brokers"), kafka_version=at.version, visibility=True)
        health = health_rows(frame, cluster, state, at)
    note_problems(frame, state.all_problems)
    note_hidden(frame, state)
    moves = [move_status_row(status) for status in move_statuses(moving_targets(state), state, [], None)]
    groups = lagging(frame, at, state) if state.can.ask_brokers and at.snapshot is None else []
    if moves:
        frame.raise_status(5)
    return Outcome([*broker_rows(state), *health, *moves, *groups], text=screen)


def lagging(frame: Frame, at: At, state: ClusterState) -> list[Row]:
    """The groups that are furthest behind, and then those whose lag is not known; reports why (status 3)."""
    from kctl.cluster.rights import GROUP as GROUPS
    from kctl.cluster.rights import Right, grant
    from kctl.cluster.state import unread
    from kctl.rows.live_groups import GROUP
    from kctl.wire.groups import by_coordinator, find_groups, lags_of, list_groups, total_lag
    from kctl.wire.hidden import offsets_hidden, why_groups_may_be_hidden

    rows = []
    errors: dict[str, KctlError] = {}
    with wire(frame, timeout=at.timeout) as connected:
        listed, failures = list_groups(connected)
        groups = find_groups(connected, by_coordinator(listed), errors)
        for name, group in groups.items():
            lag, why = None, offsets_hidden(state.hidden)
            if not why:
                try:
                    lag = total_lag(lags_of(connected, group, state))
                except KctlError as error:
                    errors[name], why = error, error.message
            rows.append(GROUP.of(group, members=len(group.members), lag=lag, why=why or None))
        if hidden := why_groups_may_be_hidden(connected):
            frame.fail(hidden, grant([Right("Describe", GROUPS, "*")], connected.principal))
    for failure in failures:
        frame.report(failure)
    note_problems(frame, [unread(f"group {name}", error) for name, error in sorted(errors.items())])
    for each in listed:
        if each.group in errors and each.group not in groups:
            values = {**each._asdict(), "protocol_type": each.protocol_type or None}
            rows.append(GROUP(**values, why=errors[each.group].message))
    rows.sort(key=lambda row: cast("int", -1 if row["lag"] is None else row["lag"]), reverse=True)
    return rows[:MOST_GROUPS]


def screen(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Brokers, problems, moves, groups; an empty line between."""
    from commands.reassign.rows import move_status_text

    texts = {"broker": brokers_text, "health": folding(health_text), "partition": move_status_text}
    for kind, some in groupby(rows, key=lambda row: str(row["kind"])):
        if kind == "group":
            yield from table(
                [{key: row[key] for key in ("kind", "lag", "members", "state", "group")} for row in some],
                page,
            )
        else:
            yield from texts[kind](some, page)
        yield ""
