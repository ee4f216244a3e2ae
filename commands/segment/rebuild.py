"""`kctl segment rebuild`: indexes, snapshots and epochs rebuilt from the log, and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.cli.evidence_options import EvidenceOptions
from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN, GIVEN_PATH, flag, option
from commands.cli.render import Outcome, Page, Row
from formats.words import counted
from kctl.errors import KctlError

if TYPE_CHECKING:
    from kctl.checks.report import ReplicaTask
    from kctl.evidence.model import FoundEvidence
    from kctl.rebuilding.folders import RebuildOptions

RULES = ("0.8", "2.0", "3.8")


@command(
    "rebuild",
    status="0 written, or equal or equivalent · 3 failed · 4 OUT lies in the evidence"
    " · 5 an existing file is different",
)
@click.argument("folder", type=GIVEN)
@option("--to OUT", "Write to OUT/TOPIC-PARTITION/.", into="out", type=GIVEN_PATH)
@option(
    "--rules",
    "Apply the rules of this version and later.  [default: the newest; with --check those that match]",
    type=click.Choice(RULES),
)
@option(
    "--index-interval-bytes N",
    "Bytes between index entries.  [default: as in the existing indexes, else 4096]",
    into="interval",
    type=click.IntRange(0),
)
@flag("--check", "Compare with the existing files.")
def rebuild(
    frame: Frame, folder: str, out: Path | None, rules: str | None, interval: int | None, check: bool
) -> Outcome:
    """Rebuild indexes, producer snapshots and epochs from the log.

    FOLDER is a partition folder, or a log directory of one broker. It is never written to.

    $ kctl segment rebuild data/orders-3 --to rebuilt/
    $ kctl segment rebuild data/orders-3 --check
    $ kctl segment rebuild data/ --to rebuilt/ --rules 2.0
    """
    from kctl.log.index_rules import IndexRules
    from kctl.rebuilding.folders import RebuildOptions, refuse_evidence

    if out is None and not check:
        raise click.UsageError("nothing to do; give --to OUT, --check, or both")
    options = RebuildOptions(IndexRules(rules) if rules else None, interval, check, out)
    evidence = EvidenceOptions((folder,)).find(frame)
    tasks = _tasks(folder, evidence)
    if out is not None:
        log_dirs = [task.folder.parent for task in tasks if task.is_marked]
        refuse_evidence(out, [*(root.path for root in evidence.roots), *log_dirs])
    return Outcome(_rebuilt(frame, tasks, options), text=rebuilt_text)


def _tasks(folder: str, evidence: FoundEvidence) -> list[ReplicaTask]:
    from formats.values import replace
    from kctl.checks.evidence import cleaned_topics, loose_task, open_directory, task_of
    from kctl.checks.report import CheckOptions

    options = CheckOptions()
    directories = {log_dir.path: open_directory(log_dir, evidence, options) for log_dir in evidence.log_dirs}
    options = replace(options, compacted=cleaned_topics(directories.values()))
    replicas = evidence.replicas
    if len({(replica.broker_id, replica.moment) for replica in replicas}) > 1:
        raise KctlError(f"{folder}: holds several copies of a log", "name one of them")
    tasks = [task_of(replica, directories[replica.log_dir.path], evidence, options) for replica in replicas]
    tasks += [loose_task(path, root, evidence) for path, root in evidence.loose_folders]
    if not tasks and not evidence.failures:
        raise KctlError(
            f"{folder}: no partition folder found here",
            "name a partition's folder, or a log directory that holds some",
        )
    return tasks


def _rebuilt(frame: Frame, tasks: list[ReplicaTask], options: RebuildOptions) -> Iterator[Row]:
    from kctl.rebuilding.folders import is_different
    from kctl.rebuilding.folders import rebuild as rebuild_folder
    from kctl.rows.verify import REBUILT

    for task in tasks:
        try:
            for rebuilt in rebuild_folder(task, options):
                if is_different(rebuilt, task.kind):
                    frame.raise_status(5)
                compared = rebuilt.compared
                yield REBUILT.of(
                    rebuilt,
                    file=f"{task.folder.name}/{rebuilt.name}",
                    verdict=compared.verdict.value if compared else None,
                    rules=rebuilt.rules.value,
                    differences=compared.differences if compared else None,
                    first_difference=compared.first_difference if compared else None,
                    topic=task.place.topic,
                    partition=task.place.partition,
                )
        except KctlError as error:
            frame.report(error)


def rebuilt_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Files that differ, then how many of each verdict, and by which rules."""
    counts: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    for row in rows:
        verdict = str(row["verdict"])
        counts[verdict] += 1
        rules[str(row["rules"])] += 1
        if verdict in ("equivalent", "different", "missing"):
            style = "error" if verdict == "different" else "info"
            yield f"{page.style(f'{verdict:<11}', style)} {row['file']}"
            if row["first_difference"]:
                yield f"            {counted(row['differences'], 'difference')}, the first: {row['first_difference']}"
        elif row["verdict"] is None:
            yield f"{row['file']}  {counted(row['entries'], 'entry', 'entries')}, {counted(row['size_in_bytes'], 'byte')}"
    yield ""
    if set(counts) == {"None"}:
        yield f"{counted(counts.total(), 'file')} written by the rules of {', '.join(sorted(rules))}"
    else:
        yield ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(counts.items()))
        yield ", ".join(
            f"rules {name} match {counted(count, 'file')}" for name, count in sorted(rules.items())
        )
