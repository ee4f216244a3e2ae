"""`kctl replica verify`: the replicas of a running cluster held against each other."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.byte_sizes import Size
from commands.changing import Duration
from commands.connecting import wire
from commands.frame import Frame, command
from commands.path_types import GIVEN_PATH
from commands.render import Outcome, Page, Row
from commands.replica_text import VERDICT_STYLES

if TYPE_CHECKING:
    from kctl.cluster.state import ClusterState
    from kctl.model import TopicPartition
    from kctl.wire.resuming import Progressed
    from kctl.wire.verification import ReplicaVerification
    from kctl.wire.verified import Verified


@command(
    "verify",
    examples="""
    kctl replica verify --bootstrap-server kafka1:9092
    kctl replica verify --topic orders --topic payments --max-rate 50MiB
    kctl replica verify --resume verified.json --output jsonl
    """,
    status="0 all replicas are equal · 3 could not · 5 replicas differ, are damaged, or were not all compared",
)
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Only this topic; repeatable.")
@click.option(
    "--partition", "partitions", multiple=True, type=int, metavar="N", help="Only this partition; repeatable."
)
@click.option(
    "--max-rate", type=Size(), metavar="BYTES", help="Read no more a second, of all brokers together."
)
@click.option(
    "--resume",
    type=GIVEN_PATH,
    metavar="FILE",
    help="Remember in FILE how far each partition is compared, and go on from there.",
)
@click.option(
    "--timeout", type=Duration(), default="10s", show_default=True, help="How long to wait for an answer."
)
def verify(
    frame: Frame,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    max_rate: int | None,
    resume: Path | None,
    timeout: float,
) -> Outcome:
    """Compare every replica of every partition while the cluster runs.

    Batches are fetched from leaders and followers up to the high watermark; equal bytes with a right CRC are
    sound, and where bytes differ the records are compared. Nothing is written to the cluster.
    """
    return Outcome(_rows(frame, topics, partitions, max_rate, resume, timeout), text=verify_text)


def _rows(
    frame: Frame,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    max_rate: int | None,
    resume: Path | None,
    timeout: float,
) -> Iterator[Row]:
    from kctl.wire.reading import read_cluster
    from kctl.wire.resuming import Progressed
    from kctl.wire.verification import Options, ReplicaVerification

    begun = time.monotonic()
    with wire(frame, timeout=timeout) as connected:
        state = read_cluster(connected, topics or None, configs=("topics",))
        chosen = _chosen(frame, state, topics, partitions)
        counts: dict[str, int] = {}
        batches = 0
        with Progressed(resume, state.cluster_id) if resume else nullcontext() as done:
            options = Options(max_rate=max_rate, begin=done.offsets(state) if done else {})
            run = ReplicaVerification(connected, state, options, frame.progress())
            for one in run.results(chosen):
                yield from _partition_rows(one)
                counts[one.verdict] = counts.get(one.verdict, 0) + 1
                batches += one.batches
                if done:
                    _remember(done, one, state)
    yield _summary(counts, batches, run, time.monotonic() - begun)


def _chosen(
    frame: Frame, state: ClusterState, topics: tuple[str, ...], partitions: tuple[int, ...]
) -> list[TopicPartition]:
    from commands.topic import note_problems
    from kctl.errors import KctlError

    note_problems(frame, state)
    for name in dict.fromkeys(topics):
        if name not in state.topic_names:
            frame.report(KctlError(f"no topic {name}"))
    found = [tp for tp in state.partitions() if not partitions or tp.partition in partitions]
    return [tp for tp in found if len(state.topics[tp.topic].origin_replicas(tp.partition)) > 1]


def _remember(done: Progressed, one: Verified, state: ClusterState) -> None:
    if one.verdict == "equal":
        done.remember(one.partition, state.topics[one.partition.topic].topic_id, one.offset)


def _partition_rows(one: Verified) -> Iterator[Row]:
    from kctl.rows.live import VERIFIED
    from kctl.rows.replica import DIVERGENCE

    for divergence in one.divergences:
        yield DIVERGENCE(
            topic=one.partition.topic,
            partition=one.partition.partition,
            broker_ids=list(divergence.broker_ids),
            from_offset=divergence.from_offset,
            to_offset=divergence.to_offset,
            epochs=[list(side) for side in divergence.epochs],
        )
    for finding in one.findings:
        yield finding.row()
    yield VERIFIED(
        topic=one.partition.topic,
        partition=one.partition.partition,
        verdict=one.verdict,
        best_source=one.best_source,
        reason=one.reason,
        broker_ids=sorted(one.compared),
        branches=one.branches,
        leader=one.leader if one.leader >= 0 else None,
        from_offset=one.from_offset,
        to_offset=max(one.from_offset, one.offset),
        log_end_offsets=[list(pair) for pair in sorted(one.ends.items())],
        bytes=one.size_in_bytes,
        batches=one.batches,
    )


def _summary(counts: dict[str, int], batches: int, run: ReplicaVerification, seconds: float) -> Row:
    from kctl.rows.live import VERIFICATION

    return VERIFICATION(
        partitions=sum(counts.values()),
        equal=counts.get("equal", 0),
        wrong=sum(counts.get(verdict, 0) for verdict in ("diverged", "damaged", "hole")),
        unknown=counts.get("unknown", 0),
        bytes=run.bytes_read,
        batches=batches,
        seconds=round(seconds, 3),
    )


def verify_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """What is not equal, and the sum of it all."""
    notes: list[str] = []
    for row in rows:
        if row["kind"] == "divergence":
            brokers = row["broker_ids"]
            assert isinstance(brokers, list)
            text = f"    brokers {brokers[0]} and {brokers[1]} hold different records at "
            notes.append(page.style(f"{text}[{row['from_offset']}, {row['to_offset']})", "error"))
        elif row["kind"] == "finding":
            severity = str(row["severity"])
            notes.append(f"    {page.style(severity, severity)} {row['code']}: {row['message']}")
        elif row["kind"] == "verdict":
            verdict = str(row["verdict"])
            if verdict != "equal" or notes:
                name = page.style(f"{row['topic']}-{row['partition']}", "bold")
                best = row["best_source"]
                trust = f"; take broker {best}" if best is not None else ""
                style = VERDICT_STYLES.get(verdict, "error")
                yield f"{name}   {page.style(verdict, style)}: {row['reason']}{trust}"
                yield from notes
            notes = []
        else:
            yield _sum(row, page)


def _sum(row: Row, page: Page) -> str:
    read, seconds = row["bytes"], row["seconds"]
    assert isinstance(read, int) and isinstance(seconds, float)
    rate = f", {read / max(seconds, 0.001) / 1e6:,.0f} MB/s" if read else ""
    wrong, unknown = row["wrong"], row["unknown"]
    said = f"{row['partitions']:,} partitions compared: {row['equal']:,} equal"
    said += f", {wrong:,} wrong" if wrong else ""
    said += f", {unknown:,} not known" if unknown else ""
    style = "error" if wrong else "warning" if unknown else "good"
    return f"{page.style(said, style)}; {read:,} bytes in {seconds:,.1f} s{rate}"
