"""Which segments are below a path or URI, and of which broker and partition, by names and `meta.properties` alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from formats.errors import FormatError
from formats.log_dir.file_names import (
    META_PROPERTIES,
    FileState,
    FolderKind,
    parse_partition_folder,
    parse_segment_file,
)
from formats.log_dir.meta_properties import parse_meta_properties
from kctl.errors import KctlError
from kctl.evidence.names import broker_id_of
from kctl.findings import Finding, Place
from kctl.tier.stores import Store, open_store

LARGEST_IDENTITY = 1 << 20


class SegmentRef(NamedTuple):
    """A `.log` of a live partition, and what its path says. Sent to executors."""

    store: str  # path or URI of the root
    key: str  # below the root
    index_key: str | None
    size_in_bytes: int
    base_offset: int
    next_base_offset: int | None  # of the next segment in the same folder
    topic: str
    partition: int
    broker_id: int | None
    moment: str | None

    @property
    def log(self) -> tuple[str, str]:
        """The log that the segment is part of: the root, and the folder's key below it."""
        return self.store, self.key.rpartition("/")[0]

    def place(self) -> Place:
        """The place of its findings and rows."""
        return Place(
            broker_id=self.broker_id,
            topic=self.topic,
            partition=self.partition,
            file=self.key,
            moment=self.moment,
        )


def list_segments(where: str, findings: list[Finding]) -> list[SegmentRef]:
    """The segments below a path or URI, by folder and base offset. What cannot be listed is a finding, and listing goes on.

    `KctlError` if the root itself cannot be listed.
    """
    store = open_store(where)
    sizes = {
        stored.key: stored.size_in_bytes
        for stored in store.objects(findings.append)
        if stored.size_in_bytes is not None
    }
    brokers = _Brokers(store, sizes)
    refs = [ref for key in sizes if (ref := _ref(where, key, sizes, brokers))]
    refs.sort(key=lambda ref: (ref.log, ref.base_offset))
    return list(_with_next(refs))


def _ref(where: str, key: str, sizes: dict[str, int], brokers: _Brokers) -> SegmentRef | None:
    folder, _, name = key.rpartition("/")
    file = parse_segment_file(name)
    if file is None or file.suffix != ".log" or file.state is not FileState.LIVE:
        return None
    folder_name = parse_partition_folder((folder or where).rstrip("/").rpartition("/")[2])
    if folder_name is None or folder_name.kind is not FolderKind.LIVE:
        return None
    index = f"{key.removesuffix('.log')}.index"
    log_dir = folder.rpartition("/")[0]
    return SegmentRef(
        where, key, index if index in sizes else None, sizes[key], file.base_offset, None, folder_name.topic, folder_name.partition,
        brokers.of(log_dir), moment_in(key),
    )  # fmt: skip


def moment_in(key: str) -> str | None:
    """The moment that a key names, as `moments/NAME/...`."""
    parts = key.split("/")
    return parts[parts.index("moments") + 1] if "moments" in parts[:-1] else None


def _with_next(refs: list[SegmentRef]) -> Iterator[SegmentRef]:
    for ref, following in zip(refs, [*refs[1:], None], strict=True):
        same = following is not None and following.log == ref.log
        yield ref._replace(next_base_offset=following.base_offset) if following is not None and same else ref


class _Brokers:
    """The broker of each log directory: by `meta.properties`, else by a folder name such as `broker-3`."""

    def __init__(self, store: Store, sizes: dict[str, int]) -> None:
        self.store, self.sizes = store, sizes
        self.known: dict[str, int | None] = {}

    def of(self, log_dir: str) -> int | None:
        """The broker id; None if unknown."""
        if log_dir not in self.known:
            self.known[log_dir] = self._recorded(log_dir)
            if self.known[log_dir] is None:
                self.known[log_dir] = self._named(log_dir)
        return self.known[log_dir]

    def _recorded(self, log_dir: str) -> int | None:
        key = f"{log_dir}/{META_PROPERTIES}" if log_dir else META_PROPERTIES
        if key not in self.sizes:
            return None
        try:
            source = self.store.open(key)
            try:
                text = source.read_at(0, min(source.size, LARGEST_IDENTITY)).decode("latin-1")
            finally:
                source.close()
            return parse_meta_properties(text).broker_id
        except (OSError, FormatError, KctlError):
            return None

    def _named(self, log_dir: str) -> int | None:
        parts = [self.store.name.rstrip("/").rpartition("/")[2], *filter(None, log_dir.split("/"))]
        for level in range(len(parts) - 1, -1, -1):
            broker_id = broker_id_of(parts[level], parts[level - 1] if level else "")
            if broker_id is not None:
                return broker_id
        return None
