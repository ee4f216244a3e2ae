"""The reference of the site, from the tables that the program itself reads: commands, rows, findings, tables, API."""

import inspect
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click

import kctl
from commands.catalogue import COMMANDS, Group, Verb
from commands.cli.frame import GlobalOption, KctlCommand
from commands.main import EXIT_STATUS, load
from kctl.audit.tables import TABLES
from kctl.findings import SUBJECTS, FindingType
from kctl.rows import RowType, row_type
from kctl.scan.tables import SCHEMAS

ROOT = Path(__file__).parents[2]
SQL = ROOT / "docs" / "sql"


def plain(text: str) -> str:
    """Text that Markdown shows as it stands, also in a table; code stays code."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    parts[::2] = [re.sub(r"([\\|*_<>\[\]{}])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def table(*heads: str, rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """A table; cells are Markdown."""
    yield f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}"
    yield from (f"| {' | '.join(cells)} |" for cells in rows)
    yield ""


def title_of(module: object) -> str:
    """The first sentence of a module, as a heading."""
    return (inspect.getdoc(module) or "").split("\n")[0].rstrip(".")


def body(text: str) -> Iterator[str]:
    """Help as Markdown; a block after \\b keeps its lines."""
    for block in text.replace("\x08\n", "\x08").split("\n\n"):
        yield (
            f"```text\n{inspect.cleandoc(block[1:])}\n```\n"
            if block.startswith("\x08")
            else f"{plain(block)}\n"
        )


# --- commands -----------------------------------------------------------------------------------------


def verbs_of(name: str, entry: Group | Verb) -> list[tuple[str, Verb]]:
    """Every command of a group in full, with its row of the catalogue."""
    return [*entry.commands(name).items()] if isinstance(entry, Group) else [(name, entry)]


def options(params: Iterable[click.Parameter], ctx: click.Context) -> Iterator[str]:
    """The table of options."""
    records = [p.get_help_record(ctx) for p in params if isinstance(p, click.Option)]
    rows = [(f"`{r[0]}`", plain(r[1])) for r in records if r]
    yield from table("Option", "Meaning", rows=rows) if rows else ()


def command_text(words: str, verb: Verb) -> Iterator[str]:
    """A command: help, usage, options, rows, exit status."""
    command = load(verb)
    assert isinstance(command, KctlCommand), words
    ctx = click.Context(command, info_name=f"kctl {words}")
    yield f"## kctl {words} {{ #{words.replace(' ', '-')} }}\n"
    yield from body(inspect.cleandoc(command.help or verb.help))
    yield f"```text\nkctl {words} {' '.join(command.collect_usage_pieces(ctx))}\n```\n"
    examples = "\n".join(command.examples)
    yield f"```sh\n{examples}\n```\n"
    yield from options((p for p in command.params if not isinstance(p, GlobalOption)), ctx)
    if verb.rows:
        yield f"Rows: {', '.join(row_link(name, '../rows/') for name in verb.rows)}\n"
    yield f"Exit status: {plain(command.status_text)}\n"


def command_page(name: str, entry: Group | Verb) -> Iterator[str]:
    """The commands of a group."""
    yield f"# kctl {name}\n\n{plain(entry.help)}\n"
    for words, verb in verbs_of(name, entry):
        yield from command_text(words, verb)


def commands_page() -> Iterator[str]:
    """All commands, and what they have in common."""
    from commands.main import root

    yield "# Commands\n"
    for name, entry in COMMANDS.items():
        yield f"## {name}\n\n{plain(entry.help)}\n"
        rows = (
            (f"[kctl {words}]({name}.md#{words.replace(' ', '-')})", plain(verb.help))
            for words, verb in verbs_of(name, entry)
        )
        yield from table("Command", "What it does", rows=rows)
    yield "## Options of every command\n"
    yield from options(root.params, click.Context(root, info_name="kctl"))
    yield f"{EXIT_STATUS}\n"


# --- rows, findings, tables, questions ------------------------------------------------------------------


def anchor(name: str) -> str:
    return name.lower().replace("_", "-")


def row_link(name: str, folder: str = "") -> str:
    """A link to the row type `MODULE.NAME`."""
    module, attribute = name.split(".")
    return f"[`{row_type(name).kind}`]({folder}{module}.md#{anchor(attribute)})"


def row_modules() -> Iterator[tuple[str, object]]:
    folder = Path(import_module("kctl.rows").__file__ or "").parent
    for file in sorted(folder.glob("[a-z]*.py")):
        yield file.stem, import_module(f"kctl.rows.{file.stem}")


def rows_page(module: object) -> Iterator[str]:
    """The kinds of rows of one subject."""
    yield f"# {title_of(module)}\n"
    for attribute, kind in vars(module).items():
        if isinstance(kind, RowType):
            yield f"## {kind.kind} {{ #{anchor(attribute)} }}\n\n{plain(kind.doc)}\n"
            rows = (
                (
                    f"`{name}`",
                    " or ".join([*field.types, *(["absent"] if field.is_optional else [])]) or "any",
                    plain(" ".join([*(f"`{choice}`" for choice in field.choices), field.doc])),
                )
                for name, field in kind.fields.items()
            )
            yield from table("Key", "Type", "What it holds", rows=rows)


def findings_page(subject: str) -> Iterator[str]:
    """The findings of one subject."""
    module = import_module(f"kctl.findings.{subject}")
    yield f"# {title_of(module)}\n"
    for one in vars(module).values():
        if isinstance(one, FindingType):
            yield f"## {one.code} {{ #{one.code} }}\n\n*{one.severity}*: {plain(re.sub(r'{[^}]*}', '…', one.sentence))}\n"
            yield f"{plain(one.meaning)}\n"
            yield f"**Cause.** {plain(one.cause)}\n"
            yield f"**What to do.** {plain(one.action)}\n"


def tables_page() -> Iterator[str]:
    """The tables of an audit, and those of a scan."""
    yield "# Tables\n\n`kctl audit run --out DIR` writes each as `DIR/TABLE/*.parquet`. Lists and objects are JSON text.\n"
    rows = ((f"`{name}`", row_link(row, "rows/"), plain(row_type(row).doc)) for name, row in TABLES.items())
    yield from table("Table", "Row", "A row is", rows=rows)
    yield "The scan's own tables, from every engine and from `kctl.open_segment`:\n"
    for name, schema in SCHEMAS.items():
        yield f"## {name} {{ #{name} }}\n"
        yield from table("Column", "Type", rows=((f"`{field.name}`", f"`{field.type}`") for field in schema))


def sql_page() -> Iterator[str]:
    """The questions of docs/sql."""
    yield "# Questions in SQL\n\nFor `kctl audit sql DIR QUERY`, for Spark, and for any reader of Parquet.\n"
    for file in sorted(SQL.glob("*.sql")):
        yield f"## {file.stem.replace('-', ' ').capitalize()}\n\n```sql\n{file.read_text('utf-8').strip()}\n```\n"


# --- API ----------------------------------------------------------------------------------------------


def signature(name: str, value: Any) -> str:
    """`name(arguments) -> result` as it is written."""
    said = str(inspect.signature(value)).replace("'", "")
    return f"```python\n{name}{re.sub(r'[(]self(, )?', '(', said)}\n```\n"


def api_page() -> Iterator[str]:
    """What `kctl.__all__` names."""
    yield f"# API\n\n{plain((kctl.__doc__ or '').split(chr(10) * 2)[-1])} [How to use it](../python.md).\n"
    for name in kctl.__all__:
        value = getattr(kctl, name)
        if name.startswith("_"):
            continue
        yield f"## kctl.{name} {{ #{anchor(name)} }}\n"
        if not inspect.isclass(value):
            yield signature(name, value)
        yield from body(inspect.getdoc(value) or "")
        for member, own in vars(value).items() if inspect.isclass(value) else ():
            if member.startswith("_") or not inspect.getdoc(own):
                continue
            yield f"### {name}.{member} {{ #{anchor(name)}-{anchor(member)} }}\n"
            yield signature(member, own) if callable(own) else "*property*\n"
            yield from body(inspect.getdoc(own) or "")


# --- all ----------------------------------------------------------------------------------------------


def contents() -> Iterator[tuple[str, str, Iterable[str]]]:
    """Section of the navigation, place on the site, and text of every page."""
    yield "Commands", "reference/commands/index.md", commands_page()
    for name, entry in COMMANDS.items():
        yield "Commands", f"reference/commands/{name}.md", command_page(name, entry)
    for name, module in row_modules():
        yield "Rows", f"reference/rows/{name}.md", rows_page(module)
    for subject in SUBJECTS:
        yield "Findings", f"reference/findings/{subject}.md", findings_page(subject)
    yield "", "reference/tables.md", tables_page()
    yield "", "reference/sql.md", sql_page()
    yield "", "reference/api.md", api_page()


def navigation() -> list[Any]:
    """The reference in the site's navigation; pages are named by their headings."""
    sections: dict[str, list[str]] = {}
    for section, place, _ in contents():
        sections.setdefault(section, []).append(place)
    return [{section: places} for section, places in sections.items() if section] + sections[""]


def pages() -> Iterator[tuple[str, str]]:
    """Place on the site and text of every page."""
    for _, place, lines in contents():
        yield place, "\n".join(lines)
