"""What the manifests of copies say about the evidence: which partitions were cut off, what was left out, whose clock is off.

A manifest comes with the evidence, and is trusted no more than that: it only takes away from what counts as examined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

from formats.values import Struct, field
from kctl.errors import UnreadableFile
from kctl.evidence.manifest import (
    FILE_BEGINNING,
    CollectionLine,
    LeftOutLine,
    PlannedLine,
    SourceLine,
    WholeLine,
    is_inside,
    lines_of,
)

MOST_PLANNED = 2_000_000
MOST_UNREAD = 10_000
CUT_OFF = "the copy was cut off"


class CopyNotes(Struct):
    """The notes of all manifests below the evidence."""

    cut_off: dict[Path, str] = field(default_factory=dict)
    """Partition folders of which not all was copied, and why."""
    fetched: set[Path] = field(default_factory=set)
    """Log directories of which a broker gave batches alone."""
    unread: dict[Path, str] = field(default_factory=dict)
    """Files and folders that might not be read as the copy was made, and why; those that a later run copied are none."""
    unreached: dict[str, str] = field(default_factory=dict)
    """Sources of which nothing at all was copied, and why."""
    left_out: dict[Path, list[LeftOutLine]] = field(default_factory=dict)
    """By manifest the first names that were not copied, and how many follow."""
    counts: dict[Path, int] = field(default_factory=dict)
    clock_offsets: dict[int, int] = field(default_factory=dict)
    """How far the clock of a broker was ahead of that of the copying machine, in milliseconds."""
    begun_later: dict[Path, int] = field(default_factory=dict)
    """Partition folders of which records before an offset were not asked for."""
    hashed: list[Path] = field(default_factory=list)
    """Manifests of copies with hashes in the place of contents of records."""
    troubles: dict[Path, str] = field(default_factory=dict)


def notes_of(manifests: Mapping[Path, Collection[Path]]) -> CopyNotes:
    """The notes of manifests, each with the folders that are asked for; of a manifest that cannot be read why."""
    notes = CopyNotes()
    for manifest, below in manifests.items():
        try:
            _read(manifest, below, notes)
        except UnreadableFile as error:
            notes.troubles[manifest] = error.message.removeprefix(f"{manifest}: ")
    notes.unread = {path: why for path, why in notes.unread.items() if not path.exists()}
    return notes


def _read(manifest: Path, below: Collection[Path], notes: CopyNotes) -> None:
    folder = manifest.parent
    is_part = not _is_asked(folder, below)
    open_: set[str] = set()
    whole: set[str] = set()
    reasons: list[str] = []
    files: Counter[str] = Counter()
    ended: dict[str, SourceLine] = {}
    for line, _ in lines_of(manifest, may_be_torn=True, passing=FILE_BEGINNING):
        if isinstance(line, CollectionLine) and line.hash_key_id is not None:
            notes.hashed.append(manifest)
        elif isinstance(line, PlannedLine) and len(open_) + len(whole) < MOST_PLANNED:
            if line.fetched:
                notes.fetched.add((folder / line.path).parent)
            if line.path not in whole:  # a run that goes on plans all once more
                open_.add(line.path)
        elif isinstance(line, WholeLine):
            open_.discard(line.path)
            whole.add(line.path)
            if line.from_offset is not None and _is_asked(folder / line.path, below):
                notes.begun_later[folder / line.path] = line.from_offset
        elif isinstance(line, LeftOutLine):
            if not _is_asked(folder / line.path, below):
                continue
            notes.counts[manifest] = notes.counts.get(manifest, 0) + 1
            if notes.counts[manifest] == 1:
                notes.left_out[manifest] = [line]
            if line.unread and line.path and is_inside(line.path) and len(notes.unread) < MOST_UNREAD:
                notes.unread[folder / line.path] = line.why
        elif isinstance(line, SourceLine):
            ended[line.source] = line  # a run that went on says it anew
            files[line.source] += line.files
    for source, line in ended.items():
        if line.incomplete:
            reasons.append(f"{source}: {line.incomplete}")
            if not files[source] and not is_part:
                notes.unreached[source] = line.incomplete
        if line.clock_offset_ms is not None and len(line.broker_ids) == 1:
            notes.clock_offsets[line.broker_ids[0]] = line.clock_offset_ms
    why = "; ".join(reasons[:2]) or "it was interrupted"
    notes.cut_off.update({folder / path: why for path in open_ if _is_asked(folder / path, below)})


def _is_asked(place: Path, folders: Collection[Path]) -> bool:
    return any(place.is_relative_to(folder) for folder in folders)
