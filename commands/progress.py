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
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.segment import ControlType

EVERY = 0.1  # seconds between two looks of the bar


class Bar:
    """A `kctl.model.Progress` drawn with rich on standard error."""

    def __init__(self, *, color: bool = True) -> None:
        self._color = color
        self._drawn: Progress | None = None
        self._last = 0.0

    def start(self, what: str, total: int | None, unit: str = "bytes") -> None:
        """Begin a piece of work; an earlier one is finished."""
        self.close()
        amount: list[ProgressColumn] = (
            [DownloadColumn(binary_units=True), TransferSpeedColumn()]
            if unit == "bytes"
            else [MofNCompleteColumn(), TextColumn(unit)]
        )
        columns: list[ProgressColumn] = [
            TextColumn("{task.description}"),
            BarColumn(),
            *amount,
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        ]
        self._drawn = Progress(
            *columns,
            console=Console(stderr=True, markup=False, highlight=False, no_color=not self._color or None),
            transient=True,
            auto_refresh=False,  # a thread would draw between the lines that are written
        )
        self._drawn.start()
        self._drawn.add_task(what, total=total, note="")
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
            self._drawn.update(self._drawn.tasks[0].id, note=text)
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
