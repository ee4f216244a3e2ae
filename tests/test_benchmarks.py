"""What the benchmarks say of a figure beside the one that was landed before."""

from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.parts import Line, at_least, at_most

RATE = "none-1x100: 0.99 million records/s; times Kafka"


@pytest.fixture
def before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(results, "RESULTS", tmp_path / "RESULTS.md")
    lines = [
        at_least(RATE, 8.05, 8),
        at_most("segment verify", 0.16, 0.12, " s"),
        Line("python", "0.01 s"),
        Line("timeline", "0.4"),
    ]
    results.write_section("records", f"How.\n\n{results.table(lines)}")
    results.write_section("other", results.table([at_least(RATE, 1.0, 8)]))
    return results.landed("records")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (at_least(RATE.replace("0.99", "1.20"), 7.9, 8), "SHORT  before: 8.05"),
        (at_least(RATE.replace("0.99", "0.70"), 7.5, 8), "SHORT  before: 8.05  FELL"),
        (at_most("segment verify", 0.11, 0.12, " s"), "ok  before: 0.16 s"),
        (at_most("segment verify", 0.17, 0.12, " s"), "SHORT  before: 0.16 s  FELL"),
        (Line("python", "0.05 s"), "before: 0.01 s"),
        (Line("timeline", "0.5", "at most 1.5", True), "before: 0.4  FELL"),
        (Line("new", "1"), ""),
    ],
)
def test_a_figure_stands_beside_the_one_before(before: dict[str, str], line: Line, shown: str) -> None:
    text = results.shown(line, before)
    assert text.rstrip().endswith(shown)
    assert ("before" in text) == bool(shown)
    assert ("FELL" in text) == shown.endswith("FELL")


def test_a_section_that_is_not_there_has_no_figures(before: dict[str, str]) -> None:
    assert before
    assert results.landed("nothing") == {}


def test_a_new_run_replaces_the_table_and_keeps_what_is_written_behind_it(before: dict[str, str]) -> None:
    with results.RESULTS.open("a") as file:
        file.write("\nWhy it is so.\n\n| beside | it |\n|---|---|\n| python | 9 s |\n")
    lines = [at_least(RATE, 0.5, 8, "of two"), at_most("two", 3, 5)]
    results.write_section("other", f"How now.\n\n{results.table(lines, results.landed('other'))}")
    text = results.RESULTS.read_text().partition("## other\n\n")[2]
    assert text.splitlines() == [
        "How now.",
        "",
        "| measured | figure | goal | reached | before |",
        "| --- | --- | --- | --- | --- |",
        f"| {RATE} | 0.50 (of two) | ≥ 8 | **no** | 1.00, **fell** |",
        "| two | 3 | ≤ 5 | yes |  |",
        "",
        "Why it is so.",
        "",
        "| beside | it |",
        "|---|---|",
        "| python | 9 s |",
    ]
    assert results.landed("other") == {results.key_of(RATE): "0.50 (of two)", "two": "3"}
    assert results.landed("records") == before
