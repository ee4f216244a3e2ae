"""What functions of this process go by while a `with` lasts, where every call on the way would have to hand it on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

Value = TypeVar("Value")


class Inside(list[Value]):
    """The values in force, the innermost last; processes that are forked meanwhile have them too."""

    @contextmanager
    def having(self, value: Value) -> Iterator[None]:
        """Inside, the value is one of them."""
        self.append(value)
        try:
            yield
        finally:
            self.pop()
