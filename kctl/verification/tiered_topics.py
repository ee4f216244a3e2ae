"""Gaps between local segments of topics whose segments go to remote storage."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from formats.log_dir.file_names import FolderKind
from formats.values import Struct
from kctl.checks.report import FileReport, ReplicaTask, Report
from kctl.evidence.model import FoundEvidence
from kctl.findings import logs as log_codes
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.copies.moments import Znodes


class TieredTopics(Struct, dict=True):
    """The topics whose segments go to remote storage, by the metadata in the evidence; read when first needed."""

    evidence: FoundEvidence

    @cached_property
    def _clusters(self) -> list[Znodes]:
        from kctl.copies.moments import clusters_of

        return list(clusters_of(self.evidence, lambda error: None).values())

    def _remote(self, partition: TopicPartition) -> list[tuple[int, int]]:
        """The offsets [FROM, TO) of finished remote segments."""
        from kctl.replica.loss.recovery import remote_segments

        segments = remote_segments(self.evidence, {partition}).get(partition, ())
        return sorted((segment.start_offset, segment.end_offset + 1) for segment in segments)

    def settle(self, report: Report, task: ReplicaTask) -> None:
        """Say of a gap between local segments of a tiered topic what it is: a follower left old segments behind."""
        missing = [f for f in report.findings if f.code == log_codes.SEGMENT_MISSING.code]
        topic, number = task.place.topic, task.place.partition
        if not missing or topic is None or number is None or task.kind is not FolderKind.LIVE:
            return
        remote = self._remote(TopicPartition(topic, number))
        if not remote and not any(cluster.is_tiered(topic) for cluster in self._clusters):
            return
        for finding in missing:
            start, end = finding.place.base_offset or 0, (finding.place.last_offset or 0) + 1
            if remote and not _covers(remote, start, end):
                continue
            where = (
                "remote storage has them"
                if remote
                else "remote storage has them if they were copied, which its metadata would tell (`kctl remote audit`)"
            )
            below = [file for file in report.files if _base_offset(file) < end]
            report.findings[report.findings.index(finding)] = log_codes.TIERED_RESIDUE.at(
                finding.place,
                segments=sum(file.type == "log" for file in below),
                bytes=sum(file.size_in_bytes for file in below),
                from_offset=start,
                to_offset=end,
                remote=where,
            )


def _covers(ranges: Iterable[tuple[int, int]], start: int, end: int) -> bool:
    """Whether ranges, in order, leave no offset of [START, END) out."""
    for first, after in ranges:
        if first <= start < after:
            start = after
    return start >= end


def _base_offset(file: FileReport) -> int:
    """The offset in a segment file's name; beyond all of them for other files."""
    name = (file.place.file or "").rpartition("/")[2].partition(".")[0]
    return int(name) if name.isascii() and name.isdigit() else sys.maxsize
