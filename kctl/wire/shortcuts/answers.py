"""Answers that are decoded here in place of the library: requests whose header says so, and the parts of flexible forms.

Source: KIP-482 (flexible versions: compact texts, tagged fields)
"""

from collections.abc import Callable
from typing import Any

from formats.binary.varint import read_unsigned, write_unsigned

Data = bytes | memoryview


class QuickAnswer:
    """Before a request of the library among a class's bases: its answer is decoded here where its form is known.

    The names in the answer are the library's, whoever decoded it.
    """

    QUICK_VERSIONS: range
    RESPONSE: Any  # the library's class, by version

    @staticmethod
    def decoded(data: memoryview, version: int) -> Any:
        """What the answer says. Raises ValueError where it has not the form of the version."""
        raise NotImplementedError

    @property
    def header(self) -> Any:
        """The header, which tells how the answer is decoded."""
        request: Any = self
        found, version = super().header, request.API_VERSION  # type: ignore[misc]  # a base that comes behind
        if found is None or version not in self.QUICK_VERSIONS:
            return found
        return _Header(found, self.RESPONSE[version], lambda data: self.decoded(memoryview(data), version))


class _Header:
    """The header of a request, whose answer `decoded` decodes; the library takes the answer's own header off."""

    def __init__(self, header: Any, response: Any, decoded: Callable[[Data], Any]) -> None:
        self._header = header
        self._response = _Response(response, decoded)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._header, name)

    def get_response_class(self) -> Any:
        return self._response


class _Response:
    def __init__(self, response: Any, decoded: Callable[[Data], Any]) -> None:
        self.parse_header = response.parse_header
        self._decoded = decoded

    def decode(self, data: Any) -> Any:
        return self._decoded(data.read())


def text(data: Data, at: int) -> tuple[str | None, int]:
    """A compact text, None for null, and where it ends."""
    size, at = read_unsigned(data, at)
    if size == 0:
        return None, at
    end = at + size - 1
    if end > len(data):
        raise ValueError("a string runs past the end")
    return str(data[at:end], "utf-8"), end


def encoded_text(value: str) -> bytes:
    """A compact text."""
    data = value.encode()
    return write_unsigned(len(data) + 1) + data
