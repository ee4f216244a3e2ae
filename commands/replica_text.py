"""How `kctl replica` and `kctl epoch` lay out their rows for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from commands.render import Page, Row

VERDICT_STYLES = {"equal": "good", "behind": "info", "unknown": "warning"}


def epochs_text(epochs: object) -> str:
    """Epochs as `epoch@start`."""
    pairs = cast("list[list[int]]", epochs)
    return " ".join(f"{epoch}@{start}" for epoch, start in pairs) or "none"


def ids_text(ids: object) -> str:
    """Broker ids in words."""
    return ", ".join(map(str, cast("list[int]", ids))) or "none"


def compare_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A block a partition: the verdict, its replicas, and where they differ."""
    block: list[Row] = []
    totals: dict[str, int] = {}
    for row in rows:
        if row["kind"] == "finding" and row["topic"] is None:
            yield _finding_line(row, page)
            continue
        if row["kind"] == "rejoin":
            yield _rejoin_line(row, page)
            continue
        block.append(row)
        if row["kind"] == "verdict":
            totals[str(row["verdict"])] = totals.get(str(row["verdict"]), 0) + 1
            yield from _block(block, page)
            block = []
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(totals.items()))
    yield f"{sum(totals.values())} partitions compared: {counts or 'none that two brokers hold'}"


def _block(block: list[Row], page: Page) -> Iterator[str]:
    verdict = block[-1]
    at = f" at {verdict['moment']}" if verdict["moment"] else ""
    style = VERDICT_STYLES.get(str(verdict["verdict"]), "error")
    best = verdict["best_source"]
    trust = f"; take broker {best}" if best is not None else ""
    name = f"{verdict['topic']}-{verdict['partition']}{at}"
    yield f"{page.style(name, 'bold')}   {page.style(str(verdict['verdict']), style)}: {verdict['reason']}{trust}"
    if verdict["verdict"] == "equal" and not any(r["kind"] == "finding" for r in block):
        return
    for row in block:
        if row["kind"] == "lineage":
            mark = row["high_watermark"]
            yield (
                f"    broker {row['broker_id']:<4} [{row['log_start_offset']}, {row['log_end_offset']})  "
                f"high watermark {'-' if mark is None else mark}  epochs {epochs_text(row['epochs'])}"
            )
    for row in block:
        if row["kind"] == "divergence":
            yield page.style(
                f"    brokers {ids_text(row['broker_ids'])} hold different records at "
                f"[{row['from_offset']}, {row['to_offset']})",
                "error",
            )
        elif row["kind"] == "finding":
            yield "    " + _finding_line(row, page)


def _finding_line(row: Row, page: Page) -> str:
    return f"{page.style(str(row['severity']), str(row['severity']))} {row['code']}: {row['message']}"


def _rejoin_line(row: Row, page: Page) -> str:
    if row["truncate_to"] is None:
        said = "would drop nothing"
    else:
        said = f"would truncate to {row['truncate_to']} and drop {row['offsets_dropped']} offsets"
    line = f"    if broker {row['leader']} led: broker {row['broker_id']} {said}"
    if row["below_own_high_watermark"]:
        line += ", below its own high watermark"
        return page.style(line, "error")
    return line
