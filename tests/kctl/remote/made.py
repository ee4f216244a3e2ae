"""Evidence of tiers made from recordings: private copies whose metadata log and objects tests change."""

from __future__ import annotations

import shutil
from pathlib import Path

from formats.log.record_batch import Record, write_batch
from formats.log.records import LogEntry, walk
from formats.messages.remote_log_metadata import RemoteLogMetadata, write_remote_log_metadata
from tests.conftest import recording


class Tiered:
    """A private copy of a recorded tier."""

    def __init__(self, folder: Path, name: str = "tier/a-healthy") -> None:
        self.folder = folder / "evidence"
        shutil.copytree(recording(name), self.folder)
        for path in (self.folder, *self.folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)

    @property
    def brokers(self) -> Path:
        """The log directories."""
        return self.folder / "brokers"

    @property
    def tier(self) -> Path:
        """The folder of the partitions' folders."""
        return self.folder / "tier" / "kafka-tiered-storage"

    def metadata_logs(self, partition: int) -> list[Path]:
        """The last segment of a metadata partition on each broker."""
        folders = self.brokers.glob(f"*/data/__remote_log_metadata-{partition}")
        return sorted(max(folder.glob("*.log")) for folder in folders)

    def append(self, partition: int, *values: RemoteLogMetadata | bytes | None, brokers: int = 99) -> None:
        """Records at the end of a metadata partition, on the first so many brokers."""
        for path in self.metadata_logs(partition)[:brokers]:
            entries = [item for item in walk(path.read_bytes()) if isinstance(item, LogEntry)]
            offset = entries[-1].last_offset + 1 if entries else int(path.stem)
            header = entries[-1].batch if entries else None
            epoch = header.partition_leader_epoch if header else 0
            with path.open("ab") as out:
                for number, one in enumerate(values):
                    value = one if isinstance(one, bytes) or one is None else write_remote_log_metadata(one)
                    record = Record(offset + number, 1_795_270_000_000, None, value)
                    out.write(write_batch([record], partition_leader_epoch=epoch))

    def objects(self, segment_id: str) -> dict[str, Path]:
        """A segment's objects by suffix."""
        found = self.tier.glob(f"*/*-{segment_id}.*")
        return {path.name.split(segment_id, 1)[1]: path for path in found}
