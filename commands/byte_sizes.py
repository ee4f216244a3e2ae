"""Numbers of bytes as people write them, for options and arguments."""

from __future__ import annotations

import click


class Size(click.ParamType[int]):
    """A number of bytes, with or without KiB, MiB, GiB or their first letters."""

    name = "size"
    UNITS = ("", "k", "m", "g", "t")

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of bytes."""
        if isinstance(value, int):
            return value
        text = str(value).strip().lower().removesuffix("ib").removesuffix("b")
        unit = text[-1:] if text[-1:].isalpha() else ""
        digits = text.removesuffix(unit).strip()
        if unit not in self.UNITS or not (digits.isascii() and digits.isdigit()):
            self.fail(f"{value!r} is no number of bytes, such as 268435456 or 256MiB", param, ctx)
        return int(digits) << 10 * self.UNITS.index(unit)
