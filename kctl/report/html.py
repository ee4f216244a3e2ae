"""Elements of HTML and SVG; everything that is not markup already is escaped, so that evidence cannot add markup."""

import re
from html import escape

from formats.words import in_unit
from kctl.model import REORDERING

# Characters that XML forbids, and those that reorder text.
UNPRINTABLE = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{REORDERING}\ud800-\udfff]")
NO_ID = re.compile(r"[^A-Za-z0-9._-]")
VOID = frozenset({"br", "col", "hr", "input", "meta"})


class Html(str):
    """Markup that is safe to use as it is."""

    __slots__ = ()


def safe(value: object) -> Html:
    """A value as markup: text is escaped, forbidden characters are shown by number, None is empty."""
    if isinstance(value, Html):
        return value
    if value is None:
        return Html("")
    shown = UNPRINTABLE.sub(
        lambda m: f"\\x{ord(m[0]):02x}" if ord(m[0]) < 256 else f"\\u{ord(m[0]):04x}", str(value)
    )
    return Html(escape(shown))


def element(name: str, *children: object, **attributes: object) -> Html:
    """An element. Attribute names lose a final underscore, other underscores become hyphens; None is left out."""
    attribute_text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{safe(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID:
        return Html(f"<{name}{attribute_text}>")
    return Html(f"<{name}{attribute_text}>{join(children)}</{name}>")


def join(parts: object) -> Html:
    assert isinstance(parts, (list, tuple))
    return Html("".join(safe(part) for part in parts))


def prose(text: str) -> Html:
    """A sentence as markup; words between backticks become code."""
    parts = text.split("`")
    return join([element("code", part) if index % 2 else part for index, part in enumerate(parts)])


def more_rows(amount: int, statement: str) -> Html:
    """How many more rows there are, and the command that lists them in the report's folder; empty without any."""
    if amount <= 0:
        return Html("")
    command = f'kctl audit sql . "{statement}"'
    return element("p", f"and {amount:,} more; in this folder: ", element("code", command), class_="quiet")


def slug(text: str) -> str:
    """Text as an id of the page: characters that a URL fragment cannot have become `_`."""
    return NO_ID.sub("_", text)


def link(anchor: str, *children: object) -> Html:
    return element("a", *children, href=f"#{anchor}")


def table(
    header: list[str],
    rows: list[list[object]],
    numeric: frozenset[int] = frozenset(),
    *,
    ids: list[str] | None = None,
    stacked: bool = False,
) -> Html:
    """A table that scrolls sideways on a narrow screen; the columns in `numeric` are right-aligned.

    `ids` are those of the rows. On a narrow screen a `stacked` table shows each row as a block, each cell with its title.
    """
    head = element(
        "tr",
        *(
            element("th", cell, scope="col", class_="n" if column in numeric else None)
            for column, cell in enumerate(header)
        ),
    )
    body = [
        element(
            "tr",
            *(
                element(
                    "td",
                    cell,
                    class_="n" if i in numeric else None,
                    data_title=header[i] if stacked else None,
                )
                for i, cell in enumerate(row)
            ),
            id=ids[number] if ids else None,
        )
        for number, row in enumerate(rows)
    ]
    html = element("table", element("thead", head), element("tbody", *body))
    return element("div", html, class_="scroll stacked" if stacked else "scroll")


def size(amount: int) -> str:
    """Bytes with a binary unit."""
    value, unit = in_unit(amount)
    return f"{value:,.0f} {unit}" if value >= 100 or unit == "B" else f"{value:,.1f} {unit}"
