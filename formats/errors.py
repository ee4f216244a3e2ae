"""What a format module raises: `FormatError`, always with the place."""


class FormatError(ValueError):
    """Bytes or text that do not have the layout asked for."""

    unit = "byte"

    def __init__(self, what: str, position: int) -> None:
        # Everything goes up by position: an exception must survive pickling on its way out of a worker.
        super().__init__(what, position)
        self.what = what
        self.position = position

    def __str__(self) -> str:
        return f"{self.what} at {self.unit} {self.position}"


class Truncated(FormatError):
    """The bytes end before the layout does."""


class MalformedLine(FormatError):
    """A line that does not have the grammar of its file; the position is a line number from 1."""

    unit = "line"
