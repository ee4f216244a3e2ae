"""TOPIC[-PARTITION] in place of a path: with `--bootstrap-server` the partitions are read from their leaders.

The copies lie below TMPDIR until the command ends. Commands that read files one by one, or each log once, need
space for two segments; those that compare copies need space for the partitions.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.cli.connecting import wire
from commands.cli.frame import Frame
from kctl.errors import KctlError
from kctl.temporary_folder import new_folder, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kctl.cluster.state import ClusterState
    from kctl.evidence.model import Arriving
    from kctl.model import TopicPartition
    from kctl.wire.adapter import Wire


def with_live(frame: Frame, paths: tuple[str, ...]) -> tuple[str, ...]:
    """The paths; names of topics and partitions of the cluster are replaced by copies.

    Raises KctlError for a name that is neither a file nor in the cluster.
    """
    names = live_names(frame, paths)
    if not names:
        return paths
    folder = _folder()
    _copy(frame, names, folder)
    return _replaced(paths, names, folder)


def with_arriving(frame: Frame, paths: tuple[str, ...]) -> tuple[tuple[str, ...], dict[Path, Arriving]]:
    """Like `with_live`, without copying: gives also the source of each folder's segments, for use while reading.

    The connections stay open until the command ends.
    """
    names = live_names(frame, paths)
    if not names:
        return paths, {}
    from kctl.wire.replicas.copying import arriving_segments

    folder, connected = _folder(), wire(frame)
    click.get_current_context().call_on_close(connected.close)
    state, partitions = _chosen(connected, names)
    arriving = arriving_segments(
        connected, state, partitions, folder, _reporting(frame), progress=frame.progress()
    )
    return _replaced(paths, names, folder), arriving


def sources(frame: Frame, paths: tuple[str, ...]) -> tuple[tuple[str, ...], dict[Path, Arriving]]:
    """The same for a command that compares replicas: copies if files are given too."""
    names = live_names(frame, paths)
    if any(path not in names and path != "-" for path in paths):
        return with_live(frame, paths), {}
    return with_arriving(frame, paths)


def live_partitions(
    frame: Frame, paths: tuple[str, ...], *, unless: str
) -> tuple[Wire, ClusterState, list[TopicPartition]] | None:
    """The partitions of the names, or without any those of the cluster, to ask brokers for; None for a path among them.

    `unless` is a topic whose name among them asks for its log. The connections stay open until the command ends.
    """
    names = live_names(frame, paths)
    if len(names) < len(set(paths)) or any(unless in (name, name.rpartition("-")[0]) for name in names):
        return None
    from kctl.wire.reading import read_cluster

    connected = wire(frame)
    click.get_current_context().call_on_close(connected.close)
    if names:
        return connected, *_chosen(connected, names)
    state = read_cluster(connected, visibility=True)
    return connected, state, list(state.partitions())


def _folder() -> Path:
    """A folder that exists until the command ends. Its path has no symbolic links, like paths of evidence."""
    folder = new_folder("live")
    click.get_current_context().call_on_close(folder.remove)
    return folder.path


def _reporting(frame: Frame) -> Callable[[Exception], None]:
    """A function that reports errors; a missing right is reported once for all partitions of a topic."""
    from kctl.cluster.rights import MissingRight

    reported = set[object]()

    def report(error: Exception) -> None:
        if not isinstance(error, MissingRight) or error.right not in reported:
            frame.report(error)
        reported.add(getattr(error, "right", None))

    return report


def _replaced(paths: tuple[str, ...], names: list[str], folder: Path) -> tuple[str, ...]:
    return (*(path for path in paths if path not in names), *map(str, sorted(folder.iterdir())))


def is_live(frame: Frame, paths: tuple[str, ...], *names: str) -> bool:
    """Whether one of these names was given in place of a path, and so read from the running cluster."""
    return bool(set(live_names(frame, paths)) & set(names))


def live_names(frame: Frame, paths: tuple[str, ...]) -> list[str]:
    """The arguments that are not paths, if brokers are named."""
    if not frame.names_brokers:
        return []
    return [path for path in dict.fromkeys(paths) if path != "-" and not Path(path).exists()]


def _copy(frame: Frame, names: list[str], folder: Path) -> None:
    from kctl.wire.replicas.copying import copy_partitions

    with wire(frame) as connected:
        state, partitions = _chosen(connected, names)
        report = _reporting(frame)
        for failure in copy_partitions(connected, state, partitions, folder, progress=frame.progress()):
            report(failure)


def _chosen(connected: Wire, names: list[str]) -> tuple[ClusterState, list[TopicPartition]]:
    """The state of the topics that are named, and their partitions that are. Raises KctlError for another name."""
    from kctl.wire.reading import read_cluster

    state = read_cluster(
        connected, {topic for name in names for topic in (name, name.rpartition("-")[0]) if topic}
    )
    chosen = {name: _split(name, state) for name in names}
    return state, [tp for name in names for tp in _partitions(name, chosen[name], state)]


def _split(name: str, state: ClusterState) -> tuple[str, int | None]:
    from formats.whole_numbers import whole_number

    if name in state.topic_names:
        return name, None
    topic, dash, number = name.rpartition("-")
    partition = whole_number(number)
    if dash and partition is not None and topic in state.topic_names:
        return topic, partition
    from kctl.cluster.names import absent_topics
    from kctl.internal_topics.rows import TRANSACTION_STATE

    if denied := {name, topic} & set(state.denied_topics):
        raise absent_topics(sorted(denied)[-1:], state)
    raise KctlError(
        f"{name}: no such file, and no such topic or partition in the cluster",
        "brokers create it for the first transaction; where there was none, leave it out"
        if TRANSACTION_STATE in (name, topic)
        else "`kctl topic list` lists the topics",
    )


def _partitions(name: str, chosen: tuple[str, int | None], state: ClusterState) -> list[TopicPartition]:
    from kctl.model import TopicPartition

    topic, number = chosen
    numbers = sorted(state.topics[topic].partitions) if number is None else [number]
    if number is not None and number not in state.topics[topic].partitions:
        raise KctlError(
            f"{name}: topic {topic} has no partition {number}", "`kctl topic describe` shows its partitions"
        )
    return [TopicPartition(topic, p) for p in numbers]


def live_files(frame: Frame, paths: tuple[str, ...]) -> tuple[tuple[str, ...], Iterator[str]]:
    """For a command that reads files one by one: the paths, and the segments of names of the cluster.

    A segment is copied when it is asked for, and deleted when the next one is.
    """
    names = live_names(frame, paths)
    return tuple(path for path in paths if path not in names), _segments(frame, names)


def _segments(frame: Frame, names: list[str]) -> Iterator[str]:
    if not names:
        return
    from kctl.wire.replicas.copying import copied_pieces

    with temporary_folder("live") as folder, wire(frame) as connected:
        state, partitions = _chosen(connected, names)
        pieces = copied_pieces(
            connected, state, partitions, folder, _reporting(frame), progress=frame.progress()
        )
        yield from map(str, pieces)
