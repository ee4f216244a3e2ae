"""The committed man pages are those that the commands give now; `make man` writes them."""

from pathlib import Path

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


def test_a_verb_is_found_under_its_own_name_and_says_all_of_its_help() -> None:
    texts = dict(pages())
    assert texts["kctl-topic-alter.1"] == ".so man1/kctl-topic.1\n"
    _, _, described = texts["kctl-topic.1"].partition("\n.SS kctl topic alter\n")
    section = described.partition("\n.SS ")[0]
    for said in ("Add partitions", "\\-\\-replica\\-assignment", "kctl topic alter orders", "Exit status: 0"):
        assert said in section
