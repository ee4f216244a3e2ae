"""The pages about replication: their pictures are what the simulator draws, their commands run as written."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from commands.cli.render import Page
from commands.replica.simulate import drawn
from tests.conftest import HERE, kctl, rows

DOCS = HERE.parent / "docs"
LOSES = DOCS / "how-replication-loses-data.md"
LOST = DOCS / "runbooks" / "was-anything-lost.md"
PICTURE = re.compile(r"(<!-- picture: kctl (.+?) -->\n```text\n)(.*?)(```\n)", re.DOTALL)


def redrawn(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        ran = rows(*shlex.split(match[2]))
        lines = "\n".join(drawn(ran.rows, Page(100, color=False)))
        return f"{match[1]}{lines}\n{match[4]}"

    return PICTURE.sub(one, text)


def test_the_pictures_are_those_of_the_simulator(request: pytest.FixtureRequest) -> None:
    before = LOSES.read_text(encoding="utf-8")
    assert len(PICTURE.findall(before)) == 4
    after = redrawn(before)
    if request.config.getoption("--rewrite"):
        LOSES.write_text(after, encoding="utf-8")
    assert after == before or request.config.getoption("--rewrite")


def commands_of(page: Path) -> list[tuple[str, int]]:
    """The kctl lines of a page's shell blocks, and the exit status that it promises."""
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("kctl ")]
    found = []
    for line in lines:
        spoken, _, comment = line.partition("#")
        status = re.match(r"\s*exit (\d+)", comment)
        found.append((spoken.strip(), int(status[1]) if status else 0))
    return found


@pytest.mark.slow
def test_the_runbook_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE.parent)
    commands = commands_of(LOST)
    assert len(commands) == 7
    for spoken, status in commands:
        line = spoken.replace("$EVIDENCE", "examples/unclean-election").replace("$OUT", str(tmp_path / "out"))
        ran = kctl(*shlex.split(line)[1:])
        assert ran.status == status, (line, ran.err, ran.out[-500:])
    assert list((tmp_path / "out").rglob("*.jsonl"))


def test_what_the_runbook_says_about_the_example_is_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE.parent)
    lost = rows("replica", "loss", "examples/unclean-election").of("loss")
    assert sum(row["to_offset"] - row["from_offset"] for row in lost) == 60
    assert {row["cause"] for row in lost} == {"unclean_election"}
    compared = rows("replica", "compare", "examples/unclean-election/moments/during")
    assert {(r["topic"], r["partition"]) for r in compared.of("divergence")} == {("ledger", 0), ("ledger", 1)}


@pytest.mark.slow
def test_the_random_runs_of_the_page_end_as_it_says() -> None:
    tries = [(spoken, "--random" in spoken) for spoken, _ in commands_of(LOSES)]
    for spoken, is_random in tries:
        ran = rows(*shlex.split(spoken)[1:])
        breaks = is_random and ("0.10" in spoken or "--power-failures" in spoken)
        assert ran.status == (5 if breaks else 0), spoken
