"""What every changing command shares: its options, the diff and the question, and carrying the plan out.

@command("create", examples="...", status=CHANGE_STATUS)
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
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from commands.change_rows import change_row, change_text, dry_run_text, refused_rows, write_rows
from commands.frame import Frame
from commands.render import Outcome, Page, Row
from kctl.errors import KctlError, NotFinished, Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kctl.changes.apply import Course
    from kctl.changes.entry import Entry
    from kctl.changes.plan import Plan
    from kctl.cluster.interface import Cluster

CHANGE_STATUS = (
    "0 done, or nothing to do · 2 a bad name or value · 3 unknown topic, no connection · "
    "4 refused, nothing was written · 5 written, but not finished within --timeout"
)
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class How(NamedTuple):
    """How a change is to be carried out, from the shared options. `timeout` is in seconds."""

    yes: bool
    dry_run: bool
    wait: bool
    timeout: float
    reason: str | None
    kafka_version: str | None
    command: str  # as typed, for the journal


class Duration(click.ParamType[float]):
    """Seconds, or a number with s, m, h or d."""

    name = "DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds."""
        text = str(value)
        number, unit = (text[:-1], UNITS[text[-1]]) if text[-1:] in UNITS else (text, 1)
        try:
            seconds = float(number) * unit
        except ValueError:
            self.fail(f"{value!r} is not a duration; write 90, 90s, 15m or 2h", param, ctx)
        if not 0 <= seconds < float("inf"):
            self.fail(f"{value!r} is not a duration; write 90, 90s, 15m or 2h", param, ctx)
        return seconds


def changes(*, timeout: float = 60, wait: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options of every change; the function gets them as `How`, after the frame."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(frame: Frame, /, **values: Any) -> Any:
            shared = {name: values.pop(name) for name in How.__annotations__ if name in values}
            return function(frame, How(command=typed_command(), **shared), **values)

        for option in reversed(_options(timeout, wait)):
            wrapped = option(wrapped)
        return wrapped

    return decorate


def _options(timeout: float, wait: bool) -> list[Callable[[Callable[..., Any]], Callable[..., Any]]]:
    return [
        click.option("--yes", is_flag=True, envvar="KCTL_YES", help="Do not ask."),
        click.option("--dry-run", is_flag=True, help="Show the plan and end."),
        click.option(
            "--wait/--no-wait", default=wait, show_default=True, help="End only when the brokers did it."
        ),
        click.option(
            "--timeout",
            type=Duration(),
            default=f"{timeout:g}s",
            show_default=True,
            help="How long to wait for that.",
        ),
        click.option("--reason", metavar="TEXT", envvar="KCTL_REASON", help="Why, for the journal."),
        click.option(
            "--kafka-version",
            metavar="VERSION",
            envvar="KCTL_KAFKA_VERSION",
            help="The oldest broker's version, where ZooKeeper does not show it.",
        ),
    ]


def typed_command() -> str:
    """The command line as typed, for the journal; secrets never stand in one."""
    import shlex

    context = click.get_current_context(silent=True)
    if os.path.basename(sys.argv[0]) == "kctl" or context is None:
        return shlex.join(["kctl", *sys.argv[1:]])
    return context.command_path


def carry_out(frame: Frame, how: How, cluster: Cluster, plan: Plan, rows: Iterable[Row] = ()) -> Outcome:
    """Show the plan, ask, journal, write, wait. Gives the `change` row after `rows` (shown with the plan).

    With nothing to do: no journal entry, status 0. With `--dry-run`: the plan's `write` rows. Refused (4) with
    no terminal and no `--yes`. Where the wait runs out the `change` row is still given, and the status is 5.
    """
    from kctl.changes.entry import new_entry

    if plan.is_empty:
        frame.note(f"nothing to do: {plan.title}")
        return Outcome(rows)
    if how.dry_run:
        _say_warnings(frame, plan)
        return Outcome([*rows, *write_rows(plan)], text=dry_run_text)
    state = cluster.read_state((), partition_states=False, recent=True)
    _confirm(frame, how, plan, frame.context.name or state.cluster_id or "yes", cluster.location)
    entry = new_entry(
        plan,
        command=how.command,
        reason=how.reason,
        cluster_id=state.cluster_id,
        backend=cluster.backend,
        location=cluster.location,
        kafka_version=how.kafka_version,
        undoes=str(plan.details["undoes"]) if "undoes" in plan.details else None,
    )
    return _finish(frame, how, cluster, entry, rows)


def _finish(frame: Frame, how: How, cluster: Cluster, entry: Entry, rows: Iterable[Row] = ()) -> Outcome:
    """Carry out an entry; gives its row, also where it is not finished in time."""
    from kctl.changes.apply import apply

    refused = run(frame, how, cluster, entry, apply)
    return Outcome([*rows, *refused, change_row(entry)], text=change_text)


def run(
    frame: Frame, how: How, cluster: Cluster, entry: Entry, action: Callable[[Entry, Course], None]
) -> list[Row]:
    """Apply or resume an entry; a row for each item that a broker refused.

    What is not finished (5) or was answered item by item is reported; everything else goes up.
    """
    try:
        action(entry, course_of(frame, how, cluster))
    except KctlError as error:
        if not error.items and not isinstance(error, NotFinished):
            raise
        frame.report(error)
        return list(refused_rows(error))
    return []


def course_of(frame: Frame, how: How, cluster: Cluster) -> Course:
    """What carrying out needs, from the options."""
    from commands.connecting import pinned
    from kctl.changes.apply import Course, deadline
    from kctl.changes.journal import Journal

    return Course(
        cluster=cluster,
        journal=Journal(),
        wait=how.wait,
        until=deadline(how.timeout),
        kafka_version=pinned(how.kafka_version),
        progress=frame.progress(),
        note=frame.note,
    )


def _confirm(frame: Frame, how: How, plan: Plan, name: str, location: str) -> None:
    """Show the plan and ask. Raises Refused where nobody can answer, or the answer is another."""
    _say_warnings(frame, plan)
    if how.yes:
        frame.note(plan.title)
        return
    if not sys.stdin.isatty():
        raise Refused(
            "a change needs an answer and there is no terminal to ask on; nothing was written", "say --yes"
        )
    page = Page(80, frame.color != "never" and sys.stderr.isatty())
    click.echo(page.style(f"{plan.title}  ({location})", "bold"), err=True)
    for line in dry_run_text(write_rows(plan), page):
        click.echo(line, err=True)
    answer = click.prompt(f"Type {name} to go on", err=True, default="", show_default=False)
    if answer != name:
        raise Refused(f"{answer!r} is not {name}; nothing was written")


def _say_warnings(frame: Frame, plan: Plan) -> None:
    for warning in plan.warnings:
        click.echo(f"kctl: warning: {frame.on_terminal(warning)}", err=True)
