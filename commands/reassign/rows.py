"""Rows of `kctl reassign`, and how they look on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, cast

from commands.cli.render import Page, Row, ids, json_encoder, tab_separated, table, text_cell
from formats.words import counted, in_unit
from kctl.rows.reassign import BATCH, LOAD, MOVE, PARTITION, PLAN

if TYPE_CHECKING:
    from kctl.cluster.moves import Holding, Move
    from kctl.cluster.state import Replicas
    from kctl.model import TopicPartition
    from kctl.operations.reassignment.disk_balance import DiskPlan
    from kctl.operations.reassignment.disk_moves import DiskMove
    from kctl.operations.reassignment.plan_files import PlanNames
    from kctl.operations.reassignment.planner import Planned
    from kctl.operations.reassignment.verification import MoveStatus


def amount(size: object) -> str:
    """Bytes for people: `212 GiB`; nothing for null."""
    if not isinstance(size, int):
        return ""
    value, unit = in_unit(size)
    return f"{size} B" if unit == "B" else f"{value:.3g} {unit}" if value < 100 else f"{value:,.0f} {unit}"


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
    planned: Planned, names: PlanNames, batches: Sequence[Mapping[TopicPartition, tuple[int, ...]]]
) -> Iterator[Row]:
    """Moves, loads of brokers and racks, batches, and the plan itself last."""
    moves = planned.moves()
    yield from (move_row(move) for move in moves)
    yield from load_rows(planned)
    data = {move.partition: move.data for move in moves} if planned.now.sizes is not None else None
    yield from _file_rows(names, batches, data, planned.identity, sum(len(move.adding) for move in moves))


def disk_plan_rows(
    planned: DiskPlan, names: PlanNames, batches: Sequence[Mapping[TopicPartition, tuple[int, ...]]]
) -> Iterator[Row]:
    """Moves, loads of log directories, batches, and the plan itself last."""
    yield from (disk_move_row(move) for move in planned.moves)
    yield from (LOAD.of(load, rack=None) for load in planned.loads)
    data = {move.partition: move.size_in_bytes or 0 for move in planned.moves}
    yield from _file_rows(names, batches, data, planned.identity, len(planned.moves))


def _file_rows(
    names: PlanNames,
    batches: Sequence[Mapping[TopicPartition, tuple[int, ...]]],
    data: Mapping[TopicPartition, int] | None,
    identity: str,
    replicas_to_move: int,
) -> Iterator[Row]:
    """A row for each file of a plan. `data`: bytes that move for a partition."""
    from kctl.cluster.moves import EMPTY_REQUEST, encoded_size

    for number, (batch, path) in enumerate(zip(batches, names.batches, strict=True), 1):
        yield BATCH(
            batch=number,
            file=str(path),
            partitions=len(batch),
            size_in_bytes=EMPTY_REQUEST + sum(encoded_size(tp, r) for tp, r in batch.items()),
            data_in_bytes=None if data is None else sum(data.get(tp, 0) for tp in batch),
        )
    yield PLAN(
        file=str(names.plan),
        rollback_file=str(names.rollback),
        identity=identity,
        partitions=sum(map(len, batches)),
        replicas_to_move=replicas_to_move,
        data_in_bytes=None if data is None else sum(data.values()),
        batches=len(batches),
    )


def move_row(move: Move) -> Row:
    """The row of one move."""
    no_disks = {"broker_id": None, "from_log_dir": None, "to_log_dir": None}
    return MOVE.of(move, **{"from": list(move.origin), "to": list(move.target)}, **no_disks)


def disk_move_row(move: DiskMove) -> Row:
    """The row of a replica that goes to another directory of its broker."""
    replicas = list(move.replicas)
    return MOVE.of(move, **{"from": replicas, "to": replicas}, adding=[], removing=[])


def load_rows(planned: Planned) -> Iterator[Row]:
    """The load of each broker and each rack before and after."""
    from kctl.cluster.moves import by_rack, holdings

    now = planned.now
    before = holdings(now.replicas, now.sizes, now.racks)
    after = holdings(planned.after, now.sizes, before)
    sized = now.sizes is not None
    for broker, holding in before.items():
        yield _load_row(broker, now.racks.get(broker), holding, after[broker], sized=sized)
    racks_after = by_rack(after, now.racks)
    for rack, holding in by_rack(before, now.racks).items():
        yield _load_row(None, rack, holding, racks_after[rack], sized=sized)


def _load_row(broker: int | None, rack: str | None, before: Holding, after: Holding, *, sized: bool) -> Row:
    return LOAD(
        broker_id=broker,
        log_dir=None,
        rack=rack,
        replicas_before=before.replicas,
        replicas_after=after.replicas,
        leaders_before=before.leaders,
        leaders_after=after.leaders,
        size_in_bytes_before=before.size_in_bytes if sized else None,
        size_in_bytes_after=after.size_in_bytes if sized else None,
    )


def plan_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Moves in columns, loads before and after, then the files of the plan."""
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
    if row["to_log_dir"] is not None:
        return {
            "partition": f"{row['topic']}-{row['partition']}",
            "broker": row["broker_id"],
            "from": row["from_log_dir"],
            "to": row["to_log_dir"],
            "size": amount(row["size_in_bytes"]) or None,
        }
    return {
        "partition": f"{row['topic']}-{row['partition']}",
        "from": ids(row["from"]),
        "to": ids(row["to"]),
        "adding": ids(row["adding"]) or None,
        "removing": ids(row["removing"]) or None,
        "size": amount(row["size_in_bytes"]) or None,
    }


def _shown_load(row: Row) -> Row:
    name = f"broker {row['broker_id']}" if row["broker_id"] is not None else f"rack {row['rack']}"
    if row["log_dir"] is not None:
        name = str(row["log_dir"])
    rack = row["rack"] if row["broker_id"] is not None else None
    return {
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
        yield page.style("nothing to move", "good")
    else:
        data = f", {amount(row['data_in_bytes'])}" if row["data_in_bytes"] is not None else ""
        yield page.style(
            f"{counted(row['partitions'], 'partition')}, {counted(row['replicas_to_move'], 'replica')}{data}",
            "bold",
        )
    yield f"plan     {row['file']} (in {row['batches']} batch{'' if row['batches'] == 1 else 'es'}), identity {str(row['identity'])[:12]}"
    yield f"undo     {row['rollback_file']}"


def move_status_row(status: MoveStatus) -> Row:
    """The row of a partition of a plan."""
    is_done, is_hidden = status.state == "done", status.state is None
    return PARTITION(  # not `PARTITION.of`, which takes longer: a plan may have 10,000
        topic=status.partition.topic,
        partition=status.partition.partition,
        state=status.state,
        replicas=None if is_hidden else list(status.replicas),
        isr=None if is_hidden else list(status.isr),
        leader=status.leader,
        target=list(status.target),
        missing=None if is_hidden else [] if is_done else list(status.missing),
        bytes_done=status.bytes_done,
        bytes_left=status.bytes_left,
        bytes_per_second=status.bytes_per_second,
        seconds_left=None if is_done else status.seconds_left,
        reason=status.reason,
    )


def move_status_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Partitions that are not done in columns, then totals."""
    listed = list(rows)
    open_ = [row for row in listed if row["state"] != "done"]
    yield from table([_shown_standing(row) for row in open_], page)
    done = len(listed) - len(open_)
    bytes_left = [row["bytes_left"] for row in listed if isinstance(row["bytes_left"], int)]
    more = f", {amount(sum(bytes_left))} left" if bytes_left and sum(bytes_left) else ""
    times = [row["seconds_left"] for row in open_ if row["bytes_left"]]
    if times and all(isinstance(seconds, int) for seconds in times):
        more += f", about {duration(max(cast('list[int]', times)))}"
    style = "good" if not open_ else "warning"
    if not listed:
        yield page.style("nothing is moving", style)
        return
    yield page.style(f"{done:,} of {counted(len(listed), 'partition')} done{more}", style)


def _shown_standing(row: Row) -> Row:
    seconds = row["seconds_left"]
    return {
        "partition": f"{row['topic']}-{row['partition']}",
        "state": str(row["state"] or "unknown").replace("_", " "),
        "replicas": ids(row["replicas"] or ()),
        "target": ids(row["target"]),
        "isr": ids(row["isr"] or ()),
        "left": amount(row["bytes_left"]) or None,
        "rate": f"{amount(row['bytes_per_second'])}/s" if row["bytes_per_second"] is not None else None,
        "time left": duration(seconds) if isinstance(seconds, int) else None,
        "": row["reason"],
    }


LINES_AT_ONCE = 1000


def move_status_lines(statuses: Iterable[MoveStatus], form: str) -> Iterator[bytes] | None:
    """The rows of statuses in an output form, many lines in a part; None for a form without lines.

    Of 10,000 partitions most are done and differ only in their name: the rest of such a line is encoded once.
    """
    if form == "json":
        return None
    if form == "jsonl":
        encode = json_encoder()
        header, begin, between = b"", b'{"kind":"partition","topic":', b',"partition":'

        def line(row: Row) -> bytes:
            return encode(row) + b"\n"

        def name(topic: str) -> bytes:
            return encode({"": topic})[len(b'{"":') : -1]
    else:
        header, begin, between = "\t".join(PARTITION.required).encode() + b"\n", b"partition\t", b"\t"

        def line(row: Row) -> bytes:
            _, text = tab_separated([row])
            return f"{text}\n".encode()

        def name(topic: str) -> bytes:
            return text_cell(topic).encode()

    def lines() -> Iterator[bytes]:
        names: dict[str, bytes] = {}
        tails: dict[tuple[Replicas, Replicas, Replicas, int | None], bytes] = {}
        for status in statuses:
            (topic, number), verdict, target, replicas, isr, leader, *more = status
            head = names.get(topic)
            if head is None:
                head = names[topic] = begin + name(topic) + between
            if verdict != "done" or more.count(None) < len(more):
                yield line(move_status_row(status))
                continue
            like = target, replicas, isr, leader
            tail = tails.get(like)
            if tail is None:
                tail = tails[like] = line(move_status_row(status))[len(head) + len(str(number)) :]
            yield b"%b%d%b" % (head, number, tail)

    return _in_parts(header, lines())


def _in_parts(header: bytes, lines: Iterator[bytes]) -> Iterator[bytes]:
    while part := list(islice(lines, LINES_AT_ONCE)):
        yield header + b"".join(part)
        header = b""
