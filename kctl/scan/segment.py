"""`scan_segment`: a segment as chunks of columns, with damage and findings, in bounded memory.

Give the scan of each segment of a log the same `LogChecks`, in the order of their offsets; `LogChecks.finish` then says
what only the log as a whole shows.

Every byte between `start` and `end` is in exactly one batch or one damage. Nothing raises for what the bytes are; a
source that cannot be read or changes meanwhile is a finding in the last chunk. Columns may be kept; what
`chunk.records` holds is valid until the next chunk only.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from formats.arrays import Ints
from formats.log.columns.headers import Headers
from formats.log.records import Damage, DamageReason
from formats.values import replace
from kctl.errors import reason_of
from kctl.findings import Finding, segments
from kctl.findings import evidence as evidence_findings
from kctl.scan.checks.batches import crc_mismatches
from kctl.scan.checks.check import RowFinding, Suspects
from kctl.scan.checks.table import LogChecks
from kctl.scan.options import Chunk, ScanOptions, ScanTotals
from kctl.scan.pieces import PieceScan, ScannedPiece
from kctl.scan.runs import NO_HEADERS
from kctl.scan.source import Source

HARMLESS = (DamageReason.TORN_TAIL, DamageReason.ZEROS)


class SegmentScan:
    """One pass over a segment; iterate it once, then look at `totals`.

    `pieces` are those of the source in order, whoever read them; `checks` those of the log that it belongs to.
    """

    def __init__(
        self,
        source: Source,
        options: ScanOptions,
        pieces: Iterable[ScannedPiece],
        checks: LogChecks | None = None,
    ) -> None:
        self.source = source
        self.options = options
        self.totals = ScanTotals()
        self.checks = checks or LogChecks()
        self.left_out: Counter[str] = Counter()
        self._pieces = pieces
        self._room = options.max_findings  # for findings about headers

    def __iter__(self) -> Iterator[Chunk]:
        position = self.options.start
        try:
            for piece in self._pieces:
                yield self._chunk(piece)
                position = piece.end
        except OSError as error:
            where = replace(self.options.place, position=position)
            finding = evidence_findings.UNREADABLE.at(where, reason=reason_of(error))
            yield Chunk(position, position, NO_HEADERS, (), self._limited([finding]))
        last = self._limited(self._changes())
        if last or self.left_out:
            yield Chunk(position, position, NO_HEADERS, (), (*last, *self._rest()))

    def _chunk(self, piece: ScannedPiece) -> Chunk:
        """A piece with the findings about its headers."""
        headers = piece.headers
        stored = headers if piece.stored is None else piece.stored
        of_headers = self._of_headers(stored, piece) if len(headers) else []
        findings = [
            finding for _, finding in sorted([*of_headers, *piece.findings], key=lambda pair: pair[0])
        ]
        self._count(headers, piece.damage)
        damage = () if piece.damage is None else (piece.damage,)
        return Chunk(piece.position, piece.end, headers, damage, self._limited(findings), piece.records)

    def _of_headers(self, headers: Headers, piece: ScannedPiece) -> list[RowFinding]:
        """What is wrong with the batches of a piece, as they are stored."""
        if piece.is_examined or headers.crc_valid.all():
            suspects = self.checks.suspects(headers, self.options, is_examined=piece.is_examined)
            return self._listed(suspects, headers)
        findings = self._listed([crc_mismatches(headers, piece.computed)], headers)
        # What an unsound header says is not examined, nor compared with others.
        rows = np.flatnonzero(headers.crc_valid)
        if len(rows):
            sound = headers[rows]
            listed = self._listed(self.checks.suspects(sound, self.options), sound)
            findings += [(int(rows[row]), finding) for row, finding in listed]
        return findings

    def _listed(self, suspects: Iterable[Suspects], headers: Headers) -> list[RowFinding]:
        """The findings that may still be listed; a wrecked file does not get one for each batch."""
        listed: list[RowFinding] = []
        for suspect in suspects:
            findings = [*suspect.findings(headers, self.options.place, self._room)]
            self._room -= len(findings)
            if len(findings) < len(suspect.rows):
                self.left_out[suspect.type.code] += len(suspect.rows) - len(findings)
            listed += findings
        return listed

    def _count(self, headers: Headers, damage: Damage | None) -> None:
        totals = self.totals
        if damage is not None:
            if damage.reason in HARMLESS:
                totals.good_bytes += damage.size_in_bytes
            else:
                totals.damaged_bytes += damage.size_in_bytes
        if not len(headers):
            return
        valid = headers.crc_valid
        good = int(headers.size_in_bytes[valid].sum())
        totals.batches += len(headers)
        totals.records += int(np.maximum(headers.records_count, 0).sum())
        totals.good_bytes += good
        totals.damaged_bytes += int(headers.size_in_bytes.sum()) - good
        if totals.base_offset is None:
            totals.base_offset = int(headers.base_offset[0])
        if valid.any():
            latest = int(headers.last_offset[valid].max()) + 1
            totals.next_offset = max(totals.next_offset or 0, latest)
            totals.max_timestamp = max(totals.max_timestamp, int(headers.max_timestamp[valid].max()))

    def _changes(self) -> list[Finding]:
        """What happened to the source while it was read."""
        try:
            now = self.source.current_size()
        except FileNotFoundError:
            return [evidence_findings.VANISHED.at(self.options.place)]
        before = self.source.size
        if now == before:
            return []
        return [segments.FILE_CHANGED.at(self.options.place, before=before, after=now)]

    def _limited(self, findings: list[Finding]) -> tuple[Finding, ...]:
        """The findings that may still be listed; the rest is counted."""
        room = max(0, self.options.max_findings - self.totals.findings)
        self.left_out.update(finding.code for finding in findings[room:])
        self.totals.findings += len(findings)
        return tuple(findings[:room])

    def _rest(self) -> tuple[Finding, ...]:
        """One finding that says how many were left out."""
        if not self.left_out:
            return ()
        codes = ", ".join(f"{count} {code}" for code, count in sorted(self.left_out.items()))
        count = sum(self.left_out.values())
        return (segments.TOO_MANY_FINDINGS.at(self.options.place, count=count, codes=codes),)


def scan_segment(
    source: Source,
    options: ScanOptions | None = None,
    *,
    hints: Ints | None = None,
    checks: LogChecks | None = None,
) -> SegmentScan:
    """A scan of the source; `hints` are positions of batches, from its index where there is one."""
    options = options or ScanOptions()
    return SegmentScan(source, options, PieceScan(source, options, hints), checks)
