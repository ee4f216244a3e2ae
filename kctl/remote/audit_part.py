"""The tier's part of the audit of a whole cluster: findings, a row a remote segment, a row a partition."""

from __future__ import annotations

from collections.abc import Iterator

from kctl.evidence.model import Evidence
from kctl.model import SILENT, Progress
from kctl.remote.audit import AuditOptions, audit_tier, stores_in
from kctl.remote.stores import Store

Row = dict[str, object]


def tier_rows(evidence: Evidence, now: int | None = None, progress: Progress = SILENT) -> Iterator[Row]:
    """The rows of every tier in the evidence; its summary is left to the audit."""
    stores: list[Store | None] = [*stores_in(evidence)] or [None]
    for store in stores:
        _, rows = audit_tier(evidence, store, AuditOptions(now=now, segments=True, progress=progress))
        yield from (row for row in rows if row["kind"] != "tier_summary")
