"""`kctl segment rebuild`: indexes, snapshots and epochs written anew from the log, and compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.evidence_options import find_evidence
from commands.frame import Frame, command
from commands.path_types import GIVEN, GIVEN_PATH
from commands.render import Outcome, Page, Row

if TYPE_CHECKING:
    from kctl.checks.replica import ReplicaTask
    from kctl.evidence.model import Evidence
    from kctl.log.rebuilding import RebuildOptions

RULES = ("0.8", "2.0", "3.8")


@command(
    "rebuild",
    examples="""
    kctl segment rebuild data/orders-3 --to rebuilt/
    kctl segment rebuild data/orders-3 --check
    kctl segment rebuild data/ --to rebuilt/ --rules 2.0
    """,
    status="0 written, or equal or equivalent · 3 could not · 4 the folder to write to lies in the evidence"
    " · 5 an existing file is different",
)
@click.argument("folder", type=GIVEN)
@click.option("--to", "out", type=GIVEN_PATH, metavar="OUT", help="Write to OUT/TOPIC-PARTITION/.")
@click.option(
    "--rules",
    type=click.Choice(RULES),
    help="The rules of this version and later.  [default: the newest; with --check those that match]",
)
@click.option(
    "--index-interval-bytes",
    "interval",
    type=click.IntRange(0),
    metavar="N",
    help="Bytes between index entries.  [default: what the existing indexes tell, else 4096]",
)
@click.option("--check", is_flag=True, help="Compare with the files that are there.")
def rebuild(
    frame: Frame, folder: str, out: Path | None, rules: str | None, interval: int | None, check: bool
) -> Outcome:
    """Write indexes, snapshots and epochs anew from the log.

    FOLDER is a partition folder, or a log directory of one broker. It is never written to.
    """
    from kctl.log.index_rules import Rules
    from kctl.log.rebuilding import RebuildOptions, refuse_evidence

    if out is None and not check:
        raise click.UsageError("Nothing to do: give --to OUT, --check, or both.")
    options = RebuildOptions(Rules(rules) if rules else None, interval, check, out)
    evidence = find_evidence(frame, (folder,), (), ())
    tasks = _tasks(folder, evidence)
    if out is not None:
        log_dirs = [task.folder.parent for task in tasks if task.is_marked]
        refuse_evidence(out, [*(root.path for root in evidence.roots), *log_dirs])
    return Outcome(_rebuilt(frame, tasks, options), text=rebuilt_text)


def _tasks(folder: str, evidence: Evidence) -> list[ReplicaTask]:
    from formats.log_dir_files import FolderKind
    from kctl.checks.evidence import loose_task, open_directory, task_of
    from kctl.checks.report import CheckOptions
    from kctl.errors import KctlError

    options = CheckOptions()
    directories = {one.path: open_directory(one, evidence, options) for one in evidence.log_dirs}
    live = [replica for replica in evidence.replicas if replica.kind is FolderKind.LIVE]
    if len({(one.broker_id, one.moment) for one in live}) > 1:
        raise KctlError(f"{folder}: holds several copies of a log", "name one of them")
    tasks = [task_of(one, directories[one.log_dir.path], evidence, options) for one in live]
    tasks += [loose_task(path, one, evidence) for path, one in evidence.loose_folders]
    if not tasks and not evidence.failures:
        raise KctlError(f"{folder}: no partition folder lies here")
    return tasks


def _rebuilt(frame: Frame, tasks: list[ReplicaTask], options: RebuildOptions) -> Iterator[Row]:
    from kctl.errors import KctlError
    from kctl.log.rebuilding import is_different
    from kctl.log.rebuilding import rebuild as rebuild_folder
    from kctl.rows.verify import REBUILT

    for task in tasks:
        try:
            for one in rebuild_folder(task, options):
                if is_different(one):
                    frame.raise_status(5)
                yield REBUILT(
                    file=f"{task.folder.name}/{one.name}",
                    type=one.type,
                    size_in_bytes=one.size_in_bytes,
                    entries=one.entries,
                    verdict=one.compared.verdict.value if one.compared else None,
                    rules=one.rules.value,
                    differences=one.compared.differences if one.compared else None,
                    first_difference=one.compared.first_difference if one.compared else None,
                    topic=task.place.topic,
                    partition=task.place.partition,
                )
        except KctlError as error:
            frame.report(error)


def rebuilt_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Files that differ, then how many of each verdict, and by which rules."""
    counts: dict[str, int] = {}
    rules: dict[str, int] = {}
    number = 0
    for row in rows:
        number += 1
        verdict = str(row["verdict"])
        counts[verdict] = counts.get(verdict, 0) + 1
        rules[str(row["rules"])] = rules.get(str(row["rules"]), 0) + 1
        if verdict in ("equivalent", "different", "missing"):
            style = "error" if verdict == "different" else "info"
            yield f"{page.style(f'{verdict:<11}', style)} {row['file']}"
            if row["first_difference"]:
                yield f"            {row['differences']} entries differ, the first: {row['first_difference']}"
        elif row["verdict"] is None:
            yield f"{row['file']}  {row['entries']:,} entries, {row['size_in_bytes']:,} bytes"
    yield ""
    by = ", ".join(f"rules {name} match {count} files" for name, count in sorted(rules.items()))
    if set(counts) == {"None"}:
        yield f"{number:,} files written by the rules of {', '.join(sorted(rules))}"
    else:
        yield ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(counts.items()))
        yield by
