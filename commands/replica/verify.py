"""`kctl replica verify`: the replicas of a running cluster compared with each other."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from commands.cli.connecting import wire
from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN_PATH, PARTITION, TIMEOUT, TOPIC, Size, option
from commands.cli.render import Outcome, Page, Row, finding_line
from commands.replica.compare_text import divergence_line, verdict_line
from formats.words import counted
from kctl.rows.live import VERIFICATION, VERIFIED

if TYPE_CHECKING:
    from kctl.cluster.state import ClusterState
    from kctl.model import TopicPartition
    from kctl.wire.replicas.verification import ReplicaVerification, Verified


@command(
    "verify",
    status="0 all replicas are equal · 3 failed · 5 replicas differ, are damaged, or were not all compared",
)
@TOPIC
@PARTITION
@option("--max-rate BYTES", "Limit on bytes read per second, over all brokers.", type=Size())
@option("--resume FILE", "Keep the progress of each partition in FILE and continue from it.", type=GIVEN_PATH)
@TIMEOUT
def verify(
    frame: Frame,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    max_rate: int | None,
    resume: Path | None,
    timeout: float,
) -> Outcome:
    """Compare every replica of every partition while the cluster runs.

    Batches are fetched from leaders and followers up to the high watermark. Equal bytes with a valid CRC are
    sound; where bytes differ the records are compared. Nothing is written to the cluster.

    $ kctl replica verify --bootstrap-server kafka1:9092
    $ kctl replica verify --topic orders --topic payments --max-rate 50MiB
    $ kctl replica verify --resume verified.json --output jsonl
    """
    from kctl.wire.reading import read_cluster
    from kctl.wire.replicas.verification import Options, ReplicaVerification, VerificationProgress

    def rows() -> Iterator[Row]:
        begun = time.monotonic()
        with wire(frame, timeout=timeout) as connected:
            state = read_cluster(connected, topics or None, configs=("topics",), visibility=not topics)
            chosen = _chosen(frame, state, topics, partitions)
            counts: dict[str, int] = {}
            batches = 0
            with VerificationProgress(resume, state.cluster_id) if resume else nullcontext() as done:
                options = Options(max_rate=max_rate, begin=done.offsets(state) if done else {})
                run = ReplicaVerification(connected, state, options, frame.progress())
                for verified in run.results(chosen):
                    yield from _partition_rows(verified)
                    counts[verified.verdict] = counts.get(verified.verdict, 0) + 1
                    batches += verified.batches
                    if done and verified.verdict == "equal":
                        tp = verified.partition
                        done.remember(tp, state.topics[tp.topic].topic_id, verified.offset)
        yield _summary(counts, batches, run, time.monotonic() - begun)

    return Outcome(rows(), text=verify_text)


def _chosen(
    frame: Frame, state: ClusterState, topics: tuple[str, ...], partitions: tuple[int, ...]
) -> list[TopicPartition]:
    from commands.topic import note_hidden, note_problems
    from kctl.cluster.names import unknown_topics
    from kctl.cluster.state import MOVES

    # Replicas that are being moved are compared too, so problems of the moves are of no interest here.
    note_problems(frame, [problem for problem in state.problems if not problem.place.startswith(MOVES)])
    note_hidden(frame, state, decides=not topics or not state.topic_names)
    for name in dict.fromkeys(topics):
        if name not in state.topic_names and name not in state.denied_topics:
            frame.report(unknown_topics([name], state.topic_names))
    return [
        tp
        for tp in state.partitions()
        if (not partitions or tp.partition in partitions)
        and len(state.topics[tp.topic].origin_replicas(tp.partition)) > 1
    ]


def _partition_rows(verified: Verified) -> Iterator[Row]:
    from kctl.rows.replica import DIVERGENCE

    for divergence in verified.divergences:
        epochs = [list(side) for side in divergence.epochs]
        yield DIVERGENCE.of(
            divergence, **verified.partition._asdict(), epochs=epochs, moment=None, moments=None
        )
    for finding in verified.findings:
        yield finding.row()
    yield VERIFIED.of(
        verified,
        broker_ids=sorted(verified.compared),
        leader=verified.leader if verified.leader >= 0 else None,
        to_offset=max(verified.from_offset, verified.offset),
        log_end_offsets=[list(pair) for pair in sorted(verified.ends.items())],
        bytes=verified.size_in_bytes,
    )


def _summary(counts: dict[str, int], batches: int, run: ReplicaVerification, seconds: float) -> Row:
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
    """Partitions that are not equal, then totals."""
    notes: list[str] = []
    for row in rows:
        if row["kind"] == "divergence":
            notes.append(divergence_line(row, page))
        elif row["kind"] == "finding":
            notes.append(f"    {finding_line(row, page)}")
        elif row["kind"] == "verdict":
            if row["verdict"] != "equal" or notes:
                yield verdict_line(row, page)
                yield from notes
            notes = []
        else:
            yield _sum(row, page)


def _sum(row: Row, page: Page) -> str:
    read, seconds = row["bytes"], row["seconds"]
    assert isinstance(read, int) and isinstance(seconds, float)
    rate = f", {read / max(seconds, 0.001) / 1e6:,.0f} MB/s" if read else ""
    wrong, unknown = row["wrong"], row["unknown"]
    counts = f"{counted(int(str(row['partitions'])), 'partition')} compared: {row['equal']:,} equal"
    counts += f", {wrong:,} wrong" if wrong else ""
    counts += f", {unknown:,} not known" if unknown else ""
    style = "error" if wrong else "warning" if unknown else "good"
    return f"{page.style(counts, style)}; {read:,} bytes in {seconds:,.1f} s{rate}"
