"""TOPIC[-PARTITION] in place of a path: with `--bootstrap-server` the partitions are copied aside and examined there.

The copy lies below TMPDIR and is taken away when the command ends.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.connecting import wire
from commands.frame import Frame

if TYPE_CHECKING:
    from kctl.cluster.state import ClusterState
    from kctl.model import TopicPartition


def with_live(frame: Frame, paths: tuple[str, ...]) -> tuple[str, ...]:
    """The paths, with those that name no file and a topic or partition of the cluster given replaced by a copy.

    Raises KctlError for a name that is neither.
    """
    if not frame.given.get("bootstrap_server"):
        return paths
    names = [path for path in dict.fromkeys(paths) if path != "-" and not Path(path).exists()]
    if not names:
        return paths
    folder = Path(tempfile.mkdtemp(prefix="kctl-live-"))
    click.get_current_context().call_on_close(lambda: _remove(folder))
    _copy(frame, names, folder)
    return (*(path for path in paths if path not in names), *map(str, sorted(folder.iterdir())))


def is_live(frame: Frame, paths: tuple[str, ...], *names: str) -> bool:
    """Whether one of these names was given in place of a path, and so was read from the running cluster."""
    given = {path for path in paths if path != "-" and not Path(path).exists()}
    return bool(frame.given.get("bootstrap_server") and given & set(names))


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _copy(frame: Frame, names: list[str], folder: Path) -> None:
    from kctl.wire.copying import copy_partitions
    from kctl.wire.reading import read_cluster

    with wire(frame) as connected:
        everything = read_cluster(connected, (), partition_states=False)
        chosen = {name: _split(name, everything) for name in names}
        state = read_cluster(connected, {topic for topic, _ in chosen.values()})
        partitions = [tp for name in names for tp in _partitions(name, chosen[name], state)]
        for failure in copy_partitions(connected, state, partitions, folder, progress=frame.progress()):
            frame.report(failure)


def _split(name: str, state: ClusterState) -> tuple[str, int | None]:
    from kctl.errors import KctlError

    if name in state.topic_names:
        return name, None
    topic, dash, number = name.rpartition("-")
    if dash and number.isdecimal() and topic in state.topic_names:
        return topic, int(number)
    raise KctlError(f"{name}: there is no such file, and no such topic or partition in the cluster")


def _partitions(name: str, chosen: tuple[str, int | None], state: ClusterState) -> list[TopicPartition]:
    from kctl.errors import KctlError
    from kctl.model import TopicPartition

    topic, number = chosen
    numbers = sorted(state.topics[topic].partitions) if number is None else [number]
    if number is not None and number not in state.topics[topic].partitions:
        raise KctlError(f"{name}: topic {topic} has no partition {number}")
    return [TopicPartition(topic, p) for p in numbers]


def live_files(frame: Frame, paths: tuple[str, ...]) -> tuple[str, ...]:
    """As `with_live`, for a command that takes files: the segments of each copied partition in order."""
    found = with_live(frame, paths)
    if found == paths:
        return paths
    kept = [path for path in found if path in paths]
    copies = [path for path in found if path not in paths]
    return (*kept, *(str(log) for copy in copies for log in sorted(Path(copy).glob("*/*.log"))))
