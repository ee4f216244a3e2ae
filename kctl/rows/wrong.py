"""Which rows mean that something is wrong, so that the command ends with status 5."""

from collections.abc import Callable, Mapping

WRONG: dict[str, Callable[[Mapping[str, object]], bool]] = {
    "finding": lambda row: row["severity"] != "info",
    "loss": lambda row: True,
    "divergence": lambda row: True,
    "violation": lambda row: True,
}
