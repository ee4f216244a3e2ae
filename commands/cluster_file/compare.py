"""`kctl diff`: how a cluster differs from files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from commands.cli.connecting import At, reads
from commands.cli.frame import Frame, command
from commands.cli.leaving import visible
from commands.cli.options import GIVEN, GIVEN_PATH, Decorator, as_one_value, flag, option
from commands.cli.render import Outcome, Page, Row
from commands.topic import note_hidden, note_problems
from formats.words import counted
from kctl.errors import BadValue, KctlError

if TYPE_CHECKING:
    from kctl.cluster.interface import Cluster
    from kctl.cluster.state import ClusterState
    from kctl.cluster.versions import KafkaVersion
    from kctl.cluster_file.difference import Changed
    from kctl.cluster_file.resources import Wanted

FILES = click.argument("files", nargs=-1, required=True, type=GIVEN_PATH, metavar="FILE...")


class Given(NamedTuple):
    """What stands for variables of files, from the options."""

    settings: tuple[str, ...]

    def load(self, files: Sequence[Path], known: set[str] | None = None) -> Wanted:
        """What the files ask for. Raises KctlError with file and line; see `kctl.cluster_file.loading.load`."""
        from kctl.cluster_file.loading import load
        from kctl.operations.configs import parse_assignments

        return load(files, parse_assignments(self.settings), os.environ, known)

    def refuse_unused(self, known: set[str]) -> None:
        """Raise BadValue for a variable that is not known."""
        from kctl.cluster_file.variables import refuse_unused
        from kctl.operations.configs import parse_assignments

        refuse_unused(parse_assignments(self.settings), known)


given: Decorator = as_one_value(
    Given,
    [
        option(
            "--set NAME=VALUE...",
            "Give the variable ${NAME} of the files a value; repeatable.",
            into="settings",
        )
    ],
)


def drift_rows(listed: Iterable[Changed]) -> Iterator[Row]:
    """The rows of all differences."""
    from kctl.rows.changes import DRIFT

    for changed in listed:
        for row in changed.drifts:
            yield DRIFT.of(row)


MARKS: dict[object, tuple[str, str]] = {
    None: ("?", "warning"), "create": ("+", "good"), "change": ("~", "warning"), "delete": ("-", "error"), "none": (" ", "dim"),
}  # fmt: skip


def drift_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A heading for each resource, with the place that wants it, and its fields below."""
    drifts = [row for row in rows if row["kind"] == "drift"]
    for (kind, name), group in groupby(drifts, lambda row: (row["kind_of_resource"], row["name"])):
        listed = list(group)
        actions = {row["action"] for row in listed}
        whole = next((row for row in listed if row["field"] is None), listed[0])
        action = whole["action"]
        if whole["field"] is not None:  # of what is there
            action = None if None in actions else "none" if actions == {"none"} else "change"
        mark, style = MARKS[action]
        yield page.style(f"{mark} {str(kind).replace('_', ' ')} {name}", style) + _at(whole, page)
        width = max(len(str(row["field"])) for row in listed)
        for row in listed:
            if row["field"] is None:
                if row["why"]:
                    yield page.style(f"    not known: {row['why']}", "dim")
                continue
            was, becomes = (
                "(not set)" if value is None else str(value) for value in (row["present"], row["desired"])
            )
            if row["action"] == "none":
                yield page.style(
                    f"    {str(row['field']).ljust(width)}  {was}, not in the files: it stays", "dim"
                )
            elif row["action"] == "delete":
                yield f"    {str(row['field']).ljust(width)}  {was}, not in the files: it goes{_at(row, page)}"
            elif row["action"] is None:
                yield f"    {str(row['field']).ljust(width)}  not known ({row['why']}) -> {becomes}{_at(row, page)}"
            elif action == "create":
                yield f"    {str(row['field']).ljust(width)}  {becomes}"
            else:
                yield f"    {str(row['field']).ljust(width)}  {page.style(was, 'dim')} -> {becomes}{_at(row, page)}"


def _at(row: Row, page: Page) -> str:
    return page.style(f"   {row['file']}:{row['line']}", "dim") if row["file"] else ""


class Compared(NamedTuple):
    """The differences, and the state that they were found in."""

    changed: list[Changed]
    state: ClusterState


@contextmanager
def checked_first(wanted: Wanted) -> Iterator[None]:
    """Where a cluster cannot be reached, or read, say what no broker would take of the files, if there is such."""
    from kctl.cluster_file.acceptable import refuse_any

    try:
        yield
    except KctlError as error:
        if error.exit_code == KctlError.exit_code:
            refuse_any(wanted.resources.values())
        raise


def compared(frame: Frame, cluster: Cluster, version: KafkaVersion | None, wanted: Wanted) -> Compared:
    """What files ask for against what a cluster has; reports what could not be read (status 3). Raises KctlError."""
    from kctl.access.view import NoAuthorizer
    from kctl.cluster_file.acceptable import refuse_unacceptable
    from kctl.cluster_file.difference import differences, doubts
    from kctl.cluster_file.present import present_in
    from kctl.cluster_file.resources import by_key

    manages_topics = any(managed.kind == "topic" for managed in wanted.managed)
    names = sorted(key.name for key in wanted.resources if key.kind == "topic")
    topics = None if manages_topics else names
    present = present_in(cluster, version, wanted.kinds, topics, wanted.resources)
    note_problems(frame, present.problems)
    _note_left_out(frame, present.left_out)
    note_hidden(frame, present.state, decides=manages_topics)
    if present.remarks and any(key.kind == "acl" for key in wanted.resources):
        raise NoAuthorizer
    now = by_key(present.resources)
    changed = list(differences(wanted, now, present.why_unread))
    refuse_unacceptable(changed)
    _note_doubts(frame, doubts(wanted, now, changed, present.brokers))
    _note_unread(frame, changed, {present.state.hidden, *(problem.reason for problem in present.problems)})
    return Compared(changed, present.state)


def _note_doubts(frame: Frame, sentences: Iterable[str]) -> None:
    """Note each sentence once: a default stands for many topics."""
    for text in dict.fromkeys(sentences):
        frame.note(f"warning: {text}")


def _note_left_out(frame: Frame, sentences: Iterable[str]) -> None:
    for text in sentences:
        frame.note(f"not compared, since no file can hold it: {text}")


def _note_unread(frame: Frame, changed: Iterable[Changed], reported: set[str]) -> None:
    """Report why resources are not known, each reason once, where it was not reported (status 3)."""
    for each in changed:
        why = next((row.why for row in each.drifts if row.why), None)
        if why is not None and why not in reported:
            reported.add(why)
            place = f"{each.resource.kind.replace('_', ' ')} {each.resource.name}"
            frame.fail(
                f"{place}: not compared: {why}", "leave it out of the files, or see to it that it can be read"
            )


def compared_with(
    frame: Frame, path: Path, wanted: Wanted, load: Callable[[Sequence[Path]], Wanted]
) -> list[Changed]:
    """What files ask for against another export, or evidence; reports what could not be read (status 3)."""
    from kctl.cluster_file.acceptable import refuse_unacceptable
    from kctl.cluster_file.difference import differences, doubts
    from kctl.cluster_file.recorded import against
    from kctl.cluster_file.resources import by_key

    recorded = against(path, wanted.kinds, wanted.resources, load)
    if recorded.remark:
        frame.note(recorded.remark)
    note_problems(frame, recorded.problems)
    _note_left_out(frame, recorded.left_out)
    now = by_key(recorded.resources)
    changed = list(differences(wanted, now, recorded.why_unread))
    refuse_unacceptable(changed)
    _note_doubts(frame, doubts(wanted, now, changed, recorded.brokers))
    _note_unread(frame, changed, {problem.reason for problem in recorded.problems})
    return changed


def as_whole(wanted: Wanted, files: Sequence[Path]) -> Wanted:
    """The same, where the files are all that there is to be."""
    from formats.values import replace
    from kctl.cluster_file.document import Place
    from kctl.cluster_file.resources import SECTIONS, Managed

    place = Place(str(files[0]), 1)
    return replace(wanted, managed=tuple(Managed(kind, "*", place) for kind in SECTIONS.values()))


@command(
    "diff",
    paged=True,
    status="0 shown, with --exit-code nothing differs · 2 a file is wrong · 3 no connection, something could not be read · "
    "5 with --exit-code: something differs",
)
@reads
@FILES
@given
@option(
    "--against PATH",
    "Compare with this other export, or with the evidence of a cluster, instead of a live one.",
    type=GIVEN,
)
@flag("--whole", "Take the files for all that there is to be: what is not in them differs, too.")
@flag("--markdown", "Print a table in Markdown, for a merge request.")
@flag("--exit-code", "Exit with 5 where something differs.")
def diff(
    frame: Frame,
    at: At,
    variables: Given,
    files: tuple[Path, ...],
    against: str | None,
    whole: bool,
    markdown: bool,
    exit_code: bool,
) -> Outcome:
    """Show how a cluster differs from what files ask for.

    What is not in the files is left alone, and left out here, unless they say `manage: {KIND: all}`, or with --whole.
    Values that are set and that no file mentions are shown with the action none.

    $ kctl diff cluster.yaml
    $ kctl diff cluster/ --exit-code --output jsonl
    $ kctl diff cluster.yaml --set team=orders --markdown
    $ kctl diff staging.yaml --against production.yaml --whole
    $ kctl diff cluster.yaml --against evidence/ --exit-code
    """
    if against is not None and at.snapshot is not None:
        raise BadValue("give one of --against and --snapshot", "a diff is with one cluster")
    known: set[str] = set()
    wanted = variables.load(files, known)
    if whole:
        wanted = as_whole(wanted, files)
    if against is not None:
        changed = compared_with(frame, Path(against), wanted, partial(variables.load, known=known))
        variables.refuse_unused(known)
    else:
        variables.refuse_unused(known)
        with checked_first(wanted), at.open(frame) as cluster:
            changed = compared(frame, cluster, at.version, wanted).changed
    rows = list(drift_rows(changed))
    if exit_code and any(row["action"] not in (None, "none") for row in rows):
        frame.raise_status(5)
    nothing = f"nothing differs: {counted(len(wanted.resources), 'resource')} as the files ask"
    if frame.status:
        nothing = "nothing differs of what was read"
    if markdown:
        lines = list(markdown_lines(rows, nothing))
        return Outcome(rows, encoded=lambda form: lines if form == "text" else None, is_exact=True)
    return Outcome(rows, text=drift_text, nothing=nothing)


SPECIAL = re.compile(r"[\\`*_{}\[\]<>()#+!|~&@-]")


def markdown_lines(rows: Iterable[Row], nothing: str) -> Iterator[bytes]:
    """A table in Markdown, in which nothing that is shown is markup."""

    def cell(value: object) -> str:
        text = "" if value is None else " ".join(visible(str(value)).split())
        return SPECIAL.sub(lambda match: f"\\{match[0]}", text)

    listed = [row for row in rows if row["action"] != "none"]
    if not listed:
        yield f"{nothing}\n".encode()
        return
    yield b"| Action | Resource | Field | Present | Desired | Wanted by |\n|---|---|---|---|---|---|\n"
    for row in listed:
        place = f"{row['file']}:{row['line']}" if row["file"] else ""
        resource = f"{str(row['kind_of_resource']).replace('_', ' ')} {row['name']}"
        present = row["present"] if row["why"] is None else f"not known: {row['why']}"
        cells = (row["action"] or "not known", resource, row["field"], present, row["desired"], place)
        yield f"| {' | '.join(map(cell, cells))} |\n".encode()
