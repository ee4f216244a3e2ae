"""The line of progress fits the terminal, and its numbers are whole."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from commands.cli import progress


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_narrow_line_keeps_its_numbers(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = io.StringIO()
    console = Console(file=drawn, width=width, force_terminal=True, no_color=True)
    monkeypatch.setattr(progress, "Console", lambda **_: console)
    bar = progress.Bar()
    bar.start("reassign 1,200 partitions of 14 topics (2 of 12)", 12_345_678_901)
    bar.advance(1_234_567_890)
    bar.note("1,100 of 1,200 partitions, broker 3 is throttled")
    lines = re.split(r"\r\x1b\[2K", drawn.getvalue())
    bar.close()
    last = lines[-1]
    assert "\n" not in last and len(last) <= width
    assert "1.1/11.5 GiB" in last and last.startswith("reassign")
