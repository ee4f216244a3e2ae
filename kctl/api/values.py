"""Rows as values: attributes named after the row's keys, lists of them, and how a notebook shows both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from formats.words import counted
from kctl.errors import near_names

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

TIMES = ("time", "timestamp", "_at")
"""How the names of times end: ISO 8601 as text, or milliseconds since 1970."""
SHOWN, PICTURES = 100, 12  # rows of a kind, and partitions, that a notebook draws
DRAWN = ("leader", "lineage", "loss")  # kinds that it draws as the report does


class Value:
    """A row: `loss.topic`, `loss.from_offset`. Its keys are those of `kctl schema`; it cannot be changed."""

    __slots__ = ("_row",)

    def __init__(self, row: Mapping[str, object]) -> None:
        object.__setattr__(self, "_row", dict(row))

    def __getattr__(self, name: str) -> Any:
        try:
            return self._row[name]
        except KeyError:
            raise AttributeError(
                f"a {self._row.get('kind')} has no {name}; it has {', '.join(self._row)}"
            ) from None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("values cannot be changed")

    def __dir__(self) -> list[str]:
        return [*self._row, "as_dict"]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and self._row == other._row

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        fields = ", ".join(f"{key}={value!r}" for key, value in self._row.items() if key != "kind")
        return f"{self._row.get('kind', 'value')}({fields})"

    def as_dict(self) -> dict[str, object]:
        """The row as the command line prints it with `--output jsonl`."""
        return dict(self._row)

    def _repr_html_(self) -> str:
        if self._row.get("kind") in DRAWN:
            return Values([self])._repr_html_()
        from kctl.report.html import table

        return table(["key", "value"], [[key, value] for key, value in self._row.items()])


class Values(tuple[Value, ...]):
    """Rows in order: a tuple of `Value` with tables and a picture for notebooks."""

    __slots__ = ()

    def __new__(cls, rows: Iterable[Value | Mapping[str, object]] = ()) -> Values:
        return super().__new__(cls, (row if isinstance(row, Value) else Value(row) for row in rows))

    def where(self, **values: object) -> Values:
        """Those whose attributes have these values: `judgements.where(verdict="lost", topic="orders")`.

        Raises AttributeError for a name that no row has.
        """
        known = dict.fromkeys(key for row in self for key in row.as_dict())
        for name in values.keys() - known.keys() if known else ():
            hint = near_names(name, known, otherwise=f"there are {', '.join(known)}")
            raise AttributeError(f"no row has {name}; {hint}")
        return Values(
            row for row in self if all(getattr(row, name, None) == value for name, value in values.items())
        )

    def to_arrow(self) -> pyarrow.Table:
        """A table with a column for each key; lists and objects stay what they are."""
        import pyarrow

        return pyarrow.Table.from_pylist([row.as_dict() for row in self])

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a data frame, times as datetimes in UTC; needs pandas."""
        import pandas

        frame = self.to_arrow().to_pandas()
        for name in frame.columns:
            if name.endswith(TIMES):
                unit = (
                    {"unit": "ms"}
                    if pandas.api.types.is_numeric_dtype(frame[name])
                    else {"format": "ISO8601"}
                )
                frame[name] = pandas.to_datetime(frame[name], utc=True, errors="coerce", **unit)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """The same as a data frame of Polars; needs polars."""
        import polars

        return polars.DataFrame(polars.from_arrow(self.to_arrow()))

    def __repr__(self) -> str:
        return (
            f"<{counted(len(self), 'row')}: {', '.join(sorted({str(row.kind) for row in self}))}>"
            if self
            else "<no rows>"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: leaderships, lineages and losses as the report draws them, other rows as a table."""
        from kctl.report.answer import LOST_COLUMNS, loss_cells
        from kctl.report.html import element, join, safe, table
        from kctl.report.lineage import lineage_picture
        from kctl.report.partitions import loss_words
        from kctl.report.timeline import leaders_section

        rows: list[dict[str, Any]] = [row.as_dict() for row in self]
        of_kind = {str(row["kind"]): [same for same in rows if same["kind"] == row["kind"]] for row in rows}
        pictures: list[object] = []
        if "leader" in of_kind:
            pictures.append(leaders_section(of_kind["leader"], of_kind.get("broker_state", ())))
        by_partition: dict[tuple[object, object], list[dict[str, Any]]] = {}
        for row in of_kind.get("lineage", []):
            by_partition.setdefault((row["topic"], row["partition"]), []).append(row)
        for (topic, partition), lineages in list(by_partition.items())[:PICTURES]:
            beside = (
                [
                    row
                    for row in of_kind.get(kind, [])
                    if (row["topic"], row["partition"]) == (topic, partition)
                ]
                for kind in ("divergence", "loss", "finding")
            )
            picture = element("div", lineage_picture(lineages, *beside), class_="scroll")
            pictures += [element("h3", f"{topic}-{partition}"), picture]
        losses = [row for row in of_kind.get("loss", ())[:SHOWN] if "evidence" in row]
        if losses and not by_partition:
            pictures.append(table(LOST_COLUMNS, [loss_cells(row) for row in losses], frozenset({2, 6})))
            for row in losses[:PICTURES]:
                pictures += [element("h3", f"{row['topic']}-{row['partition']}"), loss_words(row)]
        if pictures:
            return framed(join(pictures))
        parts: list[object] = []
        for kind, of in of_kind.items():
            keys = [key for key in dict.fromkeys(key for row in of for key in row) if key != "kind"]
            parts.append(table(keys, [[safe(row.get(key)) for key in keys] for row in of[:SHOWN]]))
            if len(of) > SHOWN:
                parts.append(element("p", f"{counted(len(of) - SHOWN, 'more row')} of kind {kind}"))
        return join(parts or [element("p", "no rows")])


def framed(markup: str) -> str:
    """Markup with the report's style in a frame of its own, so that neither changes the notebook."""
    from importlib.resources import files

    from kctl.report.html import Html, element, join
    from kctl.report.lineage import patterns

    style = Html(files("kctl.report").joinpath("report.css").read_text("utf-8"))
    page = join([element("style", style), patterns(), Html(markup)])
    return element(
        "iframe", srcdoc=str(page), style="width:100%;height:480px;border:0", sandbox="", title="kctl"
    )
