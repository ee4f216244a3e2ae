"""Man pages from the command tree: one page for each command, in plain roff.

`python -m commands.about.man PAGES COMPLETIONS` writes them, and the completion scripts; a test compares what is committed
with the commands.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from commands.about.completion import FILES as COMPLETIONS
from commands.about.completion import script
from commands.catalogue import COMMANDS, Group
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


def heading(name: str, title: str) -> list[str]:
    """The first lines of a page."""
    return [
        f'.TH "{name.upper().replace(" ", "-")}" "1" "{__date__}" "kctl {__version__}" "kctl manual"',
        ".ad l",  # ragged right: names of options and values are long, and stretched lines hard to read
        ".SH NAME",
        f"{escape(name.replace(' ', '-'))} \\- {escape(title.rstrip('.'))}",
    ]


def page_of_command(words: list[str], entry: KctlCommand) -> str:
    """The page of one command."""
    name = " ".join(["kctl", *words])
    ctx = click.Context(entry, info_name=name)
    text = entry.help or ""
    title, _, rest = text.partition("\n")
    own = [p for p in entry.params if isinstance(p, click.Option) and not isinstance(p, GlobalOption)]
    shared = [p for p in entry.params if isinstance(p, GlobalOption)]
    usage = " ".join(entry.collect_usage_pieces(ctx))
    out = [*heading(name, title), ".SH SYNOPSIS", f".B {escape(name)}\n{escape(usage)}"]
    out += [".SH DESCRIPTION", escape(title)]
    if rest.strip():
        out += [".PP", *paragraphs(rest.strip("\n"))]
    if own:
        out += [".SH OPTIONS", *option_lines(own, ctx)]
    # Said once, in the page of all: ninety pages would repeat it.
    names = ", ".join(f"\\fB{escape(option.opts[-1])}\\fR" for option in shared)
    out += [".SH GLOBAL OPTIONS", f"{names}: described, with the files that kctl uses, in", ".BR kctl (1)."]
    out += [
        ".SH EXAMPLES",
        ".nf",
        escape("\n".join(line.strip() for line in entry.examples.splitlines())),
        ".fi",
    ]
    out += [".SH EXIT STATUS", escape(entry.status_text), ".SH SEE ALSO", *see_also(words)]
    return "\n".join(out) + "\n"


def see_also(words: list[str]) -> Iterator[str]:
    """The other pages of the group, then the page of all."""
    group = COMMANDS[words[0]]
    for verb in group.verbs if isinstance(group, Group) else ():
        if verb != words[-1]:
            yield f".BR {escape(f'kctl-{words[0]}-{verb}')} (1),"
    yield ".BR kctl (1)"


def page_of_root() -> str:
    """The page that lists all commands."""
    ctx = click.Context(root, info_name="kctl")
    out = [*heading("kctl", root.help or ""), ".SH SYNOPSIS", ".B kctl\n[OPTIONS] COMMAND [ARGS]..."]
    out += [".SH DESCRIPTION", escape(root.help or ""), ".SH COMMANDS"]
    for name, entry in COMMANDS.items():
        verbs = entry.verbs.items() if isinstance(entry, Group) else ()
        page = name if isinstance(entry, Group) else f"kctl-{name}(1)"
        out.append(f".SS {escape(page)}\n{escape(entry.help)}")
        out += [f".TP\n.BR {escape(f'kctl-{name}-{verb}')} (1)\n{escape(row.help)}" for verb, row in verbs]
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
        verbs = (
            [([name, verb], row) for verb, row in entry.verbs.items()]
            if isinstance(entry, Group)
            else [([name], entry)]
        )
        for words, row in verbs:
            command = load(row)
            assert isinstance(command, KctlCommand), words
            yield f"kctl-{'-'.join(words)}.1", page_of_command(words, command)


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
