"""The root command: groups loaded on demand from the catalogue, and failures as messages and exit status.

Exit status (scripts depend on it): 0 done and nothing wrong found, 1 a bug in kctl, 2 wrong usage,
3 failed (input, file or connection), 4 refused, 5 done and something wrong found or not finished,
130 interrupted, 141 the reader of the output went away.
"""

import gc
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from errno import EDQUOT, EFBIG, EIO, ENOSPC
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

import click

from commands.catalogue import COMMANDS, Group, Verb
from commands.cli.frame import ReaderGone, global_options, remember_globals
from commands.cli.leaving import say, say_error
from kctl.errors import KctlError, failure_of, file_error
from kctl.version import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

EXIT_STATUS = (
    "Exit status: 0 done, nothing wrong · 1 a bug in kctl · 2 wrong usage · 3 failed · 4 refused · "
    "5 something is wrong, or not finished · 130 interrupted · 141 output closed by its reader"
)

FULL = (ENOSPC, EDQUOT, EFBIG, EIO)
"""Errors of writing to a full or broken disk."""


def load(verb: Verb) -> click.Command:
    """The command that a row of the catalogue names."""
    module, name = verb.target.split(":")
    command = getattr(import_module(f"commands.{module}"), name)
    assert isinstance(command, click.Command), verb.target
    return command


class Listed(click.Group):
    """A group whose commands and short help come from a table; a command is imported when called."""

    def __init__(self, table: dict[str, Group | Verb] | dict[str, Verb], **attributes: object) -> None:
        super().__init__(**attributes)  # type: ignore[arg-type]  # click's own attributes, passed through
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.table.get(cmd_name)
        if isinstance(entry, Group):
            return Listed(entry.verbs, name=cmd_name, help=entry.help, epilog=EXIT_STATUS)
        return load(entry) if entry else None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Commands with their help whole, where click cuts it, and without importing each."""
        from click.shell_completion import CompletionItem

        names = [name for name in self.table if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [CompletionItem(name, help=self.table[name].help) for name in names] + options

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.table.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        entry = self.table.get(args[0])
        if isinstance(entry, Group) and entry.own:
            is_completing = ctx.resilient_parsing and not args[1:]  # a shell then shows the verbs
            if not is_completing and not {*args[1:2]} & {*entry.verbs}:
                refuse_misspelt(ctx, args, entry.verbs)
                return args[0], load(entry.own), args[1:]
        if ctx.parent is None and entry is None and not ctx.resilient_parsing and is_place(args[0]):
            inventory = self.table["inventory"]
            assert isinstance(inventory, Verb)
            return "inventory", load(inventory), args
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0], self.table, n=1)
            hint = f" Did you mean `{near[0]}`?" if near else f" See `{ctx.command_path} --help`."
            raise click.UsageError(error.message.rstrip(".") + "." + hint, ctx) from None


def refuse_misspelt(ctx: click.Context, args: Sequence[str], verbs: Iterable[str]) -> None:
    """Raise UsageError for a word behind a command that is nearly one of its verbs, and no file."""
    from difflib import get_close_matches

    word = args[1] if args[1:] else ""
    near = get_close_matches(word, list(verbs), n=1, cutoff=0.75)
    if near and not word.startswith("-") and not os.path.exists(word):
        raise click.UsageError(f"No such command {word!r}. Did you mean `{args[0]} {near[0]}`?", ctx)


def is_place(text: str) -> bool:
    """Whether the first word is no command but a folder, a file, or the URL of a store; be it misspelt."""
    return os.path.exists(text) or "/" in text


def print_version(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
    """Print the version and exit."""
    if is_given and not ctx.resilient_parsing:
        click.echo(f"kctl {__version__}")
        ctx.exit()


root = Listed(
    COMMANDS,
    name="kctl",
    callback=click.pass_context(remember_globals),
    params=[
        *global_options(),
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=print_version,
            help="Print the version.",
        ),
    ],
    help="Change Apache Kafka clusters safely, and prove from bytes on disk what happened to their data.",
    epilog=EXIT_STATUS,
    context_settings={"auto_envvar_prefix": "KCTL", "help_option_names": ["-h", "--help"]},
)


def complain(message: str) -> None:
    """One line on standard error."""
    say(f"kctl: {message}")


def first_step() -> list[str]:
    """What lies in the working folder, and the command to begin with; nothing where it is no evidence."""
    from pathlib import Path

    from formats.words import counted
    from kctl.evidence.glance import glance

    contents = glance(Path())
    if not contents.partitions and not contents.logs:
        return []
    more = "" if contents.is_whole else "at least "
    descriptions = [
        f"{more}{counted(contents.segments, 'segment')} of {counted(contents.partitions, 'partition folder')}"
    ]
    logs = [f"broker logs in {counted(contents.logs, 'folder')}"] if contents.logs else []
    if not contents.partitions:
        descriptions, command = logs, "kctl state-log timeline ."
    elif contents.logs or contents.partitions > 1:
        descriptions, command = descriptions + logs, "kctl audit run . --out ../report"
    else:
        command = "kctl segment verify ."
    return [
        f"kctl: this folder holds {' and '.join(descriptions)}",
        f"next     {command}",
        "`kctl .` lists what is here, `kctl --help` all commands",
    ]


def could_not(error: OSError) -> int:
    """Print which file failed, or that the output's disk is full; gives the exit status."""
    if error.filename is None:
        # Only standard output is written without a name. Buffered output would fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    place = "standard output" if error.filename is None else os.fsdecode(error.filename)
    say_error(file_error(place, error))
    return 3


def stand_in_for_closed_streams() -> bool:
    """Open the null device where a standard stream is closed, so that no file gets its number; true if stdout was."""
    closed = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
    for name in closed:
        number = os.open(os.devnull, os.O_RDWR)  # the lowest that is free
        setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", encoding="utf-8"))
    return "stdout" in closed


def main(args: Sequence[str] | None = None) -> int:
    """Run kctl and give its exit status."""
    try:
        status = root.main(args=None if args is None else list(args), prog_name="kctl", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        if error.ctx and error.ctx.command is root and (proposal := first_step()):
            for line in proposal:
                say(line)
            return 2
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        return 2
    except click.UsageError as error:
        where = (
            f" (see `{error.ctx.command_path} --help`)" if error.ctx and "See `" not in error.message else ""
        )
        one_line = " ".join(error.format_message().split())  # click lists choices below each other
        complain(one_line.rstrip(".") + where)
        return 2
    except click.ClickException as error:
        complain(error.format_message())
        return 3
    except KctlError as error:
        say_error(error)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        complain("interrupted")
        return 130
    except (ReaderGone, BrokenPipeError, SystemExit):  # click leaves so where nobody reads the help
        # Buffered output cannot be written any more; without this the interpreter prints an error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except Exception as error:
        # Python before 3.12 makes a RuntimeError of an interrupt that comes as a class is made, in an import.
        if isinstance(error.__cause__, KeyboardInterrupt):
            complain("interrupted")
            return 130
        if isinstance(error, OSError) and (error.filename is not None or error.errno in FULL):
            return could_not(error)
        if failure := failure_of(error):
            if os.environ.get("KCTL_DEBUG"):
                from traceback import format_exception

                for line in "".join(format_exception(error)).splitlines():
                    say(line)
            say_error(failure)
            return failure.exit_code
        if os.environ.get("KCTL_DEBUG"):
            raise
        complain(
            f"a bug in kctl: {type(error).__name__}: {error}; please report it with what KCTL_DEBUG=1 prints"
        )
        return 1


class AsImported:
    """What is done as a library is imported."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Let every import pass but that of pandas; Spark Connect needs it."""
        if name == "numpy":
            keep_freed_memory()
        # pyarrow imports it wherever it is installed, to see that no value is one of its own: 45 MB, 0.4 s a process.
        if name == "pandas" and "pyspark" not in sys.modules:
            raise ModuleNotFoundError("kctl goes without pandas", name=name)


LARGEST_KEPT = 32 << 20  # bytes; the most that glibc takes from its heap
MOST_KEPT = 256 << 20


def keep_freed_memory() -> None:
    """Let glibc take arrays of some megabytes from memory that was freed, and not each from the kernel, page by page."""
    import ctypes  # numpy imports it too

    # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of <malloc.h>; other C libraries have no such function.
    with suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(-1, MOST_KEPT)
        mallopt(-3, LARGEST_KEPT)


def run() -> NoReturn:
    """The entry point."""
    # numpy's linear algebra, which is not used, would start a thread for each core at import.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.meta_path.insert(0, AsImported)
    if stand_in_for_closed_streams():
        complain("standard output is closed")
        sys.exit(3)
    status = main()
    if "kctl.stores.file_systems" in sys.modules:
        from kctl.stores.file_systems import leave_if_asking

        leave_if_asking(status)
    if "duckdb" not in sys.modules:  # which tells at exit of what it finds uncollected
        gc.freeze()  # saves two collections at exit: some 40 ms after a large import
    sys.exit(status)
