"""The frame around every command: options accepted before the group and after the verb, and the exit status.

`@command` makes a click command whose function gets a `Frame` first and returns an `Outcome`, or rows, or
nothing; the rows are rendered here and nowhere else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from commands.render import Outcome, deliver, visible

if TYPE_CHECKING:
    from commands.progress import Bar
    from kctl.model import Progress
    from kctl.settings import Context

COLORS = ("auto", "always", "never")
OUTPUTS = ("text", "json", "jsonl")


class ReaderGone(Exception):
    """The reader of standard output went away."""


class GlobalOption(click.Option):
    """An option that every command has, listed after its own."""


def context_names(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """The contexts of the settings file, for a shell to complete."""
    from kctl.errors import KctlError
    from kctl.settings import contexts_of

    try:
        return [name for name in contexts_of() if name.startswith(begun)]
    except KctlError:  # says so when the command runs
        return []


def global_options() -> list[click.Parameter]:
    """The options of every command; unset is None, so that the verb's value wins over the root's."""
    return [
        GlobalOption(
            ["--context"],
            metavar="NAME",
            envvar="KCTL_CONTEXT",
            shell_complete=context_names,
            help="Settings from the configuration file.",
        ),
        GlobalOption(
            ["--zookeeper"], metavar="HOSTS[/chroot]", envvar="KCTL_ZOOKEEPER", help="The ZooKeeper ensemble."
        ),
        GlobalOption(
            ["--bootstrap-server"],
            metavar="HOSTS",
            envvar="KCTL_BOOTSTRAP_SERVER",
            help="Brokers, to work over Kafka's Admin protocol.",
        ),
        GlobalOption(
            ["--output"],
            type=click.Choice(OUTPUTS),
            envvar="KCTL_OUTPUT",
            help="Form of the rows.  [default: text]",
        ),
        GlobalOption(
            ["--color"],
            type=click.Choice(COLORS),
            envvar="KCTL_COLOR",
            help="When to colour.  [default: auto]",
        ),
        GlobalOption(
            ["-v", "--verbose"], is_flag=True, default=None, envvar="KCTL_VERBOSE", help="Say more."
        ),
        GlobalOption(
            ["-q", "--quiet"], is_flag=True, default=None, envvar="KCTL_QUIET", help="No notes, no progress."
        ),
    ]


GLOBAL_NAMES = ("context", "zookeeper", "bootstrap_server", "output", "color", "verbose", "quiet")


def remember_globals(ctx: click.Context, /, **values: Any) -> None:
    """Keep what was given before the group, for the verb to take over."""
    ctx.obj = {name: value for name, value in values.items() if value is not None}


class Frame:
    """What surrounds one run of a command: output form, settings, progress, and how it will end."""

    def __init__(self, values: dict[str, Any], origins: dict[str, str] | None = None) -> None:
        self.given = values
        self.origins = origins or {}
        self.output: str = values.get("output") or "text"
        self.color: str = values.get("color") or "auto"
        if self.color == "auto" and (os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"):
            self.color = "never"
        self.verbose = bool(values.get("verbose"))
        self.quiet = bool(values.get("quiet"))
        self.status = 0
        self._bar: Bar | None = None
        self._context: Context | None = None

    @property
    def context(self) -> Context:
        """The settings of the context in force, with flags and environment on top."""
        if self._context is None:
            from kctl.settings import read_context

            self._context = read_context(self.given, warn=self.note)
        return self._context

    def reach(self, backend: str, location: str) -> None:
        """Take this cluster where none was named."""
        self.given["zookeeper" if backend == "zookeeper" else "bootstrap_server"] = location
        self._context = None

    def raise_status(self, status: int) -> None:
        """End with this status unless something worse is already known (2, 3 and 4 over 5 over 0)."""
        order = (0, 5, 4, 3, 2)
        self.status = max(self.status, status, key=order.index)

    def seen(self, row: dict[str, object]) -> dict[str, object]:
        """The row, after it raised the status where it means that something is wrong."""
        from kctl.rows.wrong import WRONG

        wrong = WRONG.get(str(row["kind"]))
        if wrong and wrong(row):
            self.raise_status(5)
        return row

    def report(self, error: Exception) -> None:
        """One line about something that could not be done, while the rest goes on; the exit status remembers it."""
        self.make_room()
        click.echo(f"kctl: {self.on_terminal(str(error))}", err=True)
        self.raise_status(getattr(error, "exit_code", 3))

    def note(self, text: str) -> None:
        """One line on standard error, unless quiet."""
        if not self.quiet:
            self.make_room()
            click.echo(f"kctl: {self.on_terminal(text)}", err=True)

    @staticmethod
    def on_terminal(text: str) -> str:
        """The text with control characters shown as such where a terminal would obey them."""
        return visible(text) if sys.stderr.isatty() else text

    def progress(self) -> Progress:
        """A bar with rate and time left on a terminal, nothing elsewhere."""
        from kctl.model import SILENT

        if self.quiet or not sys.stderr.isatty():
            return SILENT
        from commands.progress import Bar

        self._bar = Bar(color=self.color != "never")
        return self._bar

    def make_room(self) -> None:
        """Take the bar off its line, which is about to be written on; it comes back below."""
        if self._bar is not None:
            self._bar.erase()

    def end_progress(self) -> None:
        """Take the bar away for good."""
        if self._bar is not None:
            self._bar.close()


class KctlCommand(click.Command):
    """A command with the global options, examples in its help, and rows as its result."""

    def __init__(self, *args: Any, examples: str = "", status: str = "", **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.examples = examples.strip()
        self.status_text = status or "0 done, nothing wrong · 3 could not · 5 something is wrong"
        self.params += global_options()

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples.splitlines():
                    formatter.write(f"{'':>{formatter.current_indent}}{line.strip()}".rstrip() + "\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, wanted in (("Options", False), ("Global options", True)):
            listed = [
                p.get_help_record(ctx)
                for p in self.get_params(ctx)
                if isinstance(p, click.Option) and isinstance(p, GlobalOption) is wanted
            ]
            rows = [row for row in listed if row]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text(f"Exit status: {self.status_text}")

    def invoke(self, ctx: click.Context) -> int:
        values = {**(ctx.obj or {})}
        for name in GLOBAL_NAMES:
            value = ctx.params.pop(name, None)
            if value is not None:
                values[name] = value
        frame = Frame(values)
        assert self.callback is not None
        try:
            with ctx:
                result = ctx.invoke(self.callback, frame, **ctx.params)
                if result is not None:
                    deliver(frame, result if isinstance(result, Outcome) else Outcome(result))
        except BrokenPipeError as error:
            raise ReaderGone from error  # click would end with 1, the status of a bug
        finally:
            frame.end_progress()  # also where an error or ^C is about to be told
        return frame.status


Callback = Callable[..., Outcome | Iterable[dict[str, object]] | None]


def command(
    name: str, *, examples: str, status: str = "", **attributes: Any
) -> Callable[[Callback], click.Command]:
    """Make a function a command: its docstring is the help, `examples` are shown line by line."""
    return click.command(name, cls=KctlCommand, examples=examples, status=status, **attributes)
