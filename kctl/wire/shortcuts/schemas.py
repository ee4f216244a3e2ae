"""The fields of Kafka's messages, from the JSON that kafka-python brings: comments out, common structures put in place.

The library's own way finds each file through `importlib.resources`, which imports more than the whole rest of it.
"""

import json
from pathlib import Path
from typing import Any

FOLDER = "resources"


def read_schema(folder: Path, message: str) -> dict[str, Any]:
    """What the library's `load_json` gives for a message, but for the texts of comments. Raises FileNotFoundError."""
    lines = (folder / FOLDER / f"{message}.json").read_text(encoding="utf-8").split("\n")
    return fill_in_structures(
        json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
    )


def fill_in_structures(message: dict[str, Any]) -> dict[str, Any]:
    """The message itself, with the structures that several of its fields share in their places."""
    common = {one["name"]: one["fields"] for one in message.get("commonStructs", ())}
    if common:
        _fill_in(message.get("fields", ()), common)
    return message


def _fill_in(fields: Any, common: dict[str, Any]) -> None:
    for field in fields:
        kind = field["type"].removeprefix("[]")
        if kind in common and kind[:1].isupper():
            field.setdefault("fields", common[kind])
        _fill_in(field.get("fields", ()), common)
