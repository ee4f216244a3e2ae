"""Pieces on their way from one process to another: a column of one value is sent as that value, others narrow."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from formats.log.columns.headers import NAMES, Headers
from formats.log.records import Damage
from kctl.scan.checks.check import RowFinding
from kctl.scan.pieces import ScannedPiece

Column: TypeAlias = tuple[str, int, str, bytes]
"""Its type, its least value, and what to add to that in each row, of which type (none: nothing in any)."""


class PackedHeaders(NamedTuple):
    """Headers as columns of few bytes."""

    rows: int
    columns: tuple[Column, ...]


class PackedPiece(NamedTuple):
    """A piece without its records."""

    position: int
    end: int
    headers: PackedHeaders
    damage: Damage | None
    computed: dict[int, int]
    findings: list[RowFinding]
    stored: PackedHeaders | None


def packed(piece: ScannedPiece) -> PackedPiece:
    """The piece, to be sent; its records stay behind."""
    stored = None if piece.stored is None else _packed(piece.stored)
    headers = _packed(piece.headers)
    return PackedPiece(
        piece.position, piece.end, headers, piece.damage, piece.computed, piece.findings, stored
    )


def unpacked(sent: PackedPiece) -> ScannedPiece:
    """The piece that was sent."""
    stored = None if sent.stored is None else _unpacked(sent.stored)
    headers = _unpacked(sent.headers)
    return ScannedPiece(
        sent.position, sent.end, headers, sent.damage, sent.computed, sent.findings, stored=stored
    )


def _packed(headers: Headers) -> PackedHeaders:
    return PackedHeaders(len(headers), tuple(narrowed(getattr(headers, name)) for name in NAMES))


def _unpacked(sent: PackedHeaders) -> Headers:
    return Headers(*(widened(column, sent.rows) for column in sent.columns))


def narrowed(column: NDArray[Any]) -> Column:
    """A column as its least value and what to add in each row, in as few bytes as possible."""
    kind = column.dtype.str
    if not len(column):
        return kind, 0, "", b""
    least = int(column.min())
    span = int(column.max()) - least
    if span == 0:
        return kind, least, "", b""
    if column.dtype != np.bool_:
        for narrow in (np.uint8, np.uint16, np.uint32):
            if span <= np.iinfo(narrow).max and np.dtype(narrow).itemsize < column.dtype.itemsize:
                above = (column - column.dtype.type(least)).astype(narrow)
                return kind, least, above.dtype.str, above.tobytes()
    return kind, 0, kind, column.tobytes()


def widened(column: Column, rows: int) -> NDArray[Any]:
    """The column that was narrowed."""
    kind, least, narrow, above = column
    if not narrow:
        return np.full(rows, least, kind)
    wide = np.frombuffer(above, narrow, rows).astype(kind)
    if least:
        wide += wide.dtype.type(least)
    return wide
