"""How far a verification has come, in a file: replaced whole, so that one that is cut off leaves the last state."""

import json
import os
import time
from pathlib import Path

from kctl.cluster.state import ClusterState
from kctl.errors import KctlError, Refused, reason_of
from kctl.model import TopicPartition

EVERY = 1.0  # seconds between two states on disk: what a run that is killed compares again


class Progressed:
    """The offsets up to which partitions were equal. Raises Refused for the file of another cluster.

    Close it, or use it as a context manager: the last state is on disk then.
    """

    def __init__(self, path: Path, cluster_id: str | None) -> None:
        self._path = path
        self._cluster_id = cluster_id
        self._done: dict[str, tuple[str | None, int]] = {}
        self._written, self._is_written = 0.0, True
        if path.exists():
            self._read()

    def _read(self) -> None:
        try:
            values = json.loads(self._path.read_bytes())
            cluster_id = values["cluster_id"]
            self._done = {name: (id, int(offset)) for name, (id, offset) in values["partitions"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise KctlError(f"{self._path} does not say how far a verification came ({error})") from error
        if cluster_id != self._cluster_id:
            raise Refused(f"{self._path} is about cluster {cluster_id}, this is {self._cluster_id}")

    def offsets(self, state: ClusterState) -> dict[TopicPartition, int]:
        """Where to go on; a topic that was made anew since begins again."""
        found = {}
        for tp in state.partitions():
            id, offset = self._done.get(str(tp), (None, 0))
            if offset and id == state.topics[tp.topic].topic_id:
                found[tp] = offset
        return found

    def remember(self, partition: TopicPartition, topic_id: str | None, offset: int) -> None:
        """Note a partition; on disk within a second of the next one's, or when it is closed."""
        self._done[str(partition)] = (topic_id, offset)
        self._is_written = False
        if time.monotonic() - self._written >= EVERY:
            self._write()

    def _write(self) -> None:
        beside = self._path.with_name(self._path.name + ".new")
        try:
            with beside.open("w", encoding="utf-8") as file:
                file.write(json.dumps({"cluster_id": self._cluster_id, "partitions": self._done}))
                file.flush()
                os.fsync(file.fileno())
            beside.rename(self._path)
        except OSError as error:
            raise KctlError(f"{self._path}: {reason_of(error)}") from error
        self._written, self._is_written = time.monotonic(), True

    def close(self) -> None:
        """Put what is not there yet on disk."""
        if not self._is_written:
            self._write()

    def __enter__(self) -> "Progressed":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
