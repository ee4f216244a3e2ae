"""What a cleaner that stopped has not compacted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from formats.log_dir.file_names import FolderKind
from kctl.broker_logs.failures import LoggedCause
from kctl.checks.directory import CLEANER, read_checkpoints
from kctl.checks.report import CheckOptions
from kctl.evidence.model import FoundEvidence
from kctl.findings import Finding, Place
from kctl.findings.failures import COMPACTION_STOPPED
from kctl.log.folder import read_folder
from kctl.times import iso


def uncompacted(evidence: FoundEvidence, stopped: Mapping[int, LoggedCause]) -> Iterator[Finding]:
    """For each partition that the cleaner of a broker compacted before it stopped: what it has not compacted since.

    The active segment is never compacted, so that it does not count. Of several moments the newest is meant.
    """
    newest = evidence.moments[-1] if evidence.moments else None
    for log_dir in evidence.log_dirs:
        logged = stopped.get(-1 if log_dir.broker_id is None else log_dir.broker_id)
        if logged is None or log_dir.moment not in (None, newest):
            continue
        checkpoints = read_checkpoints(log_dir, Place(), CheckOptions())
        for replica in evidence.replicas:
            offset = checkpoints.get(CLEANER, replica.topic_partition)
            if replica.log_dir is not log_dir or offset is None or replica.kind is not FolderKind.LIVE:
                continue
            try:
                closed = read_folder(replica.folder).logs[:-1]
            except OSError:
                continue
            behind = [segment for segment in closed if segment.base_offset >= offset]
            if behind:
                yield COMPACTION_STOPPED.at(
                    Place(
                        broker_id=log_dir.broker_id,
                        topic=replica.topic,
                        partition=replica.partition,
                        file=logged.file,
                        line=logged.line,
                        moment=log_dir.moment,
                    ),
                    broker=logged.broker_id,
                    time=iso(logged.time_ms),
                    partition=replica.topic_partition,
                    offset=offset,
                    bytes=sum(segment.log.size_in_bytes for segment in behind if segment.log),
                    segments=len(behind),
                    why=logged.exception or "The logs do not say why",
                    line=logged.line,
                )
