"""Values that apply to this process inside a `with` block, without passing them through every call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

Value = TypeVar("Value")


class Inside(list[Value]):
    """The values in force, the innermost last. Processes forked inside the block inherit them."""

    @contextmanager
    def having(self, value: Value) -> Iterator[None]:
        """Add a value for the duration of the block."""
        self.append(value)
        try:
            yield
        finally:
            self.pop()
