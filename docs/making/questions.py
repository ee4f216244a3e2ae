"""docs/which-command.md, from the table of `kctl help`: `python -m docs.making.questions` writes it."""

from collections.abc import Iterator
from pathlib import Path

from commands.about.questions import questions

PAGE = Path(__file__).parents[1] / "which-command.md"


def written() -> str:
    """The page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Which command answers my question"
    yield ""
    yield "<!-- made by docs/making/questions.py -->"
    yield ""
    yield "`kctl help disk full` searches this page from a terminal. `evidence/` stands for a folder with log directories and logs,"
    yield "`/var/lib/kafka/data` for a log directory; `kctl FOLDER` lists what a folder holds."
    for question in questions():
        yield ""
        yield f"## {question.words[0][0].upper()}{question.words[0][1:]}"
        yield ""
        if len(question.words) > 1:
            yield f"*{', '.join(question.words[1:])}*"
            yield ""
        for line, shows in question.commands:
            yield f"- `{line}`: {shows}"
        if question.runbook:
            yield f"- Step by step: [{question.runbook.replace('-', ' ')}](runbooks/{question.runbook}.md)"


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
