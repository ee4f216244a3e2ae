"""What a segment file's name says of its base offset, and the files beside it."""

import os
import re
from pathlib import Path


def base_offset_of(path: str) -> int | None:
    """The number before the first dot of a file's name."""
    before = re.match(r"[0-9]{1,19}(?=\.)|0[0-9]{19}(?=\.)", Path(path).name)
    return int(before[0]) if before else None


def sibling(path: str, suffix: str) -> str | None:
    """The file of the same segment with another suffix, where there is one."""
    beside = Path(path).parent / (Path(path).name.split(".")[0] + suffix)
    return os.fspath(beside) if beside.is_file() else None
