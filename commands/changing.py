"""What every changing command shares: its options, the diff and the question, and carrying the plan out.

@command("create", examples="...", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("topic")
def create(frame: Frame, how: How, topic: str) -> Outcome:
    with open_cluster(frame, writing=True) as cluster:
        plan = plan_creation(cluster, ...)
        return carry_out(frame, how, cluster, plan)
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from commands.frame import Frame
from commands.render import Outcome, Row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kctl.changes.plan import Plan
    from kctl.cluster.interface import Cluster

CHANGE_STATUS = (
    "0 done, or nothing to do · 2 a bad name or value · 3 unknown topic, no connection · "
    "4 refused, nothing was written · 5 written, but not finished within --timeout"
)
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
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
            default=timeout,
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
    no terminal and no `--yes`. Status 5 through NotFinished where the wait ran out.
    """
    raise NotImplementedError
