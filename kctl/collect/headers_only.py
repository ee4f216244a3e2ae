"""Files of a copy that others may have: records without their contents, indexes that fit, log lines without secrets.

A log is read whole before its first byte is written, into memory or a nameless file in the temporary folder. Its entries
may come to have other sizes, so that an index, which is read before its log, is held until the log is written.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from array import array
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from re import compile as pattern
from tempfile import SpooledTemporaryFile
from typing import Any

import numpy as np

from formats.binary.layout import dtype
from formats.log.hashed_contents import ContentHash, hashed_damage, hashed_entry
from formats.log.log_bytes import LogBytes
from formats.log.records import DEFAULT_LIMIT, Damage, DamageReason, walk
from formats.log_dir.file_names import (
    BOOTSTRAP_CHECKPOINT,
    META_PROPERTIES,
    OFFSET_CHECKPOINTS,
    REMOTE_LOG_SNAPSHOT,
    parse_partition_folder,
    parse_segment_file,
)
from formats.log_dir.index_files import OFFSET_ENTRY_SIZE, OffsetIndexEntry
from formats.messages.hashed_fields import METADATA, contents_of
from formats.secrets import redact, redact_text
from kctl.collect.transport import Content, ReadFailed
from kctl.collect.writing import Written, add_zeros
from kctl.evidence.names import LOG_DIR_FILES, PARTITION_FILES
from kctl.text_logs.opening import GZIP_MAGIC, XZ_MAGIC, ZSTD_MAGIC, chunks_of

AS = "headers"
"""What the manifest says of a file that was written without contents."""
IN_MEMORY = 16 << 20
LARGEST_INDEX = 64 << 20
LAST_POSITION = (1 << 31) - 1
LONGEST_LINE = 8 << 20
GZIP_TRAILER, XZ_FOOTER = 8, 12
WITHOUT_CONTENTS = frozenset(
    {*LOG_DIR_FILES, *PARTITION_FILES, *OFFSET_CHECKPOINTS, META_PROPERTIES, REMOTE_LOG_SNAPSHOT}
)
UNKNOWN = "what it holds is not known (--headers)"
NO_TEXT = (b"BZh", b"PK\3\4", b"7z\xbc\xaf", b"\x04\x22\x4d\x18", b"\x1f\x9d", b"\x1f\xa0")
"""How files begin that hold text in a form that is not unpacked here."""
CONTROLS = bytes({*range(32), 127} - {*b"\t\n\f\r\x1b"})
LEFT_BY_DISKS = pattern(rb"\0{16,}")
Took = Callable[[int], None]


class NotKnown(ReadFailed):
    """A file that is left out: what it holds is not known."""

    def __init__(self) -> None:
        super().__init__(UNKNOWN)


class Positions:
    """Where the entries of a log were, and where they are in what was written."""

    def __init__(self) -> None:
        self._before, self._after = array("q"), array("q")

    def add(self, before: int, after: int) -> None:
        """The next entry, or the end."""
        self._before.append(before)
        self._after.append(after)

    def mapped(self, data: bytes) -> bytes:
        """The bytes of an index with the new positions; what lies within an entry keeps its distance from it."""
        whole = len(data) // OFFSET_ENTRY_SIZE * OFFSET_ENTRY_SIZE
        entries = np.frombuffer(bytearray(data[:whole]), dtype(OffsetIndexEntry))
        before, after = np.array(self._before, np.int64), np.array(self._after, np.int64)
        if not len(before) or not whole:
            return data
        positions = entries["position"].astype(np.int64)
        at = np.maximum(np.searchsorted(before, positions, side="right") - 1, 0)
        moved = positions - before[at] + after[at]
        entries["position"] = np.where((positions < 0) | (moved > LAST_POSITION), positions, moved)
        return entries.tobytes() + data[whole:]


class Kept:
    """The bytes of a file that was read before it can be written."""

    def __init__(self, content: Content, data: bytes) -> None:
        self.entry, self.data = content.entry, data
        self.note = content.what_happened()
        self.source: Written | None = None

    def fit(self, positions: Positions) -> None:
        """Have the positions of an index fit what was written of its log."""
        source = Written(len(self.data), hashlib.sha256(self.data).hexdigest())
        self.data, self.source = positions.mapped(self.data), source

    def pieces(self) -> Iterator[memoryview | int]:
        """The bytes; the zeros that fill an index stay a hole."""
        used = len(self.data.rstrip(b"\0"))
        yield memoryview(self.data)[:used]
        if used < len(self.data):
            yield len(self.data) - used

    def what_happened(self) -> str | None:
        """What changed while it was read."""
        return self.note


class Rewritten:
    """A file that is read whole, then written in another form; `took` is told what is read of the source."""

    largest: int | None = None
    """Bytes that such a file can have at most."""

    def __init__(self, content: Content, took: Took) -> None:
        self.entry = content.entry
        self.source: Written | None = None
        self._content, self._took = content, took

    def pieces(self) -> Iterator[memoryview | int]:
        """The bytes in the new form. Raises ReadFailed."""
        with SpooledTemporaryFile(max_size=IN_MEMORY) as file:  # type: SpooledTemporaryFile[bytes]
            self.source = self._spool(file)
            self.entry = self._content.entry
            yield from self._written(file, self.source.size)

    def _spool(self, file: Any) -> Written:
        digest, size = hashlib.sha256(), 0
        try:
            for piece in self._content.pieces():
                size += piece if isinstance(piece, int) else len(piece)
                if self.largest is not None and size > self.largest:
                    raise ReadFailed("it is longer than a segment can be (--headers)")
                if isinstance(piece, int):  # so many zeros
                    add_zeros(digest.update, piece)
                    if size > IN_MEMORY:
                        file.rollover()
                    file.seek(size)
                    file.truncate(size)
                    continue
                digest.update(piece)
                file.write(piece)
                self._took(len(piece))
        except OSError as error:
            raise ReadFailed(f"the temporary folder does not take it: {error.strerror}") from error
        file.seek(0)
        return Written(size, digest.hexdigest())

    def _written(self, file: Any, size: int) -> Iterator[memoryview | int]:
        raise NotImplementedError

    def what_happened(self) -> str | None:
        """What changed while it was read."""
        return self._content.what_happened()


class HashedLog(Rewritten):
    """A segment, or a snapshot of metadata, with hashes in the place of contents."""

    largest = LAST_POSITION

    def __init__(self, content: Content, took: Took, topic: str | None, content_hash: ContentHash) -> None:
        super().__init__(content, took)
        self.positions = Positions()
        self._contents = contents_of(topic, content_hash)

    def _written(self, file: Any, size: int) -> Iterator[memoryview | int]:
        log = LogBytes(_Spooled(file, size))
        position, last_offset = 0, -1
        for item in walk(log):
            self.positions.add(item.position, position)
            if isinstance(item, Damage):
                if item.reason is DamageReason.ZEROS:
                    yield item.size_in_bytes
                else:
                    for piece in hashed_damage(item, log, last_offset, self._contents):
                        yield memoryview(piece)
                position += item.size_in_bytes
                continue
            if item.size_in_bytes > DEFAULT_LIMIT:
                raise ReadFailed(f"the batch at {item.position} has {item.size_in_bytes} bytes (--headers)")
            data = hashed_entry(item, self._contents)
            last_offset = item.last_offset if item.crc_valid else last_offset
            yield memoryview(data)
            position += len(data)
            if position > LAST_POSITION:
                raise ReadFailed("without contents it is longer than a segment can be (--headers)")
        self.positions.add(log.end, position)


class _Spooled:
    """A file that was spooled, to be read at positions."""

    def __init__(self, file: Any, size: int) -> None:
        self._file, self.size = file, size

    def read_at(self, position: int, size: int) -> bytes:
        """Bytes from a position on."""
        self._file.seek(position)
        data: bytes = self._file.read(size)
        return data


class RedactedLog(Rewritten):
    """A broker log with `(redacted)` in the place of secrets, packed as it was; UTF-16 becomes UTF-8.

    What was packed and breaks off does so in the copy too.
    """

    _is_redacted = False
    _broken: str | None = None

    def _written(self, file: Any, size: int) -> Iterator[memoryview | int]:
        magic = file.read(6)
        file.rollover()
        pack = _packer(magic)
        rest = b""
        broken: list[str] = []
        is_first = True
        for chunk in chunks_of(f"/proc/self/fd/{file.fileno()}", broken.append, is_as_written=True):
            if not _is_text(chunk, is_first=is_first):
                raise NotKnown
            is_first = False
            *lines, rest = (rest + chunk).split(b"\n")
            text = b"".join(self._redacted(line) + b"\n" for line in lines)
            if len(rest) > LONGEST_LINE:
                text, rest = text + self._redacted(rest), b""
            if redacted := pack.compress(text):
                yield memoryview(redacted)
        self._broken = broken[0] if broken else None
        ending = pack.compress(self._redacted(rest)) + _ending(pack, magic, is_broken=bool(broken))
        if ending:
            yield memoryview(ending)

    def what_happened(self) -> str | None:
        """What changed while it was read, and whether a secret was replaced."""
        notes = [super().what_happened(), self._broken, "secrets redacted" if self._is_redacted else None]
        return "; ".join(filter(None, notes)) or None

    def _redacted(self, line: bytes) -> bytes:
        redacted = self._without_secrets(line)
        self._is_redacted |= redacted != line
        return redacted

    def _without_secrets(self, line: bytes) -> bytes:
        return redact_text(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


class RedactedExport(RedactedLog):
    """An export of znodes with `(redacted)` in the place of secrets, also of one that was made with them."""

    def _without_secrets(self, line: bytes) -> bytes:
        try:
            znode = json.loads(line)
            data = b64decode(znode["data"], validate=True) if znode["data"] else b""
            redacted = redact(znode["path"], data)
        except (ValueError, KeyError, TypeError, RecursionError):
            return super()._without_secrets(line)
        if redacted == data:
            return line
        text = {"data_text": redacted.decode("utf-8", "replace")} if "data_text" in znode else {}
        return json.dumps({**znode, "data": b64encode(redacted).decode(), **text}).encode()


class _Plain:
    def compress(self, data: bytes) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


def _is_text(chunk: bytes, *, is_first: bool) -> bool:
    """Whether bytes are text in which secrets can be found; zeros that a disk left in it are no reason against it."""
    if is_first and chunk.startswith(NO_TEXT):
        return False
    shown = LEFT_BY_DISKS.sub(b"", chunk)
    return len(shown) - len(shown.translate(None, CONTROLS)) <= 1 + len(shown) // 100


def _ending(pack: Any, magic: bytes, *, is_broken: bool) -> bytes:
    """The end of what was packed; without its trailer where that of the source was not reached."""
    if is_broken and magic.startswith(ZSTD_MAGIC):
        import zstandard

        ended: bytes = pack.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        return ended
    ended = pack.flush()
    return ended[: -GZIP_TRAILER if magic.startswith(GZIP_MAGIC) else -XZ_FOOTER] if is_broken else ended


def _packer(magic: bytes) -> Any:
    """What packs bytes as those were that begin so."""
    if magic.startswith(GZIP_MAGIC):
        return zlib.compressobj(6, zlib.DEFLATED, 31)
    if magic.startswith(XZ_MAGIC):
        import lzma

        return lzma.LZMACompressor()
    if magic.startswith(ZSTD_MAGIC):
        import zstandard

        return zstandard.ZstdCompressor().compressobj()
    return _Plain()


def without_contents(place: str, content: Content, took: Took, content_hash: ContentHash) -> Content | str:
    """A file of a log directory in the form that others may have; words where it is left out. Raises ReadFailed.

    `Kept` is an index, to be written behind its log.
    """
    above, _, name = place.rpartition("/")
    named = parse_segment_file(name)
    folder = parse_partition_folder(above.rpartition("/")[2])
    if named is not None and named.suffix == ".log":
        return HashedLog(content, took, folder.topic if folder else None, content_hash)
    if name == BOOTSTRAP_CHECKPOINT or (named is not None and named.suffix == ".checkpoint"):
        return HashedLog(content, took, METADATA, content_hash)
    if named is not None and named.suffix == ".index":
        return Kept(content, _whole(content, took))
    return content if named is not None or name in WITHOUT_CONTENTS else UNKNOWN


def _whole(content: Content, took: Took) -> bytes:
    data = bytearray()
    for piece in content.pieces():
        size = piece if isinstance(piece, int) else len(piece)
        if len(data) + size > LARGEST_INDEX:
            raise ReadFailed(f"no index has more than {LARGEST_INDEX >> 20} MiB")
        data += bytes(piece)
        if not isinstance(piece, int):
            took(size)
    return bytes(data)


def log_of_index(name: str) -> str:
    """The name of the log that an index is of."""
    base, _, state = name.partition(".index")
    return f"{base}.log{state}"


def source_of(content: Content) -> Written | None:
    """The size and the digest of what was read, of a file that was written in another form."""
    return content.source if isinstance(content, (Rewritten, Kept)) else None


def digests_of(source: Written | None, content_hash: ContentHash | None) -> tuple[str | None, str | None]:
    """The digest of a source that was written in another form: plain, or keyed where there is a key."""
    if source is None or not source.sha256:
        return None, None
    return (source.sha256, None) if content_hash is None else (None, content_hash.of_digest(source.sha256))


def is_hashed(content: Content) -> bool:
    """Whether contents of records were replaced, or positions of an index for that reason."""
    return isinstance(content, (HashedLog, Kept))


def nothing(count: int) -> None:
    """What is told of bytes that were counted as they were read."""
