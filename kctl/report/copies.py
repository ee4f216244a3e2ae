"""Copies to the tier that failed, as the first screen says them: no loss, and at most something to tidy up."""

from __future__ import annotations

from formats.values import Struct
from formats.words import counted
from kctl.audit.tables import Tables
from kctl.findings.remote import COPIED_AGAIN, COPY_FAILED
from kctl.report.html import size
from kctl.report.incidents import Key


class FailedCopies(Struct, frozen=True):
    """Copies that failed, those of them that were repeated, and the bytes that repeated ones left in the tier."""

    total: int
    repeated: int
    leftovers: int
    partitions: frozenset[Key]

    def sentence(self) -> str:
        """`13 copies to the tier failed and were repeated; 13.3 KiB of leftovers can be removed.`"""
        copies = f"{counted(self.total, 'copy', 'copies')} to the tier failed"
        if self.repeated == self.total:
            copies += f" and {'was' if self.total == 1 else 'were'} repeated"
        elif self.repeated:
            copies += f", of which {self.repeated:,} {'was' if self.repeated == 1 else 'were'} repeated"
        removable = f"; {size(self.leftovers)} of leftovers can be removed" if self.leftovers else ""
        return f"{copies}{removable}."


def failed_copies(tables: Tables) -> FailedCopies:
    """The copies that failed, from the findings of an audit."""
    columns = ["code", "message", "topic", "partition", "size_in_bytes"]
    rows = [row for row in tables.rows("findings", columns=columns) if row["code"] == COPY_FAILED.code]
    repeated = [row for row in rows if COPIED_AGAIN in row["message"]]
    return FailedCopies(
        len(rows),
        len(repeated),
        sum(row["size_in_bytes"] or 0 for row in repeated),
        frozenset((row["topic"], row["partition"]) for row in rows),
    )
