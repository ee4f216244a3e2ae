"""The version and its date in the code and in the changelog: `version.py 1.2.3 2027-01-31`."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNRELEASED = "## Unreleased\n"


def of_module(text: str, version: str, date: str) -> str:
    """`kctl/version.py` with another version."""
    text = re.sub(r'(?m)^(__version__ = )".*?"', rf'\1"{version}"', text)
    return re.sub(r'(?m)^(__date__ = )".*?"', rf'\1"{date}"', text)


def of_changelog(text: str, version: str, date: str) -> str:
    """The changelog, with what was unreleased under the version. ValueError if nothing was."""
    before, heading, after = text.partition(UNRELEASED)
    section, *_ = re.split(r"(?m)^## ", after)
    if not heading or not section.strip():
        raise ValueError(f"CHANGELOG.md has nothing under {UNRELEASED.strip()!r}")
    return f"{before}{UNRELEASED}\n## {version} - {date}\n{after}"


if __name__ == "__main__":
    for path, changed in (("kctl/version.py", of_module), ("CHANGELOG.md", of_changelog)):
        file = ROOT / path
        file.write_text(changed(file.read_text("utf-8"), *sys.argv[1:3]), "utf-8")
