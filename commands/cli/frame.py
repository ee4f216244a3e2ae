"""The frame around every command: options accepted before the group and after the verb, and the exit status.

`@command` makes a click command whose function gets a `Frame` first and returns an `Outcome`, rows or nothing.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from commands.cli.leaving import Chunk, say, say_error
from commands.cli.options import TOKEN_ID, Duration, TokenId, with_store_timeout
from commands.cli.render import Outcome, Row, deliver, json_encoder
from commands.cli.selection import Conditions, Selection, keys_of
from kctl.errors import KctlError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from commands.cli.progress import Bar
    from kctl.model import Progress
    from kctl.settings import Context

COLORS = ("auto", "always", "never")
OUTPUTS = ("text", "json", "jsonl")


class ReaderGone(Exception):
    """The reader of standard output went away."""


class GlobalOption(click.Option):
    """An option that every command has, listed after its own."""


def context_names(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """The contexts of the configuration file, for shell completion."""
    from kctl.settings import contexts_of

    try:
        return [name for name in contexts_of() if name.startswith(begun)]
    except KctlError:  # says so when the command runs
        return []


def global_options(outputs: Sequence[str] = OUTPUTS) -> list[click.Parameter]:
    """The options of every command; unset is None, so that the verb's value wins over the root's."""
    return [
        GlobalOption(
            ["--context"], metavar="NAME", envvar="KCTL_CONTEXT", shell_complete=context_names,
            help="Use this cluster of the configuration file.",
        ),
        GlobalOption(
            ["--zookeeper"], metavar="HOSTS[/chroot]", envvar="KCTL_ZOOKEEPER", help="Connect to this ZooKeeper ensemble."
        ),
        GlobalOption(
            ["--bootstrap-server"], metavar="HOSTS", envvar="KCTL_BOOTSTRAP_SERVER",
            help="Connect to these brokers over Kafka's protocol.",
        ),
        GlobalOption(
            ["--command-config"], metavar="FILE", envvar="KCTL_COMMAND_CONFIG",
            help="Connect to brokers with these client properties of Kafka.",
        ),
        GlobalOption(
            ["--output"], type=click.Choice(outputs), envvar="KCTL_OUTPUT", help="Output format.  [default: text]"
        ),
        GlobalOption(
            ["--where", "rows_where"], type=Conditions(), multiple=True, metavar="KEY=VALUE",
            help="Print only rows that match; repeatable. Operators: = != > >= < <= and ~ (contains).",
        ),
        GlobalOption(
            ["--columns", "rows_columns"], metavar="A,B", callback=lambda _, __, value: value and tuple(value.split(",")),
            help="Print only these keys of each row.",
        ),
        GlobalOption(["--sort", "rows_sort"], metavar="KEY", help="Sort rows by this key; -KEY sorts in descending order."),
        GlobalOption(
            ["--color"], type=click.Choice(COLORS), envvar="KCTL_COLOR", help="When to use colors.  [default: auto]"
        ),
        GlobalOption(
            ["--local-time/--utc"], default=None, envvar="KCTL_LOCAL_TIME",
            help="Zone of times on a terminal: this machine's, or UTC.  [default: utc]",
        ),
        GlobalOption(
            ["-v", "--verbose"], is_flag=True, default=None, envvar="KCTL_VERBOSE", help="Print more detail."
        ),
        GlobalOption(
            ["-q", "--quiet"], is_flag=True, default=None, envvar="KCTL_QUIET", help="Suppress notes and progress."
        ),
    ]  # fmt: skip


SELECTING = {"rows_where": "where", "rows_columns": "columns", "rows_sort": "sort"}
GLOBAL_NAMES = (
    *(
        "context",
        "zookeeper",
        "bootstrap_server",
        "command_config",
        "output",
        "color",
        "local_time",
        "verbose",
        "quiet",
    ),
    *SELECTING,
)


def remember_globals(ctx: click.Context, /, **values: Any) -> None:
    """Keep what was given before the group, for the verb to take over."""
    ctx.obj = {name: value for name, value in values.items() if value is not None}


class Frame:
    """One run of a command: output format, settings, progress and exit status."""

    def __init__(
        self,
        values: dict[str, Any],
        origins: dict[str, str] | None = None,
        make_room: Callable[[], None] | None = None,
    ) -> None:
        self.given = values
        self.origins = origins or {}
        self.output: str = values.get("output") or "text"
        self.color: str = values.get("color") or "auto"
        if self.color == "auto" and (os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"):
            self.color = "never"
        if "local_time" in values:  # read where a time is written
            os.environ["KCTL_LOCAL_TIME"] = "1" if values["local_time"] else ""
        self.verbose = bool(values.get("verbose"))
        self.quiet = bool(values.get("quiet"))
        self.status = 0
        self.acks = "all"
        """How producers wrote, as given on the command line."""
        self._make_room = make_room
        self._bar: Bar | None = None
        self._context: Context | None = None

    @property
    def context(self) -> Context:
        """The settings of the context in force, with flags and environment on top."""
        if self._context is None:
            from kctl.settings import read_context

            self._context = read_context(self.given, warn=self.note)
        return self._context

    @property
    def names_brokers(self) -> bool:
        """Whether brokers were named for this run: by their addresses, or by client properties that have them."""
        return bool(
            self.given.get("bootstrap_server")
            or (self.given.get("command_config") and self.context.bootstrap_server)
        )

    def reach(self, backend: str, location: str) -> None:
        """Work on this cluster, as if it had been named."""
        self.given["zookeeper" if backend == "zookeeper" else "bootstrap_server"] = location
        self._context = None

    def raise_status(self, status: int) -> None:
        """End with this status unless one that says more is already known: 2 over 4 over 5 over 3 over 0."""
        order = (0, 3, 5, 4, 2)
        self.status = max(self.status, status, key=order.index)

    def checked(self, row: Row) -> Row:
        """The row; the exit status becomes 5 for one that means that something is wrong, 3 for one that was not judged."""
        from kctl.rows import is_open, is_wrong

        if is_wrong(row, self.acks):
            self.raise_status(5)
        elif is_open(row):
            self.raise_status(3)
        return row

    def checked_rows(self, outcome: Outcome) -> Iterator[Row]:
        """The rows of the outcome, checked; the outcome's note in text output when there is none."""
        is_empty = True
        for row in outcome.rows:
            is_empty = False
            yield self.checked(row)
        if is_empty and outcome.nothing and self.output == "text" and not self.status:
            self.note(outcome.nothing)

    def json_lines(self, items: Iterable[Chunk | Row]) -> Iterator[Chunk]:
        """Encoded lines as they are, rows checked and encoded."""
        encode = json_encoder()
        for item in items:
            yield encode(self.checked(item)) + b"\n" if isinstance(item, dict) else item

    def report(self, error: Exception) -> None:
        """Print an error and go on; the exit status remembers it."""
        self.make_room()
        say_error(error)
        self.raise_status(getattr(error, "exit_code", 3))

    def fail(self, message: str, hint: str) -> None:
        """Print what failed and what to do next, and go on."""
        self.report(KctlError(message, hint))

    def note(self, text: str) -> None:
        """Print a line on standard error, unless quiet."""
        if not self.quiet:
            self.make_room()
            say(f"kctl: {text}")

    def progress(self) -> Progress:
        """A progress bar with rate and time left on a terminal, nothing elsewhere."""
        from kctl.model import SILENT

        if self.quiet or not sys.stderr.isatty():
            return SILENT
        from commands.cli.progress import Bar

        self._bar = Bar(color=self.color != "never")
        return self._bar

    def make_room(self) -> None:
        """Erase the progress bar, or the previous output of a repeated command, before a line is written."""
        if self._make_room is not None:
            self._make_room()
        if self._bar is not None:
            self._bar.erase()

    def end_progress(self) -> None:
        """Remove the progress bar."""
        if self._bar is not None:
            self._bar.close()


class KctlCommand(click.Command):
    """A command with the global options, examples in its help, and rows as its result."""

    def __init__(
        self,
        *args: Any,
        status: str = "",
        every: str | None = None,
        paged: bool = False,
        has_metrics: bool = False,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        text, *examples = re.split(r"^\$ ", inspect.cleandoc(self.help or ""), flags=re.MULTILINE)
        self.help, self.examples = text.strip(), [line.strip() for line in examples]
        self.every = every
        self.paged = paged
        with_store_timeout(self.params)
        if every is not None:
            self.params.append(
                click.Option(
                    ["--every"], type=Duration(), metavar="DURATION", default=every or None, show_default=bool(every),
                    help="Refresh at this interval until q or Ctrl-C.",
                )
            )  # fmt: skip
        self.status_text = status or "0 done, nothing wrong · 3 failed · 5 something is wrong"
        self.params += global_options((*OUTPUTS, "openmetrics") if has_metrics else OUTPUTS)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, is_global in (("Options", False), ("Global options", True)):
            options = [p for p in self.get_params(ctx) if isinstance(p, click.Option)]
            records = [p.get_help_record(ctx) for p in options if isinstance(p, GlobalOption) is is_global]
            if any(records):
                with formatter.section(title):
                    formatter.write_dl([record for record in records if record])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text(f"Exit status: {self.status_text}")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Options; and ids of tokens, which may begin as options do."""
        ids = [param for param in self.params if isinstance(param.type, TokenId) and incomplete]
        proposed = [item for param in ids for item in param.shell_complete(ctx, incomplete)]
        return super().shell_complete(ctx, incomplete) + proposed

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        arguments = [param for param in self.params if isinstance(param, click.Argument)]
        if any(isinstance(argument.type, TokenId) for argument in arguments):
            args = with_token_ids_last(self.params, args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if not arguments:
                raise
            message = error.format_message().rstrip(".")  # in click's words, which may end in a question
            hint = "a name that begins with - goes behind --"
            message += f" {hint.capitalize()}" if message.endswith("?") else f"; {hint}"
            raise click.UsageError(message, ctx) from None

    def invoke(self, ctx: click.Context) -> int:
        values = {**(ctx.obj or {})}
        for name in GLOBAL_NAMES:
            value = ctx.params.pop(name, None)
            if value not in (None, ()):
                values[name] = value
        pause = ctx.params.pop("every", None)
        # A default of --every repeats the command on a terminal only.
        if not pause or (self.every and not sys.stdout.isatty() and _is_default(ctx, "every")):
            return self.once(ctx, Frame(values))
        from commands.cli.repeating import repeated

        is_text = values.get("output") in (None, "text")
        return repeated(lambda room: self.once(ctx, Frame(values, make_room=room)), pause, is_text=is_text)

    def once(self, ctx: click.Context, frame: Frame) -> int:
        """Run the command and deliver its rows; gives the exit status."""
        selection = Selection(
            **{field: frame.given[name] for name, field in SELECTING.items() if frame.given.get(name)}
        )
        assert self.callback is not None
        try:
            with ctx:
                result = ctx.invoke(self.callback, frame, **ctx.params)
                if result is not None:
                    outcome = result if isinstance(result, Outcome) else Outcome(result)
                    chosen = outcome._replace(rows=frame.checked_rows(outcome))
                    if any(selection):
                        words = ctx.command_path.split()[1:]
                        chosen = selection.of(chosen, keys_of(words), ctx.command_path, frame.note)
                    deliver(chosen, frame.output, frame.color, frame.make_room, paged=self.paged)
        except BrokenPipeError as error:
            raise ReaderGone from error  # click would end with 1, the status of a bug
        finally:
            frame.end_progress()  # also where an error or ^C is about to be told
        return frame.status


def with_token_ids_last(params: Iterable[click.Parameter], args: Sequence[str]) -> list[str]:
    """The words of a line with those behind `--` that have the form of a token's id and are no option's value."""
    taking = {
        name: option.nargs
        for option in params
        if isinstance(option, click.Option) and not option.is_flag and not option.count
        for name in option.opts
    }
    words, others, ids = iter(args), list[str](), list[str]()
    for word in words:
        if word == "--":
            return [*others, word, *ids, *words]
        if TOKEN_ID.fullmatch(word):
            ids.append(word)
            continue
        others.append(word)
        if word in taking:
            values = list(islice(words, taking[word]))
            others += values
            if len(values) < taking[word]:
                return others  # click says what is missing
    return [*others, "--", *ids]


def _is_default(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is click.core.ParameterSource.DEFAULT


Callback = Callable[..., Outcome | Iterable[dict[str, object]] | None]


def command(
    name: str,
    *,
    status: str = "",
    every: str | None = None,
    paged: bool = False,
    has_metrics: bool = False,
    **attributes: Any,
) -> Callable[[Callback], click.Command]:
    """Make a function a command: its docstring is the help, and what follows a `$` there an example.

    `every` gives it `--every`, with this as its default; the empty text is none. `paged` sends long text on a terminal
    through a pager: not where work goes on, or a question is asked, while rows come. `has_metrics`: its rows can be had as
    metrics (`commands.cli.openmetrics`).
    """
    return click.command(
        name,
        cls=KctlCommand,
        status=status,
        every=every,
        paged=paged,
        has_metrics=has_metrics,
        **attributes,
    )
