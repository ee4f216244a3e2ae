"""Progress on a terminal: one line with amount, rate and time left, redrawn in place and gone at the end."""

from time import monotonic

from rich.console import Console
from rich.control import Control
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.segment import ControlType
from rich.table import Column
from rich.text import Text

from commands.cli.leaving import visible

EVERY = 0.1  # seconds between two looks of the bar


class Shortened(TextColumn):
    """Text that ends with `…` where the line is too narrow, so that numbers keep their room."""

    def render(self, task: Task) -> Text:
        text = super().render(task)
        text.no_wrap, text.overflow = True, "ellipsis"
        return text


class Bar:
    """A `kctl.model.Progress` drawn with rich on standard error."""

    def __init__(self, *, color: bool = True) -> None:
        self._color = color
        self._drawn: Progress | None = None
        self._last = 0.0

    def start(self, what: str, total: int | None, unit: str = "bytes") -> None:
        """Begin a piece of work; an earlier one is finished."""
        self.close()
        whole = Column(no_wrap=True)
        amount: list[ProgressColumn] = (
            [DownloadColumn(binary_units=True, table_column=whole), TransferSpeedColumn(table_column=whole)]
            if unit == "bytes"
            else [MofNCompleteColumn(table_column=whole), TextColumn(unit, table_column=whole)]
        )
        columns: list[ProgressColumn] = [
            Shortened("{task.description}", markup=False, table_column=Column()),
            BarColumn(bar_width=12),
            *amount,
            TimeRemainingColumn(table_column=whole),
            Shortened("{task.fields[note]}", markup=False, table_column=Column()),
        ]
        self._drawn = Progress(
            *columns,
            console=Console(stderr=True, markup=False, highlight=False, no_color=not self._color or None),
            transient=True,
            auto_refresh=False,  # a thread would draw between the lines that are written
        )
        self._drawn.start()
        self._drawn.add_task(visible(what), total=total, note="")
        self._refresh()

    def advance(self, amount: int) -> None:
        """Some of it is done; the last of it takes the line away."""
        if self._drawn is None:
            return
        task = self._drawn.tasks[0]
        self._drawn.advance(task.id, amount)
        if task.finished:
            self.close()
        elif monotonic() - self._last > EVERY:
            self._refresh()

    def _refresh(self) -> None:
        assert self._drawn is not None
        self._drawn.refresh()
        self._last = monotonic()

    def note(self, text: str) -> None:
        """Something else that is worth to be known, behind the rest of the line."""
        if self._drawn is not None:
            self._drawn.update(self._drawn.tasks[0].id, note=visible(text))
            self._refresh()

    def erase(self) -> None:
        """Empty the line until it is drawn again."""
        if self._drawn is not None:
            self._drawn.console.control(Control.move_to_column(0), Control((ControlType.ERASE_IN_LINE, 2)))

    def close(self) -> None:
        """Take the line away."""
        if self._drawn is not None:
            self._drawn.stop()
            self._drawn = None

    def __del__(self) -> None:
        self.close()
