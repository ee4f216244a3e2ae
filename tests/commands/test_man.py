"""The committed man pages are those that the commands give now; `make man` writes them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from commands.about.completion import FILES, script
from docs.making.man import escape, pages

ROOT = Path(__file__).parents[2]
MAN = ROOT / "man"


def test_the_pages_are_up_to_date() -> None:
    wanted = dict(pages())
    assert sorted(wanted) == sorted(p.name for p in MAN.glob("*.1")), "run `make man`"
    stale = [name for name, text in wanted.items() if (MAN / name).read_text(encoding="utf-8") != text]
    assert not stale, "run `make man`"


def test_roff_prints_text_as_it_stands() -> None:
    assert escape(".lock and 'x'\n--yes \\n") == "\\&.lock and 'x'\n\\-\\-yes \\en"


def test_the_completions_of_the_wheel_are_up_to_date() -> None:
    for shell, file in FILES.items():
        assert (ROOT / "completions" / file).read_text("utf-8") == script(shell), "run `make man`"


def test_the_page_of_a_group_names_each_of_its_verbs_and_says_all_of_its_help() -> None:
    texts = dict(pages())
    assert "kctl-topic-alter.1" not in texts, "a file for each verb is a tenth of the wheel's index"
    name = texts["kctl-topic.1"].split("\n.SH NAME\n")[1].partition("\n")[0]
    names, _, title = name.partition(" \\- ")
    assert {"kctl\\-topic", "kctl\\-topic\\-alter", "kctl\\-topic\\-delete\\-records"} <= set(
        names.split(", ")
    )
    assert title == "List, describe, create, alter and delete topics"
    _, _, described = texts["kctl-topic.1"].partition("\n.SS kctl topic alter\n")
    section = described.partition("\n.SS ")[0]
    for said in ("Add partitions", "\\-\\-replica\\-assignment", "kctl topic alter orders", "Exit status: 0"):
        assert said in section


@pytest.mark.skipif(not (shutil.which("man") and shutil.which("mandb")), reason="needs man-db")
def test_man_finds_a_group_at_once_and_its_verbs_when_mandb_has_read_them(tmp_path: Path) -> None:
    shutil.copytree(MAN, tmp_path / "share/man/man1")
    shown = {**os.environ, "MANPATH": str(tmp_path / "share/man"), "MANPAGER": "cat", "MANWIDTH": "100"}

    def found(name: str) -> bool:
        ran = subprocess.run(["man", name], env=shown, capture_output=True, text=True)
        return ran.returncode == 0 and "--under-replicated" in ran.stdout

    assert found("kctl-topic")
    assert not found("kctl-topic-lists")
    subprocess.run(["mandb", "--user-db", "--quiet", tmp_path / "share/man"], env=shown, check=True)
    assert found("kctl-topic-describe")
