"""How the rows of `kctl remote` look on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, cast

from commands.cli.clock import shown
from commands.cli.render import Page, Row, size
from formats.words import counted

Pairs = list[tuple[int, int]]
PAD = " " * 9


def time(ms: object) -> str:
    """A timestamp to the millisecond; a dash for none."""
    number = int(str(ms))
    return "-" if number < 0 else shown(number).replace("T", " ").removesuffix("Z")


def offsets(row: Row) -> str:
    """The offsets of a segment, half open."""
    return f"[{row['start_offset']}, {int(str(row['end_offset'])) + 1})"


def finding(row: Row, page: Page) -> str:
    """A finding on one line."""
    topic = f"{row['topic']}-{row['partition']}  " if row["topic"] is not None else ""
    segment = f"{row['remote_log_segment_id']}  " if row["remote_log_segment_id"] else ""
    head = page.style(f"{row['severity']:<8} {row['code']}", str(row["severity"]))
    return f"{head}  {topic}{segment}{row['message']}"


def segments_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A block for each partition, then totals."""
    before: Any = None
    for row in rows:
        if row["kind"] == "finding":
            yield finding(row, page)
        elif row["kind"] == "remote_segment":
            key = (row["topic"], row["partition"], row["topic_id"])
            if key != before:
                deletion = f"  {row['deletion_state']}" if row["deletion_state"] else ""
                yield (
                    page.style(f"{row['topic']}-{row['partition']}", "bold")
                    + f"  {row['topic_id']}{deletion}"
                )
                before = key
            epochs = ",".join(str(epoch) for epoch, _ in cast(Pairs, row["segment_leader_epochs"]))
            yield (
                f"  {offsets(row):<22} epochs {epochs:<10} {size(row['size_in_bytes']):>10}"
                f"  {row['remote_log_segment_id']}  {row['state']:<23} broker {row['broker_id']}"
                f"  {time(row['event_timestamp'])}"
            )
        else:
            yield from _total(row)


def _total(row: Row) -> Iterator[str]:
    name = row["topic"] if row["topic"] is not None else "total"
    parts = [counted(row["segments"], "segment"), size(row["size_in_bytes"])]
    for state, singular, plural in (
        ("unfinished", "unfinished copy", "unfinished copies"),
        ("deleting", "unfinished deletion", "unfinished deletions"),
    ):
        number = int(str(row[f"{state}_segments"]))
        if number:
            parts.append(f"{number:,} {singular if number == 1 else plural} ({size(row[f'{state}_bytes'])})")
    yield f"{name}: {', '.join(parts)}"


def audit_text(
    rows: Iterable[Row],
    page: Page,
    *,
    everything: bool = False,
    cleanup: str = "",
    following: list[str] | None = None,
) -> Iterator[str]:
    """Findings, those of a partition with one code as one entry unless all are asked for; a line a partition; totals.

    What to run next is added to `following`: `cleanup` where leftovers are, and what the worst finding means.
    """
    worst: dict[str, str] = {}
    leftovers = 0
    for partition, same in groupby(rows, _partition_of_finding):
        if partition is not None:
            findings = list(same)
            for row in findings:
                worst.setdefault(str(row["severity"]), str(row["code"]))
            yield from _grouped(findings, page, everything)
            continue
        for row in same:
            leftovers += int(str(row["orphan_bytes"])) if row["kind"] == "tier_summary" else 0
            yield from _row_text(row, page)
    if following is not None:
        following += [cleanup] if leftovers and cleanup else []
        following += [f"kctl finding {code}" for code in [worst.get("error", worst.get("warning"))] if code]


def _partition_of_finding(row: Row) -> tuple[object, object] | None:
    return (row["topic"], row["partition"]) if row["kind"] == "finding" else None


def _row_text(row: Row, page: Page) -> Iterator[str]:
    """A line of a partition, or the totals."""
    if row["kind"] == "tier_partition":
        gaps = ", ".join(f"[{a}, {b})" for a, b in cast(Pairs, row["gaps"]))
        parts = [
            counted(row["segments"], "segment"),
            counted(row["objects"], "object"),
            size(row["size_in_bytes"]),
        ]
        parts += [f"missing {gaps}"] if gaps else []
        parts += [f"{row['outside_lineage']} outside the lineage"] if row["outside_lineage"] else []
        log = ""
        if row["log_start_offset"] is not None:
            log = f"log [{row['log_start_offset']}, {row['log_end_offset']}), local from {row['local_log_start_offset']}"
        name = page.style(f"{row['topic']}-{row['partition']}", "bold")
        yield "  ".join(part for part in (name, log, ", ".join(parts)) if part)
    else:
        yield ""
        yield (
            f"{counted(row['partitions'], 'partition')}, {counted(row['segments'], 'segment')}, {counted(row['objects'], 'object')},"
            f" {size(row['bytes'])}; {size(row['orphan_bytes'])} unreferenced"
        )
        yield f"{counted(row['errors'], 'error')}, {counted(row['warnings'], 'warning')}"


def _grouped(rows: Iterable[Row], page: Page, everything: bool) -> Iterator[str]:
    """The findings of a partition, the worst first; the first of each code, and the number of the others."""
    by_code: dict[tuple[object, object], list[Row]] = {}
    for row in sorted(rows, key=lambda row: ("error", "warning", "info").index(str(row["severity"]))):
        by_code.setdefault((row["severity"], row["code"]), []).append(row)
    for same in by_code.values():
        for row in same if everything else same[:1]:
            severity = str(row["severity"])
            name = f"{row['topic']}-{row['partition']}" if row["topic"] is not None else ""
            places = (name, row["remote_log_segment_id"], row["file"])
            where = "".join(f"  {place}" for place in places if place)
            yield f"{page.style(f'{severity:<8}', severity)} {page.style(str(row['code']), 'bold')}{where}"
            yield from textwrap.wrap(
                str(row["message"]), max(40, page.width - 1), initial_indent=PAD, subsequent_indent=PAD
            )
        if len(same) > 1 and not everything:
            yield page.style(f"{PAD}and {len(same) - 1:,} more of these (--all shows each)", "dim")


STEPS = {"copy": "copy", "delete_remote": "delete in the tier", "delete_local": "delete locally"}


def plan_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A block a partition, its steps below."""
    for row in rows:
        if row["kind"] == "finding":
            yield finding(row, page)
        elif row["kind"] == "remote_partition":
            yield page.style(f"{row['topic']}-{row['partition']}", "bold") + (
                f"  leader {row['broker_id']} (by {row['how']})  log [{row['log_start_offset']}, {row['log_end_offset']})"
                f"  local from {row['local_log_start_offset']}  copied up to {row['highest_copied_offset']}"
            )
        else:
            end = int(str(row["last_offset"])) + 1
            segment = f"  {row['remote_log_segment_id']}" if row["remote_log_segment_id"] else ""
            yield (
                f"  {STEPS[str(row['action'])]:<18} [{row['base_offset']}, {end})  {size(row['size_in_bytes'])}{segment}"
                f"  {row['reason']}"
            )


def follower_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """The steps of the replica."""
    for row in rows:
        if row["kind"] == "finding":
            yield finding(row, page)
            continue
        yield f"{row['topic']}-{row['partition']}  broker {row['broker_id']} as {row['role']}"
        if row["role"] == "follower":
            yield f"  its log ends at {row['log_end_offset']}"
            if row["truncate_to"] is not None:
                yield f"  truncates to {row['truncate_to']}"
            yield f"  fetches from {row['fetch_offset']}; broker {row['leader']} answers {row['answer']}"
        if row["remote_log_segment_id"]:
            yield f"  looks up offset {row['target_offset']} of epoch {row['target_epoch']}: {row['remote_log_segment_id']}"
            yield f"  takes over leader epochs {row['leader_epochs']} and {row['producer_snapshot']}"
        if row["start_offset"] is not None:
            yield f"  its local log starts at {row['start_offset']}"
        numbers = ", ".join(map(str, cast("list[int]", row["scenarios"])))
        yield f"  {row['reason']}" + (f" (scenario {numbers} of KIP-405)" if numbers else "")
