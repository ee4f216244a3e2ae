"""How `kctl epoch show` and `compare` lay out lineages for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from commands.render import Page, Row, cell
from commands.replica_text import VERDICT_STYLES, epochs_text


def epoch_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line a replica, under the name of its partition; differences and branch points below."""
    partition: object = None
    is_compared = False
    for row in rows:
        is_compared = is_compared or row["kind"] == "verdict"
        if row["kind"] != "finding" and (row["topic"], row["partition"]) != partition:
            partition = row["topic"], row["partition"]
            yield page.style(f"{row['topic']}-{row['partition']}", "bold")
        yield from _LINES[str(row["kind"])](row, page)
    if is_compared:
        yield page.style("epochs were compared, not bytes: for those `kctl replica compare`", "dim")


def _lineage(row: Row, page: Page) -> Iterator[str]:
    who = "broker ?" if row["broker_id"] is None else f"broker {row['broker_id']}"
    at = f" {row['moment']}" if row["moment"] else ""
    mark = "-" if row["high_watermark"] is None else row["high_watermark"]
    yield (
        f"    {who + at:<18} [{row['log_start_offset']}, {row['log_end_offset']})  "
        f"high watermark {mark}  epochs {epochs_text(row['epochs'])}"
    )


def _difference(row: Row, page: Page) -> Iterator[str]:
    said = "-" if row["recorded_start"] is None else row["recorded_start"]
    found = "-" if row["rebuilt_start"] is None else row["rebuilt_start"]
    yield page.style(
        f"        epoch {row['epoch']}: checkpoint {said}, batches {found}: {row['meaning']}", "dim"
    )


def _divergence(row: Row, page: Page) -> Iterator[str]:
    yield page.style(f"    {_pair(row)}: other epochs at [{row['from_offset']}, {row['to_offset']})", "error")


def _verdict(row: Row, page: Page) -> Iterator[str]:
    style = VERDICT_STYLES.get(str(row["verdict"]), "error")
    why = f": {row['reason']}" if row["verdict"] in ("diverged", "unknown") else ""
    yield f"    {_pair(row)}: {page.style(str(row['verdict']), style)}{why}"


def _pair(row: Row) -> str:
    """The two brokers, each with its moment where these differ."""
    ids = cast("list[int]", row["broker_ids"])
    moments = cast("list[str | None]", row["moments"] or [row["moment"]] * 2)
    return ", ".join(f"{id} {moment}" if moment else str(id) for id, moment in zip(ids, moments, strict=True))


def _finding(row: Row, page: Page) -> Iterator[str]:
    yield f"{page.style(str(row['severity']), str(row['severity']))} {row['code']}: {row['message']}"


_LINES = {
    "lineage": _lineage,
    "epoch_difference": _difference,
    "divergence": _divergence,
    "verdict": _verdict,
    "finding": _finding,
}


def end_offset_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line a replica, under the name of its partition; what a running leader answers below."""
    partition: object = None
    for row in rows:
        if (row["topic"], row["partition"]) != partition:
            partition = row["topic"], row["partition"]
            name = page.style(f"{row['topic']}-{row['partition']}", "bold")
            yield f"{name}  asked for epoch {row['requested_epoch']}"
        who = "broker ?" if row["broker_id"] is None else f"broker {row['broker_id']}"
        if row["kind"] == "end_offset":
            at = f" {row['moment']}" if row["moment"] else ""
            yield f"    {who + at:<18} {_answer(row)}"
        elif row["error"]:
            yield page.style(f"    {who}, asked now, gave no answer: {row['error']}", "error")
        else:
            difference = f"; {row['difference']}" if row["difference"] else ""
            yield f"    {who}, asked now: {_answer(row)}{difference}"


def _answer(row: Row) -> str:
    if row["end_offset"] == -1:
        return "undefined: it knows no such epoch"
    epoch = "" if row["leader_epoch"] is None else f"epoch {row['leader_epoch']} "
    return f"{epoch}ends at {row['end_offset']}"


def truncation_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line a follower: where it would truncate and what that drops; the questions and answers below."""
    for row in rows:
        name = page.style(f"{row['topic']}-{row['partition']}", "bold")
        at = f" {row['moment']}" if row["moment"] else ""
        follower = "?" if row["broker_id"] is None else row["broker_id"]
        leader = "?" if row["leader"] is None else row["leader"]
        dropped = row["offsets_dropped"]
        said = (
            f"truncates to {row['truncate_to']} and drops {dropped} offsets" if dropped else "drops nothing"
        )
        below = ", below its own high watermark" if row["below_own_high_watermark"] else ""
        line = f"broker {follower}{at} {said} under broker {leader}{below}"
        yield f"{name}  {page.style(line, 'error') if below else line}  ({row['algorithm']}, {row['kafka_version']})"
        for one in cast("list[dict[str, object]]", row["rounds"]):
            yield f"    {', '.join(f'{key} {_short(value)}' for key, value in one.items() if value is not None)}"


def _short(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key} {part}" for key, part in value.items())
    return cell(value)
