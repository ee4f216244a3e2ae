"""From the paths of a command line to an audit: evidence, tiers, and a plan of what can be removed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from formats.values import Struct, field
from kctl.errors import KctlError, file_error
from kctl.evidence.discover import discover
from kctl.evidence.model import FoundEvidence
from kctl.judging.judgement import Judgement, Question, judgement_rows
from kctl.model import Row
from kctl.rows.remote import TIER_SUMMARY
from kctl.tier.audit.audit import AuditOptions, AuditResult, audit_tier, stores_in
from kctl.tier.stores import Store, open_store


class OpenedAudit(Struct):
    """An audit that is ready to run, over each tier in turn."""

    evidence: FoundEvidence
    stores: list[Store]
    options: AuditOptions
    failures: list[KctlError] = field(default_factory=list)
    audited: list[tuple[str, AuditResult]] = field(default_factory=list)

    def rows(self, plan_cleanup: str | None = None) -> Iterator[Row]:
        """The rows; after the last one the cleanup plan is written."""
        for finding in self.evidence.findings:
            yield finding.row()
        summaries: list[Row] = []
        yield from judgement_rows(self._items(summaries), [Question.TIER])
        yield from summaries
        if plan_cleanup is not None:
            self._write_plan(Path(plan_cleanup))

    def _items(self, summaries: list[Row]) -> Iterator[Row | Judgement]:
        """The rows of each tier except its summary, which is added to `summaries`."""
        stores: list[Store | None] = [*self.stores] or [None]
        for store in stores:
            audited, items = audit_tier(self.evidence, store, self.options)
            self.audited.append((store.name if store else "", audited))
            for item in items:
                if not isinstance(item, Judgement) and item["kind"] == TIER_SUMMARY.kind:
                    summaries.append(item)
                else:
                    yield item

    def _write_plan(self, path: Path) -> None:
        """Write one JSON line for each object that nothing refers to; never into the evidence."""
        target = path.resolve()
        inside = [
            root.given_path for root in self.evidence.roots if target.is_relative_to(root.path.resolve())
        ]
        if inside:
            raise KctlError(f"{path}: is inside the evidence {inside[0]}", "evidence is never written to")
        try:
            with path.open("w", encoding="utf-8") as out:
                for name, audited in self.audited:
                    for key, size, why in sorted(set(audited.orphans)):
                        row = {"tier": name, "key": key, "size_in_bytes": size, "reason": why}
                        out.write(json.dumps(row) + "\n")
        except OSError as error:
            raise file_error(path, error) from None


def open_audit(
    paths: Sequence[str],
    tier: str | None,
    options: AuditOptions,
    *,
    brokers: Sequence[str] = (),
    moments: Sequence[str] = (),
) -> OpenedAudit:
    """The audit of the evidence below the paths; a named tier replaces those found."""
    evidence = discover(paths, brokers=brokers, moments=moments)
    stores: list[Store] = [open_store(tier)] if tier is not None else stores_in(evidence)
    return OpenedAudit(evidence, stores, options, list(evidence.failures))
