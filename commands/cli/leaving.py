"""The way out: all that kctl prints passes here, where no character of evidence may command a terminal.

Escaped are control characters (C0, DEL, C1) but the line ends and tabs that kctl writes itself, line and paragraph
separators, bidirectional controls, and lone surrogates, by which Python holds bytes that are no UTF-8. This holds in a
pipe too, which may end in a pager. Text gets \\xNN and \\uNNNN, JSON \\uNNNN.
"""

from __future__ import annotations

import os
import re
import sys
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator

from kctl.errors import KctlError

Chunk = bytes | memoryview

OWN_COLOUR = f"\x1b[{os.urandom(8).hex()};"
"""How a colour sequence of kctl begins until it leaves; evidence cannot know it."""
COLOUR = rf"{re.escape(OWN_COLOUR)}[0-9;]*m"
WORDS = rf"{COLOUR}|\s+|(?:(?!{COLOUR})\S)+"
NEXT = "next     "  # begins a line with a command to copy

# With kctl.model.REORDERING, which would be one module more for every command.
ELSE = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
IN_A_LINE = f"([\x00-\x1f{ELSE}])\\1*"  # a file may end with a gigabyte of NUL bytes
# A carriage return before a line end moves no cursor over what was written: line ends stay as they are.
IN_LINES = f"([\x00-\x08\x0b\x0c\x0e-\x1f{ELSE}])\\1*|\r(?!\n)"
IN_JSON = rb"\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xed[\xa0-\xbf][\x80-\xbf]"
HARMLESS = bytes(range(0x20, 0x7F)) + b"\t\n"
# So much stays in a processor's cache while it is looked through.
CACHED = 1 << 16
SHORT_TEXT = 1 << 12  # bytes; numpy takes longer to begin than to look through so few
SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def _escape(match: re.Match[str]) -> str:
    character = match[0][0]
    code = ord(character)
    return len(match[0]) * (SHORT.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"))


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces, of which none ends between a carriage return and its line end.

    `re` keeps an object for each character that it replaces until all are: a line of NUL bytes took a gigabyte.
    """
    start = 0
    while start < len(text):
        end = start + CACHED
        end += text.startswith("\r\n", end - 1)
        yield text[start:end]
        start = end


def visible(text: str) -> str:
    """The text as one line that no terminal obeys."""
    return (
        text if text.isprintable() else "".join(re.sub(IN_A_LINE, _escape, piece) for piece in _pieces(text))
    )


def laid_out(line: str) -> str:
    """A line of a layout as it leaves: kctl's own colours work, all else is visible."""
    first, *coloured = line.split(OWN_COLOUR)
    parts = (part.partition("m") for part in coloured)
    return visible(first) + "".join(f"\x1b[{style}m{visible(rest)}" for style, _, rest in parts)


def _needs_no_escape(data: bytes) -> bool:
    """Whether text holds nothing that would be escaped; False also where that is dearer to tell."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    if len(data) < SHORT_TEXT or "numpy" not in sys.modules:
        return not data.translate(None, HARMLESS)
    # Logs are merged by the gigabyte: numpy, which such commands have loaded, tells it ten times as quickly.
    import numpy as np

    octets = np.frombuffer(data, np.uint8)
    # Below tab; from DEL on; between the line end and the space: what is harmless wraps to the top.
    return not any(
        part.min() < 9 or part.max() >= 0x7F or (part - 11).min() < 0x20 - 11
        for part in (octets[at : at + CACHED] for at in range(0, len(octets), CACHED))
    )


def _visible_lines(text: str) -> Iterator[bytes]:
    return (re.sub(IN_LINES, _escape, piece).encode() for piece in _pieces(text))


def text_chunks(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Lines of text as they leave; a chunk may end anywhere in a character, but not in a colour sequence."""
    decoder = getincrementaldecoder("utf-8")("backslashreplace")
    pending = b""
    for chunk in chunks:
        data = pending + bytes(chunk)
        pending = b"\r" if data.endswith(b"\r") else b""
        if not decoder.getstate()[0] and _needs_no_escape(data):
            yield data
            continue
        first, *coloured = decoder.decode(data.removesuffix(pending)).split(OWN_COLOUR)
        yield from _visible_lines(first)
        for part in coloured:
            style, _, rest = part.partition("m")
            yield f"\x1b[{style}m".encode()
            yield from _visible_lines(rest)
    yield re.sub(IN_LINES, _escape, decoder.decode(pending, final=True)).encode()


def json_chunks(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """JSON as it leaves; a chunk holds whole lines. What is escaped here can stand only inside strings."""
    for chunk in chunks:
        if _is_harmless(chunk):
            yield chunk
        else:
            yield from _visible_json(bytes(chunk))


def _visible_json(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = start + CACHED
        while b"\x80" <= data[end : end + 1] < b"\xc0":  # within a character
            end += 1
        yield re.sub(
            IN_JSON,
            lambda match: b"\\u%04x" % ord(match[0].decode("utf-8", "surrogatepass")),
            data[start:end],
        )
        start = end


def _is_harmless(chunk: Chunk) -> bool:
    """Whether all of it is ASCII without DEL."""
    if isinstance(chunk, memoryview) and len(chunk):
        import numpy as np  # which is loaded where such memory comes from

        return bool(np.frombuffer(chunk, np.uint8).max() < 0x7F)
    return bytes(chunk).isascii() and b"\x7f" not in chunk


def write(chunks: Iterable[Chunk]) -> None:
    """Write to standard output."""
    out = sys.stdout.buffer
    for chunk in chunks:
        out.write(chunk)
    out.flush()


def folded(line: str, width: int) -> Iterator[str]:
    """The line in pieces that fit, those after the first indented by 4 more than it; a word is never broken."""
    plain = re.sub(COLOUR, "", line)
    if len(plain) <= width:
        yield line
        return
    indent = " " * (min(len(plain) - len(plain.lstrip()), width // 2) + 4)
    piece, used, gap = "", 0, ""
    for token in re.findall(WORDS, line):
        if token.startswith(OWN_COLOUR):
            piece += gap + token
            used, gap = used + len(gap), ""
        elif token.isspace():
            gap = token
        elif gap and used + len(gap) + len(token) > width and piece.strip():
            yield piece
            piece, used, gap = indent + token, len(indent) + len(token), ""
        else:
            piece, used, gap = piece + gap + token, used + len(gap) + len(token), ""
    yield piece


def say(line: str, *, end: str = "\n") -> None:
    """Write a line to standard error, without the secrets that a library or an argument put into it and with URLs as they were given."""
    from formats.secrets import redact_text
    from kctl.stores.mirror import given_name

    line = redact_text(given_name(line))
    lines = [line]
    if sys.stderr.isatty() and not line.startswith(NEXT):
        from shutil import get_terminal_size

        lines = list(folded(line, get_terminal_size().columns))
    sys.stderr.write("\n".join(map(laid_out, lines)) + end)
    sys.stderr.flush()


def say_error(error: Exception) -> None:
    """Write what failed and why on a line to standard error, and below it what to do next."""
    message, hint = (error.message, error.hint) if isinstance(error, KctlError) else (str(error), "")
    say(f"kctl: {message}")
    for line in error.shown if isinstance(error, KctlError) else ():
        say(f"      {line}")
    if hint:
        say(f"      {hint}")
