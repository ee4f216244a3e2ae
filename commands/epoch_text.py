"""How `kctl epoch show` and `compare` lay out lineages for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from commands.render import Page, Row
from commands.replica_text import epochs_text, ids_text


def epoch_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line a replica, under the name of its partition; differences and branch points below."""
    partition: object = None
    for row in rows:
        if row["kind"] != "finding" and (row["topic"], row["partition"]) != partition:
            partition = row["topic"], row["partition"]
            yield page.style(f"{row['topic']}-{row['partition']}", "bold")
        yield from _LINES[str(row["kind"])](row, page)


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
    ids = ids_text(row["broker_ids"])
    yield page.style(f"    {ids}: other epochs at [{row['from_offset']}, {row['to_offset']})", "error")


def _verdict(row: Row, page: Page) -> Iterator[str]:
    yield f"    {ids_text(row['broker_ids'])}: {row['verdict']}: {row['reason']}"


def _finding(row: Row, page: Page) -> Iterator[str]:
    yield f"{page.style(str(row['severity']), str(row['severity']))} {row['code']}: {row['message']}"


_LINES = {
    "lineage": _lineage,
    "epoch_difference": _difference,
    "divergence": _divergence,
    "verdict": _verdict,
    "finding": _finding,
}
