"""The broker of a log directory: by `meta.properties`, else by the names of folders, the only source for 0.8.

`meta.properties` came with 0.9 (`K:server/BrokerMetadataCheckpoint.scala @ 0.9.0.1`); `broker.id` became
`node.id` with KRaft (`metadata/.../properties/MetaProperties.java @ 3.9.0`).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from formats.errors import FormatError
from formats.log_dir.file_names import META_PROPERTIES
from formats.log_dir.meta_properties import parse_meta_properties, unwritten_line
from kctl.errors import reason_of
from kctl.evidence.names import broker_id_of
from kctl.files import read_whole

LARGEST = 1 << 20


class Identity(NamedTuple):
    """The contents of `meta.properties`; `trouble` says why it cannot be read or used."""

    broker_id: int | None = None
    cluster_id: str | None = None
    directory_id: str | None = None
    is_kraft: bool = False
    trouble: str | None = None
    unwritten_line: int | None = None  # with characters that no broker writes


def read_identity(folder: Path) -> Identity:
    """The identity stored in a log directory; an empty one where it has none."""
    path = folder / META_PROPERTIES
    try:
        text = read_whole(path, LARGEST).decode("latin-1")
        properties = parse_meta_properties(text)
    except FileNotFoundError:
        return Identity()
    except (OSError, FormatError) as error:
        return Identity(trouble=reason_of(error))
    if properties.broker_id is None:
        return Identity(None, properties.cluster_id, properties.directory_id, trouble="it names no broker id")
    is_kraft, unwritten = properties.version == 1, unwritten_line(text)
    return Identity(
        properties.broker_id,
        properties.cluster_id,
        properties.directory_id,
        is_kraft,
        unwritten_line=unwritten,
    )


def named_broker_id(folder: Path, root: Path) -> int | None:
    """The broker id in the nearest folder name from `folder` up to two levels above the folder given."""
    highest = root.parent.parent
    for above in (folder, *folder.parents):
        broker_id = broker_id_of(above.name, above.parent.name)
        if broker_id is not None:
            return broker_id
        if above == highest:
            break
    return None
