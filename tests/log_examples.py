"""Entries and files byte by byte, by name: `EXAMPLES["E6"]` and so on."""

from pathlib import Path

EXAMPLES = {
    name: bytes.fromhex(digits)
    for name, digits in (
        line.split()
        for line in (Path(__file__).parent / "data" / "log-examples.txt").read_text().splitlines()
        if not line.startswith("#")
    )
}
# A segment with every magic, a transaction marker, an empty batch, a delete horizon and log append time.
LOG = b"".join(EXAMPLES[name] for name in ("E1", "E2", "E3", "E6", "E7", "E8", "E9", "E10"))
