"""docs/pictures: terminals as SVG, and the report as a browser shows it. `make pictures` runs this.

The SVGs are held against the commands by a test; the report's picture is made where there is a Chromium, as browsers differ.
"""

import io
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.conftest import kctl

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures"
EXAMPLE = "examples/unclean-election"
TERMINALS = {
    "loss": f"replica loss {EXAMPLE}",
    "timeline": f"state-log timeline {EXAMPLE} --topic ledger --partition 0",
}
COLUMNS = 100
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def terminal(name: str) -> str:
    """The picture of a command and what it prints; fonts are those of the reader."""
    said = kctl(*TERMINALS[name].split(), "--quiet", "--color", "always", columns=COLUMNS)
    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(), color_system="standard", force_terminal=True
    )  # fmt: skip
    console.print(Text(f"$ kctl {TERMINALS[name]}", style="bold"))
    console.print(Text.from_ansi(said.out.decode()))
    picture = console.export_svg(title="kctl", unique_id=f"kctl-{name}")
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)


def report(browser: str) -> None:
    """The first screen of the report on the example."""
    with tempfile.TemporaryDirectory() as folder:
        kctl("audit", "run", EXAMPLE, "--out", folder, "--quiet", "--overwrite")
        command = [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--window-size=1200,770",
        ]
        command += [
            f"--user-data-dir={folder}/profile",
            f"--screenshot={FOLDER}/report.png",
            f"{folder}/report.html",
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=300)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in TERMINALS:
        (FOLDER / f"{name}.svg").write_text(terminal(name), encoding="utf-8")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser:
        report(browser)
    else:
        print("no Chromium on the PATH: docs/pictures/report.png stays as it is", file=sys.stderr)


if __name__ == "__main__":
    main()
