"""Metadata logs from the paths of a command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kctl.errors import KctlError
from kctl.evidence.model import Arriving
from kctl.remote.metadata_log import MetadataLog, Say, ValueChunk, find_metadata


@dataclass
class Opened:
    """A metadata log, and the paths that could not be opened."""

    log: MetadataLog
    failures: list[KctlError] = field(default_factory=list)
    stream: list[ValueChunk] = field(default_factory=list)

    @property
    def chunks(self) -> Iterator[ValueChunk]:
        """All values: those of standard input first."""
        yield from self.stream
        yield from self.log.chunks()


def open_sources(
    paths: Sequence[str],
    say: Say,
    *,
    brokers: Sequence[str] = (),
    moments: Sequence[str] = (),
    arriving: Mapping[Path, Arriving] | None = None,
) -> Opened:
    """The metadata log below the paths. `arriving` gives the segments of folders of a running cluster."""
    from kctl.evidence.discover import discover

    if not paths:
        return Opened(MetadataLog(say=say))
    evidence = discover(paths, brokers=brokers, moments=moments).with_arriving(arriving or {})
    log = find_metadata(evidence, say)
    failures = list(evidence.failures)
    if not log.replicas and not failures:
        failures.append(
            KctlError(
                f"no segment of __remote_log_metadata below {', '.join(map(str, paths))}",
                "name a log directory, a partition folder or a segment",
            )
        )
    return Opened(log, failures)


def open_chunks(
    paths: Sequence[str],
    say: Say,
    standard_input: Callable[[], bytes],
    arriving: Mapping[Path, Arriving] | None = None,
) -> Opened:
    """The same, where `-` among the paths stands for standard input."""
    opened = open_sources([path for path in paths if path != "-"], say, arriving=arriving)
    if "-" in paths:
        from kctl.remote.standard_input import chunks_of_stream

        opened.stream = list(chunks_of_stream(standard_input(), say))
    return opened
