"""`_rlmm_committed_offsets`, how far a broker of 3.1 to 3.5 had read each metadata partition.

The offset is that of the last record consumed, so it is read again after a restart.

Source: storage/.../metadata/storage/CommittedOffsetsFile.java @ 3.5.2
"""

from formats.errors import MalformedLine


def parse_committed_offsets(text: str) -> dict[int, int]:
    """Last consumed offset by metadata partition."""
    lines = text.splitlines()
    if len(lines) < 2 or lines[0] != "0":
        raise MalformedLine(f"version is {lines[0] if lines else ''!r}, not '0'", 1)
    if not lines[1].isdecimal() or int(lines[1]) != len(lines) - 2:
        raise MalformedLine(f"{len(lines) - 2} entries where line 2 promises {lines[1]!r}", 2)
    offsets = {}
    for number, line in enumerate(lines[2:], 3):
        words = line.split()
        if len(words) != 2 or not words[0].isdecimal() or not words[1].lstrip("-").isdecimal():
            raise MalformedLine(f"{line!r} is not a partition and an offset", number)
        offsets[int(words[0])] = int(words[1])
    return offsets


def format_committed_offsets(offsets: dict[int, int]) -> str:
    """The text of the file."""
    return "\n".join(["0", str(len(offsets)), *(f"{p} {o}" for p, o in offsets.items())]) + "\n"
