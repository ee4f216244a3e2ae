"""How `kctl replica loss` tells people what was lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, cast

from commands.render import Page, Row

CAUSES = {
    "unclean_election": "unclean election",
    "high_watermark_truncation": "truncation to a stale high watermark",
    "power_failure_tail": "unflushed tail lost in a power failure",
    "zombie_leader": "a leader cut off from ZooKeeper went on",
    "unknown": "cause unknown",
}
PAD = " " * 4
SHORTEST_QUOTE = 48


def loss_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A block a loss: what, written by whom, dropped by whom, and where it still is; then the sum."""
    partitions: set[tuple[object, object]] = set()
    lost = 0
    open_end = recoverable = in_tier = False
    all_recoverable = True
    for row in rows:
        if row["kind"] == "finding":
            severity = str(row["severity"])
            yield f"{page.style(severity, severity)} {row['code']}: {row['message']}"
            continue
        partitions.add((row["topic"], row["partition"]))
        if row["to_offset"] is None:
            open_end = True
        else:
            lost += cast(int, row["to_offset"]) - cast(int, row["from_offset"])
        recoverable = recoverable or bool(row["recoverable_from"])
        in_tier = in_tier or bool(row["recoverable_from_tier"])
        all_recoverable = all_recoverable and bool(row["recoverable_from"])
        yield from _block(row, page)
    if not partitions:
        yield page.style("nothing lost, as far as this evidence tells", "good")
        return
    names = "1 partition" if len(partitions) == 1 else f"{len(partitions)} partitions"
    where = "all recoverable from copies in this evidence" if all_recoverable else "some recoverable"
    if not recoverable:
        where = "no copy in this evidence holds them" + (", the tier holds some" if in_tier else "")
    total = lost + open_end
    at_least = "at least " if open_end else ""
    yield f"{names} lost {at_least}{total} {'record' if total == 1 else 'records'}, {where}"


def _block(row: Row, page: Page) -> Iterator[str]:
    end = "..." if row["to_offset"] is None else row["to_offset"]
    count = "" if row["to_offset"] is None else f"   {_size(row)} records"
    style = {"committed": "error", "unknown": "warning"}.get(str(row["class"]), "info")
    name = page.style(f"{row['topic']}-{row['partition']}", "bold")
    yield (
        f"{name}   offsets [{row['from_offset']}, {end}){count}   "
        f"{page.style(str(row['class']), style)}   {CAUSES[str(row['cause'])]}"
    )
    if row["written_by"] is not None or row["first_timestamp"] is not None:
        yield f"{PAD}written  {_written(row)}"
    yield f"{PAD}dropped  {_dropped(row)}"
    for proof in _proofs(row)[:1]:
        place = f"{PAD}         {proof['file']}:{proof['line']}"
        room = page.width - len(place) - 5
        if room < SHORTEST_QUOTE:
            yield page.style(place, "dim")
            place, room = f"{PAD}      ", page.width - len(PAD) - 11
        yield page.style(f'{place}   "{_end_of(str(proof["text"]), room)}"', "dim")
    yield from _now(row)
    copies = cast("list[dict[str, Any]]", row["recoverable_from"])
    if copies:
        names = ", ".join(_copy(one) for one in copies[:4])
        yield f"{PAD}still on {names}: get them by --export DIR"
    for one in cast("list[dict[str, Any]]", row["recoverable_from_tier"] or [])[:4]:
        where = f"[{one['from_offset']}, {one['to_offset']})"
        yield f"{PAD}{where} still in the tier: remote segment {one['remote_log_segment_id']}"


def _size(row: Row) -> int:
    return cast(int, row["to_offset"]) - cast(int, row["from_offset"])


def _written(row: Row) -> str:
    by = "" if row["written_by"] is None else f"by broker {row['written_by']}"
    epoch = "" if row["written_in_epoch"] is None else f"leader epoch {row['written_in_epoch']}"
    first, last = row["first_timestamp"], row["last_timestamp"]
    when = ""
    if isinstance(first, int) and isinstance(last, int):
        when = f"{_clock(first)} – {_clock(last)}" if first != last else _clock(first)
    return ", ".join(part for part in (by, epoch, when) if part)


def _clock(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).strftime("%H:%M:%S")


def _dropped(row: Row) -> str:
    if row["dropped_by"] is None:
        return "nobody says by which leadership"
    epoch = "" if row["lost_in_epoch"] is None else f" from epoch {row['lost_in_epoch']}"
    isr = row["isr_before"]
    outside = f", not in the ISR {isr}," if isinstance(isr, list) and row["dropped_by"] not in isr else ""
    return f"when broker {row['dropped_by']}{outside} led{epoch} at offset {row['from_offset']}"


def _proofs(row: Row) -> list[dict[str, Any]]:
    proofs = cast("list[dict[str, Any]]", row["evidence"])
    return [one for one in proofs if one["file"] and one["line"]]


def _end_of(text: str, room: int) -> str:
    """The end of a line, where what was decided stands."""
    room = max(room, SHORTEST_QUOTE)
    return text if len(text) <= room else "..." + text[3 - room :]


def _now(row: Row) -> Iterator[str]:
    replaced = _ranges(row["replaced"])
    missing = _ranges(row["missing"])
    said = []
    if replaced:
        said.append(f"{replaced} now hold other records")
    if missing:
        said.append(f"{missing} hold none")
    if said:
        yield PAD + "; ".join(said)


def _ranges(value: object) -> str:
    return ", ".join(f"[{a}, {b})" for a, b in cast("list[list[int]]", value))


def _copy(one: dict[str, Any]) -> str:
    at = f" in moment `{one['moment']}`" if one["moment"] else ""
    return f"broker {one['broker_id']}{at}"
