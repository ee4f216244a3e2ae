"""`kctl export`, `kctl diff` and `kctl apply`: a cluster in files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from commands.cli.changing import ACCEPT_UNCLEAN, CHANGE_STATUS, How, carry_out, changes
from commands.cli.connecting import At, open_for_change, reads
from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN_PATH, Decorator, Names, as_one_value, flag, option
from commands.cli.render import Outcome, Page, Row
from commands.topic import note_hidden, note_problems
from kctl.errors import BadValue

if TYPE_CHECKING:
    from kctl.cluster.interface import Cluster
    from kctl.cluster.state import ClusterState
    from kctl.cluster.versions import KafkaVersion
    from kctl.cluster_file.difference import Changed
    from kctl.cluster_file.resources import Wanted

KIND_NAMES = "topics,configs,groups,users,quotas,acls"
FILES = click.argument("files", nargs=-1, required=True, type=GIVEN_PATH, metavar="FILE...")
STATUS = "0 written · 2 wrong usage · 3 no connection, something could not be read"


class Given(NamedTuple):
    """What stands for variables of files, from the options."""

    settings: tuple[str, ...]

    def load(self, files: Sequence[Path]) -> Wanted:
        """What the files ask for. Raises KctlError with file and line."""
        from kctl.cluster.configs import parse_assignments
        from kctl.cluster_file.loading import load

        return load(files, parse_assignments(self.settings), os.environ)


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


# --- export ---------------------------------------------------------------------------------------------


def kinds_of(names: frozenset[str] | None) -> list[str]:
    """The kinds of resource that --kinds names; all without it. Raises BadValue."""
    from kctl.cluster_file.resources import KINDS
    from kctl.errors import near_names

    for name in sorted(names or ()):
        if name not in KINDS:
            raise BadValue(
                f"{name!r} is not a kind", near_names(name, KINDS, otherwise=f"there are {KIND_NAMES}")
            )
    return [kind for name, kinds in KINDS.items() if names is None or name in names for kind in kinds]


@command("export", status=STATUS)
@reads
@option("--topics PATTERN...", "Only topics that match this pattern; repeatable.", into="patterns")
@option("--kinds A,B", f"Only these kinds: {KIND_NAMES}.", type=Names())
@option("--to PATH", "Write to this file (.yaml, .json), or to files in this folder.", type=GIVEN_PATH)
def export(
    frame: Frame, at: At, patterns: tuple[str, ...], kinds: frozenset[str] | None, to: Path | None
) -> Outcome:
    """Export topics, configurations, users, quotas and rules to a file that `kctl apply` reads.

    Only what is set is written: what brokers take from their files and defaults is left out, as are Kafka's own topics,
    passwords and other secrets. The order is always the same. YAML; with --output json, or to FILE.json, JSON.

    $ kctl export > cluster.yaml
    $ kctl export --to cluster/
    $ kctl export --topics 'orders-*' --kinds topics,acls --to orders.yaml
    $ kctl export --snapshot znodes.jsonl > cluster.yaml
    """
    from fnmatch import fnmatchcase

    from kctl.cluster_file.present import present_in, uneven
    from kctl.cluster_file.writing import document_of

    with at.open(frame) as cluster:
        chosen = kinds_of(kinds)
        present = present_in(cluster, at.version, chosen, None)
    note_problems(frame, present.problems)
    note_hidden(frame, present.state)
    resources = [
        resource
        for resource in present.resources
        if resource.kind != "topic" or not patterns or any(fnmatchcase(resource.name, p) for p in patterns)
    ]
    comments = {
        f"topics/{resource.name}": [text]
        for resource in resources
        if resource.kind == "topic" and (text := uneven(present.state.topics[resource.name]))
    }
    for remark in present.remarks:
        frame.note(remark)
    head = [f"not read: {problem.place}: {problem.reason}" for problem in present.problems] + present.remarks
    document = document_of(resources)
    if to is not None:
        from kctl.cluster_file.writing import write_document

        names = write_document(to, document, head, comments)
        return Outcome(encoded=lambda _: [f"{name}\n".encode() for name in names])
    from kctl.cluster_file.writing import json_text, yaml_lines

    def encoded(form: str) -> Iterator[bytes]:
        if form != "text":
            yield json_text(document).encode()
        else:
            yield from (f"{line}\n".encode() for line in yaml_lines(document, head, comments))

    return Outcome(encoded=encoded, is_exact=True)


# --- differences ----------------------------------------------------------------------------------------


def drift_rows(listed: Iterable[Changed]) -> Iterator[Row]:
    """The rows of all differences."""
    from kctl.rows.changes import DRIFT

    for changed in listed:
        for row in changed.drifts:
            yield DRIFT.of(row)


MARKS = {"create": ("+", "good"), "change": ("~", "warning"), "delete": ("-", "error"), "none": (" ", "dim")}


def drift_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A heading for each resource, with the place that wants it, and its fields below."""
    drifts = [row for row in rows if row["kind"] == "drift"]
    for (kind, name), group in groupby(drifts, lambda row: (row["kind_of_resource"], row["name"])):
        listed = list(group)
        actions = [row["action"] for row in listed]
        action = next((each for each in ("create", "delete", "change") if each in actions), "none")
        mark, style = MARKS[str(action)]
        whole = next((row for row in listed if row["field"] is None), listed[0])
        yield page.style(f"{mark} {str(kind).replace('_', ' ')} {name}", style) + _at(whole, page)
        width = max(len(str(row["field"])) for row in listed)
        for row in listed:
            if row["field"] is None:
                continue
            was, becomes = (
                "(not set)" if value is None else str(value) for value in (row["present"], row["desired"])
            )
            if row["action"] == "none":
                yield page.style(
                    f"    {str(row['field']).ljust(width)}  {was}, not in the files: it stays", "dim"
                )
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


def compared(frame: Frame, cluster: Cluster, version: KafkaVersion | None, wanted: Wanted) -> Compared:
    """What files ask for against what a cluster has; reports what could not be read (status 3). Raises KctlError."""
    from kctl.access.live import NoAuthorizer
    from kctl.cluster_file.difference import differences
    from kctl.cluster_file.present import present_in
    from kctl.cluster_file.resources import by_key

    kinds = wanted.kinds
    manages_topics = any(managed.kind == "topic" for managed in wanted.managed)
    names = sorted(key.name for key in wanted.resources if key.kind == "topic")
    present = present_in(cluster, version, kinds, None if manages_topics else names)
    note_problems(frame, present.problems)
    note_hidden(frame, present.state, decides=manages_topics)
    if present.remarks and any(key.kind == "acl" for key in wanted.resources):
        raise NoAuthorizer
    return Compared(list(differences(wanted, by_key(present.resources))), present.state)


@command(
    "diff",
    paged=True,
    status="0 shown, with --exit-code nothing differs · 2 a file is wrong · 3 no connection, something could not be read · "
    "5 with --exit-code: something differs",
)
@reads
@FILES
@given
@flag("--exit-code", "Exit with 5 where something differs.")
def diff(frame: Frame, at: At, variables: Given, files: tuple[Path, ...], exit_code: bool) -> Outcome:
    """Show how a cluster differs from what files ask for.

    What is not in the files is left alone, and left out here, unless they say `manage: {KIND: all}`. Values that are set
    and that no file mentions are shown with the action none.

    $ kctl diff cluster.yaml
    $ kctl diff cluster/ --exit-code --output jsonl
    $ kctl diff cluster.yaml --set team=orders
    """
    wanted = variables.load(files)
    with at.open(frame) as cluster:
        found = compared(frame, cluster, at.version, wanted)
    rows = list(drift_rows(found.changed))
    if exit_code and any(row["action"] != "none" for row in rows):
        frame.raise_status(5)
    count = len(wanted.resources)
    return Outcome(
        rows,
        text=drift_text,
        nothing=f"nothing differs: {count:,} resource{'' if count == 1 else 's'} as the files ask",
    )


# --- changes --------------------------------------------------------------------------------------------


@command("apply", status=f"{CHANGE_STATUS}")
@changes(timeout=300)
@FILES
@given
@option("--accept-deletes N", "Accept that so many resources are deleted.", type=click.IntRange(0))
@ACCEPT_UNCLEAN
@flag("--deletion-is-enabled", "Confirm that delete.topic.enable is true on all brokers (up to 0.11).")
def apply(
    frame: Frame,
    how: How,
    variables: Given,
    files: tuple[Path, ...],
    accept_deletes: int | None,
    accept_loss: bool,
    deletion_is_enabled: bool,
) -> Outcome:
    """Make a cluster as files ask for.

    Shows all that differs with the file and line that want it, and carries it out as one change, in steps: topics,
    configurations, quotas, rules; what takes something away comes last. `kctl journal resume` goes on with it after an
    interruption, `kctl journal undo` takes all of it back. What is not in the files stays, unless they say
    `manage: {KIND: all}`; then deletions need --accept-deletes with their number.

    $ kctl apply cluster.yaml --dry-run
    $ kctl apply cluster/ --reason 'orders: more partitions'
    $ kctl apply cluster.yaml --accept-deletes 2 --yes
    """
    from kctl.cluster_file.planning import Accepted, plan_files

    wanted = variables.load(files)
    with open_for_change(frame) as cluster:
        found = compared(frame, cluster, how.version, wanted)
        if frame.status:
            return Outcome(drift_rows(found.changed), text=drift_text)
        accepted = Accepted(deletes=accept_deletes, loss=accept_loss, deletion_is_enabled=deletion_is_enabled)
        title = (
            f"apply {', '.join(map(str, files[:3]))}{f' and {len(files) - 3} more' if len(files) > 3 else ''}"
        )
        plan = plan_files(
            cluster, found.state, found.changed, accepted,
            kafka_version=how.version, title=title, keeps_writes=how.dry_run,
        )  # fmt: skip
        rows = [row for row in drift_rows(found.changed) if row["action"] != "none"]
        return carry_out(frame, how, cluster, plan, rows, drift_text, shows_rows=True)
