"""Man pages from the command tree, in plain roff: a page for each group, which names each of its verbs under NAME.

`python -m docs.making.man PAGES COMPLETIONS` writes them, and the completion scripts; a test compares what is committed
with the commands.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from commands.about.completion import FILES as COMPLETIONS
from commands.about.completion import script
from commands.catalogue import COMMANDS, Group, Verb
from commands.cli.frame import GlobalOption, KctlCommand
from commands.main import EXIT_STATUS, load, root
from kctl.version import __date__, __version__

FILES = """\
.TP
.I ~/.config/kctl/config.toml
Contexts: named clusters with their addresses and credentials (\\fBKCTL_CONFIG\\fR: another file).
.TP
.I ~/.local/state/kctl/journal
The journal of changes (\\fBKCTL_JOURNAL\\fR: another folder)."""


def escape(text: str) -> str:
    """Text that roff prints as it stands."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in text.split("\n"))


def paragraphs(text: str) -> Iterator[str]:
    """Help text as roff; a block after \\b keeps its lines."""
    for index, block in enumerate(text.replace("\x08\n", "\x08").split("\n\n")):
        if index:
            yield ".PP"
        if block.startswith("\x08"):
            yield f".nf\n{escape(block[1:])}\n.fi"
        else:
            yield escape(" ".join(block.split()))


def option_lines(options: Sequence[click.Option], ctx: click.Context) -> Iterator[str]:
    """A tagged paragraph an option."""
    for option in options:
        record = option.get_help_record(ctx)
        if record:
            yield f".TP\n\\fB{escape(record[0])}\\fR\n{escape(' '.join(record[1].split()))}"


def heading(names: Sequence[str], title: str) -> list[str]:
    """The first lines of a page; `man` finds it by its file's name, and by the others when `mandb` has read them."""
    return [
        f'.TH "{names[0].upper()}" "1" "{__date__}" "kctl {__version__}"',
        ".ad l",  # ragged right: names of options and values are long, and stretched lines hard to read
        ".SH NAME",
        f"{escape(', '.join(names))} \\- {escape(title.rstrip('.'))}",
    ]


def page_of_commands(page: str, text: str, commands: dict[str, Verb]) -> str:
    """The page of a group, or of one command that is in none."""
    synopsis, described = [], []
    for words, verb in commands.items():
        command = load(verb)
        assert isinstance(command, KctlCommand), words
        ctx = click.Context(command, info_name=words)
        own = [p for p in command.params if isinstance(p, click.Option) and not isinstance(p, GlobalOption)]
        synopsis += [f".B {escape(words)}\n{escape(' '.join(command.collect_usage_pieces(ctx)))}", ".br"]
        described += [f".SS {escape(words)}", *paragraphs((command.help or "").strip("\n"))]
        described += [*option_lines(own, ctx), ".PP", "Examples:", ".PP", ".nf"]
        described += [escape("\n".join(command.examples)), ".fi", ".PP"]
        described += [f"Exit status: {escape(command.status_text)}"]
    names = list(dict.fromkeys([page, *(words.replace(" ", "-") for words in commands)]))
    out = [*heading(names, text), ".SH SYNOPSIS", *synopsis[:-1], ".SH DESCRIPTION", *described]
    return "\n".join([*out, ".SH SEE ALSO", ".BR kctl (1)"]) + "\n"


def page_of_root() -> str:
    """The page that lists all commands."""
    ctx = click.Context(root, info_name="kctl")
    out = [*heading(["kctl"], root.help or ""), ".SH SYNOPSIS", ".B kctl\n[OPTIONS] COMMAND [ARGS]..."]
    out += [".SH DESCRIPTION", escape(root.help or ""), ".SH COMMANDS"]
    for name, entry in COMMANDS.items():
        verbs = entry.commands(name).items() if isinstance(entry, Group) else ()
        out.append(f".SS {escape(f'kctl-{name}(1)')}\n{escape(entry.help)}")
        out += [f".TP\n.B {escape(f'kctl {words}')}\n{escape(row.help)}" for words, row in verbs]
    options = [p for p in root.params if isinstance(p, click.Option)]
    out += [".SH OPTIONS", *option_lines(options, ctx)]
    out += [
        ".SH ENVIRONMENT",
        "Every option can be set by a variable: global options as \\fBKCTL_OUTPUT\\fR,",
        "options of a command as \\fBKCTL_SEGMENT_VERIFY_LEVEL\\fR.",
    ]
    out += [".SH EXIT STATUS", escape(EXIT_STATUS.partition(": ")[2]), ".SH FILES", FILES]
    return "\n".join(out) + "\n"


def pages() -> Iterator[tuple[str, str]]:
    """File name and text of every page."""
    yield "kctl.1", page_of_root()
    for name, entry in COMMANDS.items():
        page = f"kctl-{name}"
        verbs = entry.commands(name) if isinstance(entry, Group) else {name: entry}
        commands = {f"kctl {words}": row for words, row in verbs.items()}
        yield f"{page}.1", page_of_commands(page, entry.help, commands)


def write(folder: Path) -> None:
    """Write every page into the folder and delete those of former commands."""
    texts = dict(pages())
    for old in folder.glob("*.1"):
        if old.name not in texts:
            old.unlink()
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="utf-8")


def write_completions(folder: Path) -> None:
    """Write the completion script of each shell."""
    for shell, file in COMPLETIONS.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(script(shell), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
    write_completions(Path(sys.argv[2]))
