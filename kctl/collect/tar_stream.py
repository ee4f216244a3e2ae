"""A tar as it comes from a machine that nobody trusts: its members one by one, each held against what was asked for.

Only what `tar -c` writes for regular files is understood: ustar headers, GNU's long names and sparse files, pax headers
with a path or a size. Lengths are bounded before anything of that length is read.

Source: POSIX.1-2017 pax, "ustar Interchange Format"; GNU tar manual, "Basic Tar Format" and "Storing Sparse Files"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kctl.collect.transport import SourceLost

BLOCK = 512
LONGEST_PATH = 4096
LONGEST_PAX = 1 << 16
MOST_RUNS = 1 << 20
"""Runs of data of one sparse file."""
PIECE = 1 << 20
REGULAR = (b"0", b"\0", b"7")
LONG_NAME, LONG_LINK, PAX, PAX_OF_ALL, SPARSE = b"L", b"K", b"x", b"g", b"S"


class BadTar(SourceLost):
    """The tar is cut off, or not what `tar -c` writes."""


class Member(NamedTuple):
    """A member: `size` is the file's, `runs` the parts of it that are in the tar, as (offset, length)."""

    name: str
    size: int
    is_regular: bool
    runs: tuple[tuple[int, int], ...]

    @property
    def stored(self) -> int:
        """The bytes of it in the tar."""
        return sum(length for _, length in self.runs)


class TarStream:
    """The members of a tar; the bytes of each are taken by `data`, or passed over as the next is asked for."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        """`read` gives at most so many bytes, none at the end."""
        self._read_some = read
        self._left = 0  # bytes of the member, with what fills its last block
        self._stored = 0

    def members(self) -> Iterator[Member]:
        """Each member. Raises BadTar."""
        long_name: str | None = None
        pax_size: int | None = None
        while True:
            self._pass(self._left)
            header = self._exactly(BLOCK)
            if not header.strip(b"\0"):
                self._drain()
                return
            if not _has_its_checksum(header):
                raise BadTar("the tar has a header with a wrong checksum")
            kind, size = header[156:157], _number(header[124:136])
            if kind in (LONG_NAME, LONG_LINK, PAX, PAX_OF_ALL):
                if size > (LONGEST_PATH if kind in (LONG_NAME, LONG_LINK) else LONGEST_PAX):
                    raise BadTar(f"the tar has a header of {size:,} bytes")
                data = self._exactly(_padded(size))[:size]
                if kind == LONG_NAME:
                    long_name = _text(data)
                elif kind == PAX:
                    path, pax_size = _pax(data)
                    long_name = path or long_name
                continue
            name = long_name or _name(header)
            if kind == SPARSE:
                member = self._sparse(header, name, size)
            else:
                size = size if pax_size is None else pax_size
                member = Member(name, size, kind in REGULAR, ((0, size),) if size else ())
            long_name = pax_size = None
            self._stored = member.stored
            self._left = _padded(self._stored)
            yield member

    def data(self) -> Iterator[bytes]:
        """The stored bytes of the member that came last."""
        while self._stored:
            piece = self._read_some(min(PIECE, self._stored))
            if not piece:
                raise BadTar("the tar ends in the midst of a file")
            self._stored -= len(piece)
            self._left -= len(piece)
            yield piece

    def _sparse(self, header: bytes, name: str, stored: int) -> Member:
        """A sparse file of GNU's old format: up to 4 runs in the header, 21 in each block behind it."""
        size = _number(header[483:495])
        runs = [*_runs(header[386:482])]
        is_extended = header[482]
        while is_extended:
            block = self._exactly(BLOCK)
            runs += _runs(block[:504])
            is_extended = block[504]
            if len(runs) > MOST_RUNS:
                raise BadTar("the tar has a sparse file of too many runs")
        end = 0
        for offset, length in runs:
            if offset < end or offset + length > size:
                raise BadTar("the tar has a sparse file whose runs are not in order")
            end = offset + length
        if sum(length for _, length in runs) != stored:
            raise BadTar("the tar has a sparse file whose runs are not its size")
        return Member(name, size, True, tuple(run for run in runs if run[1]))

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            piece = self._read_some(count - len(data))
            if not piece:
                raise BadTar("the tar is cut off")
            data += piece
        return bytes(data)

    def _pass(self, count: int) -> None:
        while count:
            piece = self._read_some(min(PIECE, count))
            if not piece:
                raise BadTar("the tar is cut off")
            count -= len(piece)
        self._left = 0

    def _drain(self) -> None:
        """Read what fills the last record, so that the writer can end."""
        for _ in range(64):
            if not self._read_some(PIECE):
                return


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def _has_its_checksum(header: bytes) -> bool:
    try:
        stored = _number(header[148:156])
    except BadTar:
        return False
    return stored == sum(header[:148]) + 8 * 32 + sum(header[156:])


def _number(field: bytes) -> int:
    """A number in octal, or in GNU's base 256."""
    if field[:1] == b"\x80":
        value = int.from_bytes(field[1:], "big")
    else:
        digits = field.strip(b"\0 ")
        if digits.strip(b"01234567"):
            raise BadTar("the tar has a header with a number that is none")
        value = int(digits or b"0", 8)
    if value >> 62:
        raise BadTar("the tar has a header with a number beyond all bounds")
    return value


def _runs(fields: bytes) -> Iterator[tuple[int, int]]:
    for at in range(0, len(fields), 24):
        if not fields[at : at + 24].strip(b"\0"):
            return
        yield _number(fields[at : at + 12]), _number(fields[at + 12 : at + 24])


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def _name(header: bytes) -> str:
    name = _text(header[:100])
    prefix = _text(header[345:500]) if header[257:263] == b"ustar\0" else ""
    return f"{prefix}/{name}" if prefix else name


def _pax(data: bytes) -> tuple[str | None, int | None]:
    """The path and the size in a pax header."""
    path, size = None, None
    while data:
        length, space, _ = data.partition(b" ")
        if not space or not length.isdigit() or not len(length) < int(length) <= len(data):
            raise BadTar("the tar has a pax header that is none")
        key, _, value = data[len(length) + 1 : int(length) - 1].partition(b"=")
        if key == b"path":
            path = value.decode("utf-8", "surrogateescape")
        elif key == b"size":
            if not value.isdigit() or int(value) >> 62:
                raise BadTar("the tar has a pax header with a size that is none")
            size = int(value)
        elif key.startswith(b"GNU.sparse"):
            raise BadTar("the tar has a sparse file in a form that was not asked for")
        data = data[int(length) :]
    return path, size
