"""Rows of reassignments, and how they look on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from commands.render import Page, Row, table

if TYPE_CHECKING:
    from kctl.cluster.moves import Holding, Move
    from kctl.cluster.plan_files import Names
    from kctl.cluster.planned import Planned
    from kctl.cluster.state import ClusterState
    from kctl.cluster.verification import Standing
    from kctl.model import TopicPartition

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def amount(size: object) -> str:
    """Bytes for people: `212 GiB`; nothing for null."""
    if not isinstance(size, int):
        return ""
    value, unit = float(size), 0
    while value >= 1024 and unit < len(UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return (
        f"{size} B"
        if unit == 0
        else f"{value:.3g} {UNITS[unit]}"
        if value < 100
        else f"{value:,.0f} {UNITS[unit]}"
    )


def duration(seconds: int) -> str:
    """`45 s`, `12 min`, `1 h 12 min`, `3 d 4 h`."""
    if seconds < 90:
        return f"{seconds} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"


def plan_rows(
    planned: Planned, names: Names, batches: Sequence[Mapping[TopicPartition, tuple[int, ...]]]
) -> Iterator[Row]:
    """Moves, loads of brokers and racks, batches, and the plan itself last."""
    from kctl.cluster.batches import EMPTY_REQUEST, encoded_size
    from kctl.rows.reassign import BATCH, PLAN

    moves = planned.moves()
    yield from (move_row(move) for move in moves)
    yield from load_rows(planned)
    data = {move.partition: move.data for move in moves}
    sized = planned.now.sizes is not None
    for number, (batch, path) in enumerate(zip(batches, names.batches, strict=True), 1):
        yield BATCH(
            batch=number,
            file=str(path),
            partitions=len(batch),
            size_in_bytes=EMPTY_REQUEST + sum(encoded_size(tp, r) for tp, r in batch.items()),
            data_in_bytes=sum(data.get(tp, 0) for tp in batch) if sized else None,
        )
    yield PLAN(
        file=str(names.plan),
        rollback_file=str(names.rollback),
        identity=planned.identity,
        partitions=len(planned.targets),
        replicas_to_move=sum(len(move.adding) for move in moves),
        data_in_bytes=sum(data.values()) if sized else None,
        batches=len(batches),
    )


def move_row(move: Move) -> Row:
    """The row of one move."""
    from kctl.rows.reassign import MOVE

    return MOVE(
        **{
            "topic": move.partition.topic,
            "partition": move.partition.partition,
            "from": list(move.origin),
            "to": list(move.target),
            "adding": list(move.adding),
            "removing": list(move.removing),
            "size_in_bytes": move.size_in_bytes,
        }
    )


def load_rows(planned: Planned) -> Iterator[Row]:
    """What each broker and each rack holds before and after."""
    from kctl.cluster.moves import by_rack, holdings

    now = planned.now
    before = holdings(now.replicas, now.sizes, now.racks)
    after = holdings(planned.after, now.sizes, before)
    sized = now.sizes is not None
    for broker, held in before.items():
        yield _load_row(broker, now.racks.get(broker), held, after[broker], sized=sized)
    racks_after = by_rack(after, now.racks)
    for rack, held in by_rack(before, now.racks).items():
        yield _load_row(None, rack, held, racks_after[rack], sized=sized)


def _load_row(broker: int | None, rack: str | None, before: Holding, after: Holding, *, sized: bool) -> Row:
    from kctl.rows.reassign import LOAD

    return LOAD(
        broker_id=broker,
        rack=rack,
        replicas_before=before.replicas,
        replicas_after=after.replicas,
        leaders_before=before.leaders,
        leaders_after=after.leaders,
        size_in_bytes_before=before.size_in_bytes if sized else None,
        size_in_bytes_after=after.size_in_bytes if sized else None,
    )


def plan_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Moves in columns, the table of before and after, then where the plan is."""
    moves: list[Row] = []
    loads: list[Row] = []
    for row in rows:
        if row["kind"] == "move":
            moves.append(row)
        elif row["kind"] == "load":
            loads.append(row)
        elif row["kind"] == "plan":
            yield from table([_shown_move(move) for move in moves], page)
            if moves:
                yield ""
            yield from table([_shown_load(load) for load in loads], page)
            yield ""
            yield from _plan_lines(row, moves, page)


def _shown_move(row: Row) -> Row:
    return {
        "kind": "move",
        "partition": f"{row['topic']}-{row['partition']}",
        "from": _ids(row["from"]),
        "to": _ids(row["to"]),
        "adding": _ids(row["adding"]) or None,
        "removing": _ids(row["removing"]) or None,
        "size": amount(row["size_in_bytes"]) or None,
    }


def _shown_load(row: Row) -> Row:
    name = f"broker {row['broker_id']}" if row["broker_id"] is not None else f"rack {row['rack']}"
    rack = row["rack"] if row["broker_id"] is not None else None
    return {
        "kind": "load",
        "": name,
        "rack": rack,
        "replicas before": row["replicas_before"],
        "after": row["replicas_after"],
        "leaders before": row["leaders_before"],
        "after ": row["leaders_after"],
        "size before": amount(row["size_in_bytes_before"]) or None,
        "after  ": amount(row["size_in_bytes_after"]) or None,
    }


def _plan_lines(row: Row, moves: Sequence[Row], page: Page) -> Iterator[str]:
    if not moves:
        yield page.style("nothing has to move", "good")
    else:
        data = f", {amount(row['data_in_bytes'])}" if row["data_in_bytes"] is not None else ""
        yield page.style(f"{row['partitions']} partitions, {row['replicas_to_move']} replicas{data}", "bold")
    yield f"plan     {row['file']} (in {row['batches']} batches), identity {str(row['identity'])[:12]}"
    yield f"undo     {row['rollback_file']}"


def _ids(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else ""


# --- where a plan stands ------------------------------------------------------------------------------


def standing_row(one: Standing, state: ClusterState | None = None) -> Row:
    """The row of a partition on its way; the time left by the rate seen, else by the throttle's."""
    from kctl.rows.reassign import PARTITION

    is_done = one.state == "done"
    return PARTITION(
        topic=one.partition.topic,
        partition=one.partition.partition,
        state=one.state,
        replicas=list(one.replicas),
        isr=list(one.isr),
        leader=one.leader,
        target=list(one.target),
        missing=[] if is_done else list(one.missing),
        bytes_done=one.bytes_done,
        bytes_left=one.bytes_left,
        bytes_per_second=one.bytes_per_second,
        seconds_left=None if is_done else _seconds_left(one, state),
        reason=one.reason,
    )


def _seconds_left(one: Standing, state: ClusterState | None) -> int | None:
    from kctl.cluster.throttle_keys import FOLLOWER_RATE

    if one.seconds_left is not None:
        return one.seconds_left
    if state is None or one.bytes_left is None:
        return None
    rates = [state.config("brokers", str(b)).get(FOLLOWER_RATE) for b in one.missing]
    numbers = [int(rate) for rate in rates if rate is not None and rate.isdigit() and int(rate) > 0]
    return -(-one.bytes_left // min(numbers)) if numbers else None


def standing_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """What is not done in columns, then how much of all is."""
    listed = list(rows)
    open_ = [row for row in listed if row["state"] != "done"]
    yield from table([_shown_standing(row) for row in open_], page)
    done = len(listed) - len(open_)
    left = [row["bytes_left"] for row in listed if isinstance(row["bytes_left"], int)]
    more = f", {amount(sum(left))} left" if left and sum(left) else ""
    style = "good" if not open_ else "warning"
    if not listed:
        yield page.style("nothing is moving", style)
        return
    yield page.style(f"{done:,} of {len(listed):,} partitions done{more}", style)


def _shown_standing(row: Row) -> Row:
    seconds = row["seconds_left"]
    return {
        "kind": "partition",
        "partition": f"{row['topic']}-{row['partition']}",
        "state": str(row["state"]).replace("_", " "),
        "replicas": _ids(row["replicas"]),
        "target": _ids(row["target"]),
        "isr": _ids(row["isr"]),
        "left": amount(row["bytes_left"]) or None,
        "rate": f"{amount(row['bytes_per_second'])}/s" if row["bytes_per_second"] is not None else None,
        "time left": duration(seconds) if isinstance(seconds, int) else None,
        "": row["reason"],
    }
