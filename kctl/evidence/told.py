"""What brokers told of their cluster: rows of the cluster, its brokers, topics, partitions and configurations, one a line.

`kctl collect --bootstrap-server` writes them, as `kctl topic describe` and others print them. Nothing in them is trusted
to be well formed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from kctl.errors import UnreadableFile, file_error
from kctl.files import open_file

BEGINNING = b'{"kind":"cluster",'
LONGEST_LINE = 1 << 20


class ToldBroker(msgspec.Struct, tag="broker", tag_field="kind"):
    """A broker."""

    broker_id: int
    is_alive: bool


class ToldTopic(msgspec.Struct, tag="topic", tag_field="kind"):
    """A topic, with what its configuration sets; None where that could not be read."""

    topic: str
    topic_id: str | None
    configs: dict[str, str] | None


class ToldPartition(msgspec.Struct, tag="partition", tag_field="kind"):
    """A partition."""

    topic: str
    partition: int
    leader: int | None
    leader_epoch: int | None
    replicas: list[int]
    isr: list[int]
    eligible_leader_replicas: list[int] | None = None


class ToldConfig(msgspec.Struct, tag="config", tag_field="kind"):
    """A value that is set for an entity."""

    entity_type: str
    entity_name: str
    key: str
    value: str | None


class ToldWhole(msgspec.Struct, tag="cluster", tag_field="kind"):
    """The cluster, in the first line."""

    cluster_id: str | None


Told = ToldWhole | ToldBroker | ToldTopic | ToldPartition | ToldConfig
_decode = msgspec.json.Decoder(Told).decode


def is_told(path: Path) -> bool:
    """Whether a file begins as these do."""
    try:
        with open_file(path) as file:
            return file.read(len(BEGINNING)) == BEGINNING
    except OSError:
        return False


def told_rows(path: Path) -> Iterator[Told]:
    """The rows of a file. `UnreadableFile` names the line that is none."""
    try:
        with open_file(path) as file:
            number = 0
            while raw := file.readline(LONGEST_LINE + 1):
                number += 1
                try:
                    yield _decode(raw)
                except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                    raise UnreadableFile(
                        f"{path}: no row of a cluster at line {number} ({error})",
                        "collect it again with `kctl collect --bootstrap-server HOSTS`",
                    ) from error
    except OSError as error:
        raise file_error(path, error) from error
