"""The fields of Kafka's messages, from the JSON that kafka-python brings: without comments, with common structures inserted.

The library's own way finds each file through `importlib.resources`, which imports more than the rest of the library.
"""

import json
from pathlib import Path
from typing import Any

FOLDER = "resources"


def read_schema(folder: Path, message: str) -> dict[str, Any]:
    """The same as the library's `load_json` for a message, without comments. Raises FileNotFoundError."""
    lines = (folder / FOLDER / f"{message}.json").read_text(encoding="utf-8").split("\n")
    return fill_in_structures(
        json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
    )


def fill_in_structures(message: dict[str, Any]) -> dict[str, Any]:
    """The message itself, with shared structures inserted into the fields that use them."""
    common = {struct["name"]: struct["fields"] for struct in message.get("commonStructs", ())}
    if common:
        _fill_in(message.get("fields", ()), common)
    return message


def _fill_in(fields: Any, common: dict[str, Any]) -> None:
    for field in fields:
        kind = field["type"].removeprefix("[]")
        if kind in common and kind[:1].isupper():
            field.setdefault("fields", common[kind])
        _fill_in(field.get("fields", ()), common)
