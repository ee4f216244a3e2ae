"""What people see at 80 and at 200 columns."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from commands.about.finding import shown_sentence
from commands.state_log_chart import _write
from kctl.findings import all_findings
from tests.conftest import kctl


def test_labels_of_a_chart_do_not_overwrite_each_other() -> None:
    line = [" "] * 12
    for at, label in ((0, "1,2"), (2, "2"), (3, "7"), (6, "2,1"), (8, "2"), (11, "10")):
        _write(line, at, label)
    assert "".join(line) == "1,2·· 2,1· 1", "what has no room leaves a mark"


def test_the_details_of_a_sentence_have_their_names() -> None:
    assert shown_sentence(
        "{lines:line} {lines:was|were} read{retried}; {n:entry/entries} at {p!r}, {s:.1f} s"
    ) == ("<lines> lines were read <retried>; <n> entries at <p>, <s> s")
    for type_ in all_findings():
        shown = shown_sentence(type_.sentence)
        assert "…" not in shown and "{" not in shown, shown


@pytest.mark.parametrize("columns", [80, 200])
def test_doctor_ends_with_whether_kctl_is_ready(columns: int) -> None:
    lines = kctl("doctor", columns=columns, env={"NO_COLOR": "1"}).out.decode().splitlines()
    assert "ready" in lines[-1] and not any("spark setting" in line for line in lines)
    told = "spark setting" in kctl("doctor", "-v", columns=columns).out.decode()
    assert told is (find_spec("pyspark") is not None)
