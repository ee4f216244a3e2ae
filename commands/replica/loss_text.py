"""How the rows of `kctl replica loss` look on a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from commands.cli.clock import day, shown
from commands.cli.render import Page, Row, finding_line
from formats.words import counted
from kctl.broker_logs.history.leaderships import place_of
from kctl.replica.loss.words import (
    MOST_COPIES,
    cause_words,
    copy_names,
    lost_sentence,
    offsets_of,
    where_else,
)

PAD = " " * 4
SHORTEST_QUOTE = 48
SHOWN = 10


def loss_text(
    rows: Iterable[Row],
    page: Page,
    propose: Callable[..., None] | None = None,
    *,
    everything: bool = False,
) -> Iterator[str]:
    """A block a loss: what, who wrote it, who dropped it, and where copies are; then the totals.

    Of more than ten losses the others are counted, unless `everything` is asked for. What to run next on the
    evidence goes to `propose`: a command and its options.
    """
    losses: list[Row] = []
    is_damaged = False
    for row in rows:
        if row["kind"] == "finding":
            is_damaged |= row["code"] == "replica-damaged-copy"
            yield finding_line(row, page)
            continue
        losses.append(row)
        if everything or len(losses) <= SHOWN:
            yield from _block(row, page)
    if len(losses) > SHOWN and not everything:
        yield f"{counted(len(losses) - SHOWN, 'more loss', 'more losses')}, which --all shows"
    if losses:
        yield lost_sentence(losses)
    if elsewhere := where_else(losses):
        yield elsewhere
    if propose and any(row["recoverable_from"] and not row["exported"] for row in losses):
        propose("kctl replica loss", "--export", "lost")
    if propose and (is_damaged or elsewhere):  # what would the start of its broker cut
        propose("kctl log-dir start")


def _block(row: Row, page: Page) -> Iterator[str]:
    records = row["records"]
    if records is None and row["to_offset"] is not None:
        records = cast(int, row["to_offset"]) - cast(int, row["from_offset"])
    unit = "offset" if row["records"] is None else "record"
    count = f"   {records:,} {unit}{'' if records == 1 else 's'}" if records else ""
    style = {"committed": "error", "unknown": "warning"}.get(str(row["class"]), "info")
    name = page.style(f"{row['topic']}-{row['partition']}", "bold")
    yield f"{name}   offsets {offsets_of(row)}{count}   {page.style(str(row['class']), style)}   {cause_words(row['cause'])}"
    if row["written_by"] is not None or row["first_timestamp"] is not None:
        yield f"{PAD}written  {_written(row)}"
    yield f"{PAD}dropped  {_dropped(row)}"
    for proof in _proofs(row)[:1]:
        place = f"{PAD}         {place_of(proof)}"
        room = page.width - len(place) - 5
        if room < SHORTEST_QUOTE:
            yield page.style(place, "dim")
            place, room = f"{PAD}      ", page.width - len(PAD) - 11
        yield page.style(f'{place}   "{_end_of(str(proof["text"]), room)}"', "dim")
    yield from _now(row)
    if row.get("recovered") is not None:
        is_whole = "all" if row["is_recovered"] else "not all"
        style = "good" if row["is_recovered"] else "warning"
        records = "the records" if row["records"] is None else counted(row["records"], "record")
        there = f"{row['recovered']:,} of {records} are there"
        yield f"{PAD}cluster  {page.style(f'{there}: {is_whole} of what was committed', style)}"
    copies = cast("list[dict[str, Any]]", row["recoverable_from"])
    if copies:
        names = copy_names(copies)
        more = f" and {counted(len(names) - MOST_COPIES, 'more broker')}" if len(names) > MOST_COPIES else ""
        yield f"{PAD}still on {', '.join(names[:MOST_COPIES])}{more}"
    if not copies and not row["recoverable_from_tier"]:
        yield f"{PAD}still on no copy in this evidence"
    for segment in cast("list[dict[str, Any]]", row["recoverable_from_tier"] or [])[:4]:
        where = f"[{segment['from_offset']:,}, {segment['to_offset']:,})"
        yield f"{PAD}{where} still in the tier: remote segment {segment['remote_log_segment_id']}"


def _written(row: Row) -> str:
    by = "" if row["written_by"] is None else f"by broker {row['written_by']}"
    epoch = "" if row["written_in_epoch"] is None else f"leader epoch {row['written_in_epoch']}"
    first, last = row["first_timestamp"], row["last_timestamp"]
    when = ""
    if isinstance(first, int) and isinstance(last, int):
        start, end = (shown(time)[:19].replace("T", " ") for time in (first, last))
        when = f"{start} – {end[11:] if start[:10] == end[:10] else end} {day(last)[11:]}"
    return ", ".join(part for part in (by, epoch, when) if part)


def _dropped(row: Row) -> str:
    if row["dropped_by"] is None:
        return "by an unknown leadership"
    epoch = "" if row["lost_in_epoch"] is None else f" from epoch {row['lost_in_epoch']}"
    isr = row["isr_before"]
    outside = f", not in the ISR {isr}," if isinstance(isr, list) and row["dropped_by"] not in isr else ""
    return f"when broker {row['dropped_by']}{outside} led{epoch} at offset {row['from_offset']:,}"


def _proofs(row: Row) -> list[dict[str, Any]]:
    proofs = cast("list[dict[str, Any]]", row["evidence"])
    return [proof for proof in proofs if proof["file"] and (proof["line"] or proof["kind"] == "election")]


def _end_of(text: str, room: int) -> str:
    """The end of a line, which holds the decision; whole words of it where they leave enough."""
    room = max(room, SHORTEST_QUOTE)
    if len(text) <= room:
        return text
    end = text[4 - room :]
    words = re.split(r"[ (]", end, maxsplit=1)[-1]
    return f"... {words}" if 2 * len(words) > room else f"...{end}"


def _now(row: Row) -> Iterator[str]:
    replaced, missing = _ranges(row["replaced"]), _ranges(row["missing"])
    parts = [f"{replaced} hold other records"] if replaced else []
    parts += [f"{missing} hold none"] if missing else []
    if parts:
        yield f"{PAD}now      {'; '.join(parts)}"


def _ranges(value: object) -> str:
    return ", ".join(f"[{a:,}, {b:,})" for a, b in cast("list[list[int]]", value))
