"""Evidence of a cluster: what is wrong, what is lost, who led, and how far that can be judged."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from formats.values import replace
from formats.words import counted
from kctl.api.values import Value, Values
from kctl.errors import KctlError, near_names
from kctl.model import some

# Names of the audit's parts by what is asked; see `kctl.audit.parts.PARTS`.
VERIFY, COMPARE, LOSS, TIMELINE, TRANSACTIONS, TIER = (
    "verify",
    "compare",
    "loss",
    "timeline",
    "transactions",
    "tier",
)


class Evidence:
    """What lies below paths or URLs: copies of log directories, broker logs, exports of znodes, tiers.

    `brokers` and `moments` are texts `ID=FOLDER` and `NAME=FOLDER`, as of `--broker` and `--moment`. Nothing is
    written to; each question is worked out once and remembered. A path may be
    a list of paths. Raises KctlError where no path can be opened, and where they hold nothing that kctl knows.
    """

    def __init__(
        self,
        *paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        brokers: Sequence[str] = (),
        moments: Sequence[str] = (),
        compacted: Sequence[str] = (),
        jobs: int | None = None,
    ) -> None:
        from kctl.audit.parts import Audit
        from kctl.checks.report import CheckOptions
        from kctl.evidence.discover import discover, refuse_nothing
        from kctl.stores.mirror import local_path

        each = (path if isinstance(path, (list, tuple)) else (path,) for path in paths)
        self.paths: tuple[str, ...] = tuple(os.fspath(path) for several in each for path in several)
        discovered = discover(tuple(map(local_path, self.paths)), brokers=brokers, moments=moments)
        self.failures: list[Exception] = list(discovered.failures)
        """What was named and cannot be opened, or could not be read while a question was worked out."""
        if discovered.failures and len(discovered.failures) >= len(self.paths):
            raise discovered.failures[0]
        refuse_nothing(discovered)
        self._audit = Audit(
            discovered, tuple(map(local_path, self.paths)), self.failures.append, CheckOptions(compacted=frozenset(compacted)), jobs,
        )  # fmt: skip
        self._known: dict[str, Values] = {}

    def verify(self) -> Values:
        """Rows `finding` about the bytes of files."""
        return self._of(VERIFY, "finding")

    def compare(self) -> Values:
        """Rows `lineage`, `divergence` and `verdict` of every partition that several brokers hold."""
        return self._of(COMPARE, "lineage", "divergence", "verdict")

    def losses(self, *, topic: str | None = None, partition: int | None = None) -> Values:
        """Rows `loss`: ranges [from_offset, to_offset) that were committed or acknowledged and are gone; see `judgements`.

        Those of a topic, and of a partition, where one is given. Raises KctlError for one that the evidence does not name.
        """
        asked = {"topic": topic, "partition": partition}
        judged = self._of(LOSS, "judgement", "loss")
        for name, value in asked.items():
            known = sorted({getattr(row, name) for row in judged} - {None})
            if value is not None and value not in known:
                names = list(map(str, known))
                hint = near_names(str(value), names, otherwise=f"it names {some(names) or 'none'}")
                raise KctlError(f"the evidence names no {name} {value}", hint)
        return self._of(LOSS, "loss").where(
            **{name: value for name, value in asked.items() if value is not None}
        )

    def timeline(self) -> Values:
        """Rows `leader` and `broker_state`: who led when, and which broker was up."""
        return self._of(TIMELINE, "leader", "broker_state")

    def hanging_transactions(self) -> Values:
        """Rows `open_transaction`."""
        return self._of(TRANSACTIONS, "open_transaction")

    def findings(self) -> Values:
        """Rows `finding` of every question that the evidence has anything on."""
        return Values(row for part in self._parts() for row in self._rows(part) if row.kind == "finding")

    def judgements(self) -> Values:
        """Rows `judgement`: one of five verdicts for each question and subject, with what is missing to judge it."""
        from kctl.audit.parts import PARTS

        judging = {part.name for part in PARTS if part.question}
        return Values(
            row
            for part in self._parts()
            if part in judging
            for row in self._rows(part)
            if row.kind == "judgement"
        )

    def audit(
        self,
        out: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        resume: bool = False,
        spark: Any = None,
    ) -> Value:
        """Everything, as tables and `report.html` in the folder `out`; gives the row `audit`, the summary.

        The executors of `spark`, a SparkSession, do the work where one is given. `resume` keeps what is finished, and goes
        on where a run that was killed was. Raises Refused where an earlier report is there, unless `overwrite`.
        """
        from kctl.audit.run import run
        from kctl.report.page import write_report

        jobs = self._audit.jobs
        if spark is not None:
            from kctl.spark.session import prepare
            from kctl.spark.tasks import SparkEngine, cores_of

            prepare(spark)
            jobs = SparkEngine(spark, cores_of(spark))
        work = replace(self._audit, jobs=jobs)
        return Value(run(work, Path(out), write_page=write_report, resume=resume, overwrite=overwrite))

    def _parts(self) -> Iterator[str]:
        from kctl.audit.parts import PARTS

        return (part.name for part in PARTS if part.is_there(self._audit.evidence))

    def _of(self, part: str, *kinds: str) -> Values:
        return Values(row for row in self._rows(part) if row.kind in kinds)

    def _rows(self, name: str) -> Values:
        from kctl.audit.parts import PARTS
        from kctl.judging.judgement import Judgement

        if name not in self._known:
            part = next(part for part in PARTS if part.name == name)
            work: Callable[[Any], Iterator[Any]] = part.rows
            undigested = replace(self._audit, digest=None)
            rows = work(undigested) if part.is_there(self._audit.evidence) else iter(())
            self._known[name] = Values(row.row() if isinstance(row, Judgement) else row for row in rows)
        return self._known[name]

    def __repr__(self) -> str:
        evidence = self._audit.evidence
        return f"<evidence of {counted(len(evidence.broker_ids), 'broker')}, {counted(len(evidence.replicas), 'replica')}: {' '.join(self.paths)}>"

    def _repr_html_(self) -> str:
        return self.judgements()._repr_html_()
