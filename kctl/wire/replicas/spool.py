"""Parts where replicas differ: written to disk as folders of brokers, and compared like any evidence.

A part begins at an offset and has some 64 MiB of each replica, up to the end that all of them share.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from formats.log.columns.headers import Headers, gather, walk
from formats.values import Struct, replace
from kctl.errors import KctlError
from kctl.findings import Finding
from kctl.model import TopicPartition
from kctl.replica.comparison.partition import Divergence
from kctl.temporary_folder import temporary_folder
from kctl.wire.replicas.fetching import Fetched, Fetcher, FetchPosition
from kctl.wire.replicas.fronts import padded

MOST = 64 << 20  # bytes of each replica
FETCH = 4 << 20


class ComparedPart(Struct, frozen=True, kw_only=True):
    """The result of comparing a part of a partition: where it ends, and what differs."""

    end: int
    verdict: str
    reason: str
    divergences: tuple[Divergence, ...] = ()
    findings: tuple[Finding, ...] = ()
    best_source: int | None = None
    branches: tuple[tuple[int, ...], ...] = ()
    size_in_bytes: int = 0


def headers_of(data: bytes | memoryview) -> Headers:
    """The headers of the whole batches at the front of fetched bytes."""
    block = padded(data)
    return gather(block, walk(block, 0, len(data)).positions)


class Spool:
    """The copies of one part. `until` is the offset up to which all replicas can be read."""

    def __init__(self, fetcher: Fetcher, partition: TopicPartition, start: int, until: int) -> None:
        self._fetcher = fetcher
        self._partition = partition
        self._start = start
        self._until = until
        self._bases = np.empty(0, np.int64)  # of the batches of the replica that was read first

    def compare(self, replicas: Sequence[int], *, is_compacted: bool) -> ComparedPart:
        """Read the part from every replica and compare the copies."""
        from kctl.evidence.discover import discover
        from kctl.replica.comparison.search import ComparedEvidence, CompareOptions

        with temporary_folder("verify") as spooled:
            ends, folders, size = {}, [], 0
            for broker_id in replicas:
                folder = spooled / f"broker-{broker_id}"
                log = folder / str(self._partition) / f"{self._start:020d}.log"
                log.parent.mkdir(parents=True)
                ends[broker_id] = self._copy(broker_id, log)
                size += log.stat().st_size
                folders.append(folder)
            evidence = discover(folders, brokers=[f"{b}={f}" for b, f in zip(replicas, folders, strict=True)])
            compacted = frozenset({self._partition.topic} if is_compacted else ())
            problems: list[KctlError] = []
            compared = ComparedEvidence(
                evidence, CompareOptions(compacted=compacted, jobs=1), problems.append
            )
            (comparison,) = compared.comparisons()
            findings = [_without_file(finding) for finding in comparison.findings]
        verdict = "equal" if comparison.verdict == "behind" else comparison.verdict
        return ComparedPart(
            end=min(ends.values()),
            verdict=verdict,
            reason=comparison.reason,
            divergences=tuple(comparison.divergences),
            findings=tuple(findings),
            best_source=comparison.best_source,
            branches=tuple(tuple(b.replicas) for b in comparison.best.branches) if comparison.best else (),
            size_in_bytes=size,
        )

    def _copy(self, broker_id: int, path: Path) -> int:
        """Write one replica's part; returns the offset at which it ends."""
        offset, written, last_base = self._start, 0, -1
        bases: list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]] = []
        with path.open("wb") as file:
            while offset < self._until and written < MOST:
                (answer,) = self._fetcher.fetch([FetchPosition(broker_id, self._partition, offset)], FETCH)
                if not isinstance(answer, Fetched) or answer.error_code or not answer.data:
                    break
                headers = headers_of(answer.data)
                new = headers.base_offset > last_base
                sane = headers.last_offset >= headers.base_offset
                count = len(headers) if sane.all() else int(np.argmin(sane))
                first = int(np.argmax(new)) if new.any() else count
                if first >= count:
                    file.write(answer.data)  # whatever it is, it is for the comparison to say
                    written += len(answer.data)
                    offset = self._next_base(offset)
                    continue
                begin = int(headers.position[first])
                end = int(headers.position[count - 1] + headers.size_in_bytes[count - 1])
                file.write(answer.data[begin:end])
                written += end - begin
                bases.append(headers.base_offset[first:count])
                last_base = int(headers.base_offset[count - 1])
                offset = max(offset + 1, int(headers.last_offset[count - 1]) + 1)
        if not len(self._bases) and bases:
            self._bases = np.concatenate(bases)
        return min(offset, self._until)

    def _next_base(self, offset: int) -> int:
        """The offset after bytes that are no batch: that of the next batch of another replica."""
        later = self._bases[self._bases > offset]
        return int(later[0]) if len(later) else self._until


def _without_file(finding: Finding) -> Finding:
    return replace(
        finding, place=replace(finding.place, file=None, position=None, evidence=None, moment=None)
    )
