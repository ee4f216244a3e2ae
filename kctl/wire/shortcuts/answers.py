"""Answers decoded here instead of in the library: the header of their requests, and fields of flexible versions.

Source: KIP-482 (flexible versions: compact texts, tagged fields)
"""

from collections.abc import Callable
from typing import Any

from formats.binary.varint import read_unsigned, write_unsigned

Data = bytes | memoryview


class QuickAnswer:
    """A base in front of a library request: answers of known versions are decoded here.

    The names in the answer are the library's in any case.
    """

    QUICK_VERSIONS: range
    RESPONSE: Any  # the library's class, by version

    @staticmethod
    def decoded(data: memoryview, version: int) -> Any:
        """The decoded answer. Raises ValueError if it does not have the form of the version."""
        raise NotImplementedError

    @property
    def header(self) -> Any:
        """The header, which decides how the answer is decoded."""
        request: Any = self
        header, version = super().header, request.API_VERSION  # type: ignore[misc]  # a base that comes behind
        if header is None or version not in self.QUICK_VERSIONS:
            return header
        return _Header(header, self.RESPONSE[version], lambda data: self.decoded(memoryview(data), version))


class _Header:
    """The header of a request whose answer `decoded` decodes; the library removes the answer's own header."""

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
