"""Bytes of a log whatever it is packed in: plain, gzip, Zstandard, xz, or standard input; UTF-16 becomes UTF-8.

A compressed part is unpacked in a thread of its own, a few chunks ahead of its reader.
"""

from __future__ import annotations

import codecs
import errno
import itertools
import os
import queue
import re
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from formats.broker_logs.exports.documents import written
from formats.broker_logs.layouts import PART_OF_LINE, export_of
from kctl.errors import KctlError, reason_of
from kctl.files import open_file

STDIN = "-"
CHUNK = 1 << 20
PEEKED = 1 << 18
# Bytes that standard input leaves free where it is kept, or a tenth of a small place.
ROOM = 1 << 30
# Bytes of it that are kept on a full disk too: a full disk is a reason to look at logs.
SMALL = 16 << 20
AHEAD = 3
# Of a stream of xz: `xz -9` makes those that ask for 65 MiB.
XZ_MEMORY = 96 << 20
GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
XZ_MAGIC = b"\xfd7zXZ\0"
NODE_LINE = re.compile(rb"[\dT:.+Z-]{20,40} std(?:out|err) [FP] ")
Damaged = Callable[[str], None]
_stdin_head: list[bytes] = []


def chunks_of(
    path: str,
    damaged: Damaged,
    *,
    size: int = CHUNK,
    ahead: bool = False,
    skip: int = 0,
    follow: bool = True,
    is_as_written: bool = False,
) -> Iterator[bytes]:
    """The unpacked bytes in chunks of at most about `size`; OSError where the file cannot be read.

    Of an export, the lines that a logger wrote, behind marks (`formats.broker_logs.exports.documents`), unless `is_as_written`.

    Where a compressed file breaks off, `damaged` is told why and what came before it has been given. The first
    `skip` bytes of a file that is not compressed are left out. A byte order mark is left out, UTF-16 is given as UTF-8.
    """
    chunks = _unpacked(path, damaged, size, ahead, skip, follow)
    if skip:
        yield from chunks
        return
    chunks = _as_utf8(chunks)
    if is_as_written:
        yield from chunks
        return
    first = next(chunks, b"")
    # All of the file is looked through, which is quick: one long line may be anywhere.
    whole = (
        _unpacked(path, lambda reason: None, CHUNK, False, 0, follow)
        if NODE_LINE.match(first) and path != STDIN
        else ()
    )
    export = export_of(first, has_parts=any(map(PART_OF_LINE.search, itertools.chain((first,), whole))))
    if export is not None:
        yield from written(export, itertools.chain((first,), chunks), size)
        return
    head = [first] if first else []
    del first  # not to be held while the rest is read
    while head:
        yield head.pop()
    yield from chunks


def tail_of(path: str, size: int) -> bytes:
    """The last bytes of a file that is not compressed, as they are; none of standard input."""
    if path == STDIN:
        return b""
    with open_file(path, follow=True) as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(file.tell() - size, 0))
        return file.read(size)


def _as_utf8(chunks: Iterator[bytes]) -> Iterator[bytes]:
    first = next(chunks, b"")
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        decoder = codecs.getincrementaldecoder("utf-16")("replace")
        for chunk in itertools.chain((first,), chunks):
            yield decoder.decode(chunk).encode()
        yield decoder.decode(b"", final=True).encode()
        return
    head = [first.removeprefix(codecs.BOM_UTF8)] if first else []
    del first  # not to be held while the rest is read
    while head:
        yield head.pop()
    yield from chunks


def _unpacked(
    path: str, damaged: Damaged, size: int, ahead: bool, skip: int, follow: bool
) -> Iterator[bytes]:
    if path == STDIN:
        yield from _stdin(size)
        return
    with open_file(path, follow=follow) as file:
        magic = file.read(6)
        file.seek(0)
        if magic.startswith(GZIP_MAGIC):
            chunks = _gunzipped(file, size, damaged)
        elif magic.startswith(ZSTD_MAGIC):
            chunks = _unzstandarded(file, size, damaged)
        elif magic == XZ_MAGIC:
            chunks = _unxzed(file, size, damaged)
        else:
            file.seek(skip)
            while chunk := file.read(size):
                yield chunk
            return
        yield from _prefetched(chunks) if ahead else chunks


def _stdin(size: int) -> Iterator[bytes]:
    """Standard input; what was peeked at before comes first."""
    stream = sys.stdin.buffer
    if size == PEEKED:
        head = stream.read(size)
        _stdin_head[:] = [head]
        if head:
            yield head
        return
    if _stdin_head and _stdin_head[0]:
        yield _stdin_head.pop()
    read = getattr(stream, "read1", stream.read)
    while chunk := read(size):
        yield chunk


def lack_of_room(folder: str | Path) -> OSError | None:
    """Why the disk of a folder may take no more of what is kept while a command runs; None where it may."""
    import shutil

    usage = shutil.disk_usage(folder)
    if usage.free >= min(ROOM, usage.total // 10):
        return None
    return OSError(errno.ENOSPC, f"{usage.free:,} bytes are left there")


def spooled_stdin() -> str:
    """A file with all of standard input, for what has to be read more than once; it goes when the process ends."""
    import atexit
    import shutil

    from kctl.temporary_folder import new_folder

    spool = new_folder("stdin")
    folder = str(spool.path)
    atexit.register(spool.remove)
    path = os.path.join(folder, "stdin")
    bytes_kept = 0
    try:
        with Path(path).open("wb") as file:
            for chunk in _stdin(CHUNK):
                if bytes_kept >= SMALL and (lack := lack_of_room(folder)):
                    raise lack
                file.write(chunk)
                bytes_kept += len(chunk)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise KctlError(
            f"standard input is kept in {folder} to be read more than once, and does not fit after {bytes_kept:,} bytes: "
            f"{reason_of(error)}",
            "save it to a file and name that, or set TMPDIR to a folder with more space",
        ) from error
    return path


def _gunzipped(file: BinaryIO, size: int, damaged: Damaged) -> Iterator[bytes]:
    """Members of a gzip file one after the other, with what a torn one still gives."""
    unpack = before = zlib.decompressobj(31)
    data = pending = b""
    try:
        while True:
            data = pending or file.read(size // 4)
            if not data:
                if not unpack.eof:
                    damaged("it ends before its gzip stream does")
                return
            if unpack.eof:
                if not data.strip(b"\0"):
                    pending = b""
                    continue
                unpack = zlib.decompressobj(31)
            before = unpack.copy()
            out = unpack.decompress(data, size)
            pending = unpack.unconsumed_tail or unpack.unused_data
            if out:
                yield out
    except zlib.error as error:
        if rest := b"".join(_up_to_the_break(before, data)):
            yield rest
        damaged(str(error).lower())


def _up_to_the_break(unpack: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """What bytes that hold an error give before it: a call that fails gives nothing of what it had."""
    for start in range(0, len(data), 64):
        try:
            yield unpack.decompress(data[start : start + 64])
        except zlib.error:
            return


def _unzstandarded(file: BinaryIO, size: int, damaged: Damaged) -> Iterator[bytes]:
    import zstandard

    unpack = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    reader = unpack.stream_reader(file, read_across_frames=True)
    try:
        while out := reader.read(size):
            yield out
    except zstandard.ZstdError as error:
        damaged(str(error).lower())


def _unxzed(file: BinaryIO, size: int, damaged: Damaged) -> Iterator[bytes]:
    """Streams of an xz file one after the other; the dictionary that one asks for is made only up to a limit."""
    import lzma

    unpack = lzma.LZMADecompressor(memlimit=XZ_MEMORY)
    data = b""
    try:
        while True:
            if unpack.eof:
                data = unpack.unused_data.lstrip(b"\0")
                while not data and (read := file.read(size // 4)):
                    data = read.lstrip(b"\0")
                if not data:
                    return
                unpack = lzma.LZMADecompressor(memlimit=XZ_MEMORY)
            elif unpack.needs_input and not (data := file.read(size // 4)):
                damaged("it ends before its xz stream does")
                return
            if out := unpack.decompress(data, size):
                yield out
            data = b""
    except lzma.LZMAError as error:
        damaged(str(error).lower())


def _prefetched(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The same chunks, made in a thread that runs ahead of the reader."""
    ready: queue.Queue[bytes | BaseException | None] = queue.Queue(AHEAD)
    stop = threading.Event()

    def work() -> None:
        last: BaseException | None = None
        try:
            for chunk in chunks:
                if not _put(ready, chunk, stop):
                    return
        except BaseException as error:  # carried to the reader, who raises it
            last = error
        _put(ready, last, stop)

    threading.Thread(target=work, daemon=True, name="unpack").start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()


def _put(
    ready: queue.Queue[bytes | BaseException | None],
    item: bytes | BaseException | None,
    stop: threading.Event,
) -> bool:
    """Hand an item over; False when the reader has gone."""
    while not stop.is_set():
        try:
            ready.put(item, timeout=0.2)
        except queue.Full:
            continue
        return True
    return False
