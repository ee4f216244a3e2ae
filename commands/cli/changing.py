"""What every changing command shares: its options, showing and confirming a plan, and carrying it out.

@command("create", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("topic")
def create(frame: Frame, how: How, topic: str) -> Outcome:
    with open_for_change(frame) as cluster:
        plan = plan_creation(cluster, ...)
        return carry_out(frame, how, cluster, plan)
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from commands.cli.connecting import pinned
from commands.cli.frame import Frame
from commands.cli.leaving import say, visible
from commands.cli.options import KAFKA_VERSION, Decorator, Duration, as_one_value, flag, option
from commands.cli.render import Outcome, Page, Row, Text, aligned
from formats import bounded_json
from kctl.cluster.rights import MissingRight
from kctl.errors import KctlError, NotFinished, Refused
from kctl.model import values_by_path

if TYPE_CHECKING:
    from kctl.changes.apply import ChangeRun
    from kctl.changes.entry import Entry
    from kctl.changes.kinds.access import SetScram
    from kctl.changes.plan import Plan
    from kctl.cluster.intent import Write
    from kctl.cluster.interface import Cluster
    from kctl.cluster.versions import KafkaVersion

    Credentials = Callable[[SetScram], tuple[Write, ...]] | None


def dry_run_text(rows: Iterable[Row], page: Page, *, others: Text = aligned) -> Iterator[str]:
    """Rows of other kinds, then the writes of a plan as a diff, without its checks."""
    listed = list(rows)
    yield from others([row for row in listed if row["kind"] != "write"], page)
    stage: object = None
    for row in listed:
        if row["kind"] != "write" or row["action"] == "check":
            continue
        if row["stage"] != stage:
            stage = row["stage"]
            yield page.style(str(row["intent"]), "bold")
        yield from write_text(row, page)


def write_text(row: Row, page: Page) -> Iterator[str]:
    """A write and what it changes; of a request what it asks for, with the current values."""
    if row["action"] == "request":
        yield f"  {row['target']}"
        yield from _request_lines(row, page)
        return
    size = f", {row['size_in_bytes']:,} bytes" if row["size_in_bytes"] else ""
    yield f"  {row['target']}   {row['action']}{size}"
    yield from difference(row["before"], row["after"], page)


def _request_lines(row: Row, page: Page) -> Iterator[str]:
    """What a request says of itself; of one that this kctl does not know its values."""
    from kctl.wire.writes.requests import plain_lines
    from kctl.wire.writes.table import read_request

    before, after = (None if text is None else str(text) for text in (row["before"], row["after"]))
    try:
        lines = read_request(str(row["target"]), before, after).lines()
    except KctlError:
        values = bounded_json.loads(after or "{}")
        lines = (line for name, value in values.items() for line in plain_lines(name, value))
    for line in lines:
        was = "" if line.before is None else f"{page.style(line.before, 'dim')} -> "
        yield f"      {line.label}" + ("" if line.after is None else f"   {was}{line.after}")


def difference(before: object, after: object, page: Page) -> Iterator[str]:
    """What changes from one JSON to another, a line a value."""
    old, new = _flat(before), _flat(after)
    for key in sorted(old.keys() | new.keys(), key=lambda key: (len(key.split(".")), key)):
        was, becomes = old.get(key, "(none)"), new.get(key, "(none)")
        if was == becomes:
            continue
        if before:
            yield f"      {key or 'content'}   {page.style(was, 'dim')} -> {becomes}"
        else:
            yield f"      {key}   {becomes}"


def _flat(content: object) -> dict[str, str]:
    """The values of a JSON text by path, each as JSON; content that is not JSON under the empty path."""
    if not content:
        return {}
    try:
        document = bounded_json.loads(str(content))
    except ValueError:
        return {"": str(content)}

    return dict(values_by_path(document))


def change_text(rows: Iterable[Row], page: Page, *, others: Text = aligned) -> Iterator[str]:
    """Rows of other kinds, then a sentence about the change."""
    listed = list(rows)
    yield from others([row for row in listed if row["kind"] not in ("change", "refused")], page)
    for row in listed:
        if row["kind"] == "refused":
            reason = f": {row['reason']}" if row["reason"] else ""
            yield f"{row['what']}: {page.style(str(row['error']), 'error')}{reason}"
        elif row["kind"] == "change":
            done = "done" if row["finished"] else str(row["state"]).replace("_", " ")
            yield f"{row['title']}: {page.style(done, 'good' if row['finished'] else 'warning')}"
            if row["outcome"]:
                yield f"  {row['outcome']}"
            undo = f"; undo it with `kctl journal undo {row['id']}`" if row["state"] != "planned" else ""
            yield page.style(f"journal entry {row['id']}{undo}", "dim")


def journal_rows(entry: Entry) -> Iterator[Row]:
    """The change, its stages, and every write of them."""
    from kctl.changes.entry import change_row, write_rows
    from kctl.rows.changes import JOURNAL_ENTRY

    yield change_row(entry)
    for index, stage in enumerate(entry.stages):
        undo = [str(intent) for intent in stage.undo] or [stage.undo_refused]
        yield JOURNAL_ENTRY.of(
            stage, id=entry.id, stage=index, intent=str(stage.intent), writes=len(stage.writes), undo=undo
        )
    yield from write_rows(entry)


def journal_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Who, when and why, then each stage with its writes and how to undo it."""
    for row in rows:
        if row["kind"] == "change":
            yield page.style(str(row["title"]), "bold")
            reason = f": {row['reason']}" if row["reason"] else ""
            yield f"  {row['state']}; {row['time']} by {row['who']}{reason}"
            yield f"  {row['command']}"
            if row["outcome"]:
                yield f"  {row['outcome']}"
        elif row["kind"] == "change_stage":
            undo = row["undo"]
            assert isinstance(undo, list)
            yield f"stage {row['stage']}: {row['intent']}, {row['state']}"
            yield page.style(f"  undo: {'; '.join(map(str, undo)) or 'nothing to do'}", "dim")
        elif row["action"] != "check":
            yield from write_text({**row, "size_in_bytes": None}, page)


ACCEPT_UNCLEAN = flag("--accept-loss", "Accept that a partition without a leader may elect an unclean one.")
SHOWN = 3  # stages of one state that are named
CHANGE_STATUS = (
    "0 done, or nothing to do · 2 a bad name or value · 3 unknown topic, no connection · "
    "4 refused, nothing was written · 5 written, but not finished within --timeout"
)


class How(NamedTuple):
    """How to carry out a change, from the shared options. `timeout` is in seconds."""

    yes: bool
    dry_run: bool
    wait: bool
    timeout: float
    reason: str | None
    kafka_version: str | None

    @property
    def version(self) -> KafkaVersion | None:
        """The pinned version."""
        return pinned(self.kafka_version)


def changes(*, timeout: float = 60) -> Decorator:
    """Add the options of every change; the function gets them as `How`, after the frame.

    A right that is missing before the change begins is said with what was written: nothing.
    """
    options = as_one_value(
        How,
        [
            flag("--yes", "Do not ask for confirmation.", envvar="KCTL_YES"),
            flag("--dry-run", "Show the plan and exit; change nothing."),
            option("--wait/--no-wait", "Wait until the brokers have finished.", default=True),
            option("--timeout", "Maximum wait.", type=Duration(), default=f"{timeout:g}s"),
            option("--reason TEXT", "Record this reason in the journal.", envvar="KCTL_REASON"),
            KAFKA_VERSION,
        ],
    )

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def refusing(*positional: Any, **values: Any) -> Any:
            try:
                return function(*positional, **values)
            except MissingRight as error:
                if "written" in error.message or "carried out" in error.message:
                    raise
                raise KctlError(f"{error.message}; nothing was written", error.hint) from error

        return options(refusing)

    return decorate


def typed_command() -> str:
    """The command line as typed, for the journal; no option takes a secret."""
    import shlex

    context = click.get_current_context(silent=True)
    if os.path.basename(sys.argv[0]) == "kctl" or context is None:
        return shlex.join(["kctl", *sys.argv[1:]])
    return context.command_path


def carry_out(
    frame: Frame,
    how: How,
    cluster: Cluster,
    plan: Plan,
    rows: Iterable[Row] = (),
    text: Text = aligned,
    *,
    shows_rows: bool = False,
    credentials: Credentials = None,
) -> Outcome:
    """Show the plan, ask, journal, write and wait; gives `rows` (shown with the plan as `text`), then the `change` row.

    With nothing to do: no journal entry, status 0. With `--dry-run`: the plan's `write` rows. Refused (4) with
    no terminal and no `--yes`, and where the plan needs an option that was not given. When the wait times out the `change` row still comes, and the status is 5.
    `shows_rows`: before the question stand the rows, in the place of the writes. `credentials` makes the writes that
    passwords are in.
    """
    from kctl.changes.apply import apply
    from kctl.changes.entry import change_row, new_entry, write_rows

    rows = list(rows)
    if plan.is_empty:
        frame.note(f"nothing to do: {plan.title}")
        return Outcome(rows, text=text)
    if how.dry_run:
        _show_warnings(frame, plan)
        return Outcome([*rows, *write_rows(plan)], text=partial(dry_run_text, others=text))
    if plan.needs:
        _show_warnings(frame, plan)
        frame.report(
            Refused(
                f"{plan.title} needs {plan.needs}; nothing was written",
                "add the option if you want this; --dry-run shows what would be lost",
            )
        )
        return Outcome(rows, text=text)
    state = cluster.read_state((), partition_states=False, recent=True)
    shown = partial(text, rows) if shows_rows else partial(dry_run_text, write_rows(plan))
    _confirm(frame, how, plan, frame.context.name or state.cluster_id or "yes", cluster.location, shown)
    entry = new_entry(
        plan,
        command=typed_command(),
        reason=how.reason,
        cluster_id=state.cluster_id,
        backend=cluster.backend,
        location=cluster.location,
        kafka_version=how.kafka_version,
        undoes=str(plan.details["undoes"]) if "undoes" in plan.details else None,
    )
    refused = run(frame, how, cluster, entry, apply, credentials)
    return Outcome([*rows, *refused, change_row(entry)], text=partial(change_text, others=text))


def run(
    frame: Frame,
    how: How,
    cluster: Cluster,
    entry: Entry,
    action: Callable[[Entry, ChangeRun], None],
    credentials: Credentials = None,
) -> list[Row]:
    """Apply or resume an entry; `credentials` makes the writes that passwords are in. Gives a row for each item that a broker refused.

    Reports a change that is not finished (5) or was answered item by item; raises other errors. An interrupt goes on
    after what stands and what goes on without kctl is said.
    """
    from kctl.rows.changes import REFUSED

    try:
        action(entry, course_of(frame, how, cluster, credentials))
    except KeyboardInterrupt:
        frame.make_room()
        for line in interrupted(entry):
            say(f"kctl: {line}")
        raise
    except KctlError as error:
        if not error.items and not isinstance(error, NotFinished):
            raise
        frame.report(error)
        return [REFUSED(**item._asdict()) for item in error.items]
    return []


STOOD_AT = (
    (("finished",), "done"),
    (("written",), "asked for, and the brokers go on with it"),
    (("writing",), "may have been written or not, which `journal resume` finds out"),
    (("planned", "refused"), "not begun"),
)


def interrupted(entry: Entry) -> Iterator[str]:
    """What a change that was interrupted leaves: each stage, and the commands that go on with it or take it back."""
    if entry.state == "planned" and not any(stage.may_be_written for stage in entry.stages):
        yield f"{entry.title}: nothing was written; journal entry {entry.id}"
        return
    for states, meaning in STOOD_AT:
        stages = [str(stage.intent) for stage in entry.stages if stage.state in states]
        if stages:
            more = f" and {len(stages) - SHOWN} more" if len(stages) > SHOWN else ""
            yield f"{meaning}: {'; '.join(stages[:SHOWN])}{more}"
    if not entry.is_finished:
        yield f"to go on: kctl journal resume {entry.id}"
    refused = [stage.undo_refused for stage in entry.stages if stage.may_be_written and stage.undo_refused]
    yield (
        f"it cannot be undone: {refused[0]}" if refused else f"to take it back: kctl journal undo {entry.id}"
    )


def course_of(frame: Frame, how: How, cluster: Cluster, credentials: Credentials = None) -> ChangeRun:
    """What `kctl.changes` needs to carry out a change, from the options."""
    from kctl.changes.apply import ChangeRun, deadline
    from kctl.changes.journal import Journal

    return ChangeRun(
        cluster=cluster,
        journal=Journal(),
        wait=how.wait,
        until=deadline(how.timeout),
        kafka_version=how.version,
        progress=frame.progress(),
        note=frame.note,
        credentials=credentials,
    )


def _confirm(
    frame: Frame, how: How, plan: Plan, name: str, location: str, shown: Callable[[Page], Iterable[str]]
) -> None:
    """Show the plan and ask. Raises Refused without a terminal, or for an answer other than the name."""
    _show_warnings(frame, plan)
    if how.yes:
        frame.note(plan.title)
        return
    if not sys.stdin.isatty():
        raise no_terminal()
    page = Page(80, frame.color != "never" and sys.stderr.isatty())
    say(page.style(f"{plan.title}  ({location})", "bold"))
    for line in shown(page):
        say(line)
    answer = click.prompt(f"Type {visible(name)} to go on", err=True, default="", show_default=False)
    if answer != name:
        raise Refused(
            f"{answer!r} is not {name}; nothing was written", f"run it again and type {name}, or give --yes"
        )


def no_terminal() -> Refused:
    """The error that nobody can confirm a change."""
    return Refused("a change needs confirmation and there is no terminal; nothing was written", "give --yes")


def _show_warnings(frame: Frame, plan: Plan) -> None:
    for warning in plan.warnings:
        say(f"kctl: warning: {warning}")
