"""`kctl journal`: list, show, verify, undo and resume changes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import click

from commands.cli import changing, completing
from commands.cli.connecting import open_for_change
from commands.cli.frame import Frame, command
from commands.cli.leaving import visible
from commands.cli.options import flag
from commands.cli.render import Outcome, Page, Row, folding
from kctl.errors import Refused

if TYPE_CHECKING:
    from kctl.changes.entry import Entry
    from kctl.cluster.interface import Cluster

STATUS = "0 done · 2 wrong usage · 3 no such change, or the journal cannot be read"


@command("list", paged=True, status=STATUS)
def list_changes(frame: Frame) -> Outcome:
    """List changes, oldest first.

    $ kctl journal list
    $ kctl journal list --output jsonl | jq 'select(.state == "partly_applied")'
    """
    from kctl.changes.entry import change_row
    from kctl.changes.journal import Journal

    journal = Journal()
    entries = journal.entries(frame.report)
    return Outcome(
        map(change_row, entries), folding(changes_text), f"the journal {journal.folder} has no change"
    )


def changes_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line for each change; below it why it was made, and why it ended early."""
    for row in rows:
        state = str(row["state"]).replace("_", " ") + ("" if row["finished"] else ", not finished")
        style = (
            ""
            if row["state"] == "applied" and row["finished"]
            else "dim"
            if row["state"] == "undone"
            else "warning"
        )
        yield f"{row['id']}  {row['who']}  {page.style(state, style) if style else state}  {row['title']}"
        for name in ("reason", "outcome"):
            if row[name]:
                yield f"    {name}: {visible(str(row[name]))}"


@command("show", paged=True, status=STATUS)
@click.argument("id", shell_complete=completing.journal_entries)
def show(frame: Frame, id: str) -> Outcome:
    """Show a change: stages, writes, and how to undo it.

    $ kctl journal show 2026-11-21T14:03:11Z-5f2c1a
    """
    from kctl.changes.journal import Journal

    return Outcome(changing.journal_rows(Journal().find(id)), text=changing.journal_text)


@command("verify", status="0 unchanged · 3 the journal cannot be read · 5 an entry was changed")
def verify(frame: Frame) -> Outcome:
    """Check that no entry was changed, removed or added since it was written.

    $ kctl journal verify
    """
    from kctl.changes.journal import Journal
    from kctl.findings import Place
    from kctl.findings.journal import JOURNAL_BROKEN

    broken = Journal().verify()
    if not broken:
        frame.note("the journal is unchanged")
    return Outcome(
        JOURNAL_BROKEN.at(Place(file=f"{entry.id}.json"), id=entry.id, reason=entry.reason).row()
        for entry in broken
    )


@command("undo", status=changing.CHANGE_STATUS)
@changing.changes(timeout=600)
@click.argument("id", shell_complete=completing.journal_entries)
@changing.ACCEPT_UNCLEAN
@flag("--accept-lockout", "Accept that the undo of a change of rules locks somebody out.")
def undo(frame: Frame, how: changing.How, id: str, accept_loss: bool, accept_lockout: bool) -> Outcome:
    """Undo a change, if the cluster is still as the change left it.

    $ kctl journal undo 2026-11-21T14:03:11Z-5f2c1a
    $ kctl journal undo 5f2c1a --yes
    """
    from commands.access.acl import guarded_undo
    from kctl.changes.journal import Journal
    from kctl.changes.undo import plan_undo

    entry = Journal().find_sealed(id)
    how = how._replace(kafka_version=how.kafka_version or entry.kafka_version)
    with cluster_of(frame, entry) as cluster:
        plan = plan_undo(entry, changing.course_of(frame, how, cluster), accepted=accept_loss)
        plan = guarded_undo(cluster, plan, accepted=accept_lockout)
        return changing.carry_out(frame, how, cluster, plan)


@command("resume", status=changing.CHANGE_STATUS)
@changing.changes(timeout=600)
@click.argument("id", shell_complete=completing.journal_entries)
@changing.ACCEPT_UNCLEAN
def resume(frame: Frame, how: changing.How, id: str, accept_loss: bool) -> Outcome:
    """Resume an interrupted change.

    $ kctl journal resume 2026-11-21T14:03:11Z-5f2c1a
    """
    from kctl.changes import apply
    from kctl.changes.entry import change_row
    from kctl.changes.journal import Journal

    entry = Journal().find_sealed(id)
    how = how._replace(kafka_version=how.kafka_version or entry.kafka_version)
    if how.dry_run:
        return Outcome(changing.journal_rows(entry), text=changing.journal_text)
    if not how.yes and not sys.stdin.isatty():
        raise changing.no_terminal()
    if not how.yes and not click.confirm(f"{visible(entry.title)}: continue?", err=True):
        raise Refused("nothing was written", "answer y to continue")
    with cluster_of(frame, entry) as cluster:
        action = partial(apply.resume, accepted=accept_loss)
        refused = changing.run(frame, how, cluster, entry, action)
    return Outcome([*refused, change_row(entry)], text=changing.change_text)


def cluster_of(frame: Frame, entry: Entry) -> Cluster:
    """The cluster of a change: the one named now, else the one in the entry.

    Raises Refused if the one named now is another.
    """
    if not (frame.context.zookeeper or frame.context.bootstrap_server):
        frame.reach(entry.backend, entry.location)
    cluster = open_for_change(frame)
    cluster_id = cluster.read_state((), partition_states=False, recent=True).cluster_id
    if entry.cluster_id is not None and cluster_id != entry.cluster_id:
        cluster.close()
        raise Refused(
            f"change {entry.id} was made on cluster {entry.cluster_id}, and this is {cluster_id}",
            "connect to the cluster where it was made",
        )
    return cluster
