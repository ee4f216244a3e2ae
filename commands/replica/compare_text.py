"""How the rows of `kctl replica compare` look on a terminal, and verdicts in other commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from commands.cli.render import Page, Row, epochs, finding_line, ids
from formats.words import counted

VERDICT_STYLES = {"equal": "good", "behind": "info", "unknown": "warning"}


def compare_text(
    rows: Iterable[Row], page: Page, propose: Callable[..., None] | None = None
) -> Iterator[str]:
    """A block a partition: the verdict, its replicas, and where they differ.

    What to run next on the evidence goes to `propose`: a command and its options.
    """
    block: list[Row] = []
    totals: dict[str, int] = {}
    is_damaged = False
    for row in rows:
        is_damaged |= row["kind"] == "finding" and row["code"] == "replica-damaged-copy"
        if row["kind"] == "finding" and row["topic"] is None:
            yield finding_line(row, page)
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
    yield f"{counted(sum(totals.values()), 'partition')} compared: {counts or 'no partition has copies of two brokers'}"
    if propose and is_damaged:  # what would the start of its broker cut
        propose("kctl log-dir start")


def verdict_line(row: Row, page: Page) -> str:
    """The verdict about a partition, why, whose copy is the partition now, and whose holds what it lacks."""
    style = VERDICT_STYLES.get(str(row["verdict"]), "error")
    at = f" at {row['moment']}" if row.get("moment") else ""
    now = row["current_lineage"] if row["best_source"] is None else row["best_source"]
    best = f"; current records: broker {now}" if now is not None else ""
    if row["recover_from"]:
        best += f"; committed records to recover: broker {ids(row['recover_from'])}"
    name = page.style(f"{row['topic']}-{row['partition']}{at}", "bold")
    return f"{name}   {page.style(str(row['verdict']), style)}: {row['reason']}{best}"


def divergence_line(row: Row, page: Page) -> str:
    """The brokers that hold different records, and where."""
    brokers = row["broker_ids"]
    assert isinstance(brokers, list)
    line = f"    brokers {' and '.join(map(str, brokers))} hold different records at "
    return page.style(f"{line}[{row['from_offset']}, {row['to_offset']})", "error")


def _block(block: list[Row], page: Page) -> Iterator[str]:
    verdict = block[-1]
    yield verdict_line(verdict, page)
    if verdict["verdict"] == "equal" and not any(r["kind"] == "finding" for r in block):
        return
    for row in block:
        if row["kind"] == "lineage":
            mark = row["high_watermark"]
            yield (
                f"    broker {row['broker_id']:<4} [{row['log_start_offset']}, {row['log_end_offset']})  "
                f"high watermark {'-' if mark is None else mark}  epochs {epochs(row['epochs'])}"
            )
    for row in block:
        if row["kind"] == "divergence":
            yield divergence_line(row, page)
        elif row["kind"] == "finding":
            yield "    " + finding_line(row, page)


def _rejoin_line(row: Row, page: Page) -> str:
    drops = "nothing"
    if row["truncate_to"] is not None:
        drops = f"{counted(row['offsets_dropped'], 'offset')} (truncates to {row['truncate_to']})"
    line = f"    with broker {row['leader']} as leader, broker {row['broker_id']} would drop {drops}"
    if row["below_own_high_watermark"]:
        return page.style(f"{line}, below its own high watermark", "error")
    return line
