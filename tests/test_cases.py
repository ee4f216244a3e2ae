"""Golden text: each file of tests/cases is a list of `$ kctl ...` lines with what they print and how they end.

A command runs in `tests/data`; `@segments/2.8.2` in it stands for the folder of that recording. What goes to
standard error is prefixed with `! `. `pytest --rewrite` writes what comes out now; the diff is the review.
"""

import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import HERE, kctl, recording

CASES = sorted((HERE / "cases").glob("*.txt"))


def play(text: str) -> str:
    """The same file with what its commands print now."""
    out = []
    for block in re.split(r"(?m)^(?=\$ )", text):
        if not block.startswith("$ "):
            out.append(block)
            continue
        line = block.splitlines()[0]
        folders = {name: str(recording(name)) for name in re.findall(r"@([a-z]+/[\w.-]+)", line)}
        spoken = line
        for name, folder in folders.items():
            spoken = spoken.replace(f"@{name}", folder)
        ran = kctl(*shlex.split(spoken)[2:])
        said = ran.out.decode("utf-8", "replace") + "".join(f"! {x}\n" for x in ran.err.splitlines())
        for name, folder in folders.items():
            said = said.replace(folder, f"@{name}")
        ending = f"[exit {ran.status}]\n" if ran.status else ""
        out.append(f"{line}\n{said}{ending}\n")
    return "".join(out).rstrip("\n") + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.stem)
def test_case(case: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE / "data")
    before = case.read_text(encoding="utf-8")
    after = play(before)
    if request.config.getoption("--rewrite"):
        case.write_text(after, encoding="utf-8")
    assert after == before or request.config.getoption("--rewrite"), (
        "if this is right: `pytest tests/test_cases.py --rewrite`"
    )
