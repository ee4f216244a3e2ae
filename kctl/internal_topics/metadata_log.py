"""The metadata log of a KRaft cluster in a log directory: snapshots and segments as one run of records."""

from collections.abc import Callable, Iterator
from pathlib import Path

from formats.cluster_metadata import MetadataRecord, read_metadata_record
from formats.errors import FormatError
from formats.records import Entry, iterate_records, walk
from kctl.errors import KctlError
from kctl.internal_topics.cluster_image import ClusterImage
from kctl.internal_topics.reading import LIMIT, NOW, AsOf, Unreadable, entries
from kctl.log.folder import read_folder
from kctl.scan.source import local_file

TOPIC = "__cluster_metadata"
Watch = Callable[[ClusterImage, MetadataRecord], None] | None


def snapshots(folder: Path) -> list[tuple[int, Path]]:
    """End offset (exclusive) and path of each whole snapshot, oldest first."""
    return sorted(
        (one.named.base_offset, one.path) for one in read_folder(folder).kraft_snapshots if one.named
    )


def read_image(folder: Path, as_of: AsOf = NOW, watch: Watch = None) -> tuple[ClusterImage, list[Unreadable]]:
    """The cluster as of an offset or a time, and what could not be read of the log.

    `watch` is called after each record with the image as it is then. `KctlError` where nothing in the folder
    reaches back that far.
    """
    trouble: list[Unreadable] = []
    image = ClusterImage(watch=watch)
    start = 0
    for end, path in reversed(snapshots(folder)):
        # The header of a snapshot has the time of the last record in it; the offset is enough to go by.
        if as_of.offset is None or end <= as_of.offset:
            taken = _from_snapshot(path, end, as_of, trouble, watch)
            if taken is not None:
                image, start = taken, end
                break
    first = next(entries(folder, []), None)
    if start == 0 and first is not None and first.base_offset > 0:
        raise KctlError(
            f"{folder.name}: the log starts at {first.base_offset} and no snapshot reaches back that far"
        )
    image.apply(_records(entries(folder, trouble), folder, as_of, trouble, start))
    return image, trouble


def _from_snapshot(
    path: Path, end: int, as_of: AsOf, trouble: list[Unreadable], watch: Watch
) -> ClusterImage | None:
    """The image that a snapshot holds; None where it is from after the time asked for."""
    image = ClusterImage(watch=watch)
    with local_file(path) as data:
        sound = [item for item in walk(data) if isinstance(item, Entry) and item.crc_valid]
        newest = max(
            (one.batch.max_timestamp for one in sound if one.batch and not one.batch.is_control), default=-1
        )
        if as_of.timestamp is not None and newest > as_of.timestamp:
            return None
        image.apply((0, record) for _, record in _records(iter(sound), path, NOW, trouble, -1))
    image.end_offset = end
    return image


def _records(
    sound: Iterator[Entry], place: Path, as_of: AsOf, trouble: list[Unreadable], start: int
) -> Iterator[tuple[int, MetadataRecord]]:
    for entry in sound:
        batch = entry.batch
        if batch is None or batch.is_control or batch.last_offset < start:
            continue
        try:
            for record in iterate_records(entry, limit=LIMIT):
                if record.offset >= start and as_of.includes(record.offset, record.timestamp):
                    yield record.offset, read_metadata_record(record.value or b"")
        except FormatError as error:
            trouble.append(Unreadable(place, entry.position, str(error)))
