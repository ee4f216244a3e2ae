"""Expected failures. Each carries its exit status, what failed and why, and a hint: what to do next.

Texts are lower-case, name the thing, quote the value and end without a full stop. A class whose errors all have the
same next step says it once, in its `hint`; `tests/kctl/test_errors.py` asks for one of each error.
"""

import os
import re
from collections.abc import Iterable
from errno import (
    EACCES,
    EDQUOT,
    EEXIST,
    EFBIG,
    EINVAL,
    EIO,
    EISDIR,
    ELOOP,
    EMFILE,
    ENAMETOOLONG,
    ENOENT,
    ENOSPC,
    ENOTDIR,
    EPERM,
    EROFS,
)
from typing import NamedTuple


class RefusedItem(NamedTuple):
    """One item of a request that a broker did not carry out; `reason` is the broker's own sentence."""

    request: str  # Kafka's name of it
    what: str  # `orders-3`, `topic orders`
    error_code: int
    error: str  # Kafka's name of the code
    reason: str | None = None
    topic: str | None = None
    partition: int | None = None


class KctlError(Exception):
    """Could not: a file, a znode, a connection (exit status 3)."""

    exit_code = 3
    hint = ""
    items: tuple[RefusedItem, ...] = ()  # where brokers answered item by item: those that failed
    shown: tuple[str, ...] = ()  # lines below the message: what stands in a file, and a mark under the place

    def __init__(self, message: str, hint: str = "") -> None:
        from formats.secrets import redact_text  # libraries quote URIs and lines that hold passwords

        message, hint = redact_text(message), redact_text(hint)
        super().__init__(message, hint)
        self.message = message
        if hint:
            self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class Refused(KctlError):
    """Would not: a precondition of a change does not hold (exit status 4). Nothing was written."""

    exit_code = 4


class BadValue(KctlError):
    """A name or value that cannot be right, found only after the arguments were parsed (exit status 2)."""

    exit_code = 2
    hint = "the command's --help shows its arguments"


class NotFinished(KctlError):
    """Written, but not finished within the time given, or in part only, or it is unknown (exit status 5)."""

    exit_code = 5
    is_begun = False
    """Whether some of what was to be written at last is certainly written."""


NOTHING_WRITTEN = re.compile(r"; nothing was written\b")


def without_reassurance(message: str) -> str:
    """The message of an error without the clause that nothing was written, which holds of its own request only."""
    return NOTHING_WRITTEN.sub("", message)


class UnreadableFile(KctlError):
    """A file or folder that cannot be opened or has not the layout asked for."""


NEXT_STEPS = {
    ENOENT: "check the path",
    ENOTDIR: "check the path: a part of it is a file",
    EISDIR: "name a file in the folder",
    EINVAL: "name a file",
    EEXIST: "give another name",
    EACCES: "run kctl as a user that has access to it",
    EPERM: "run kctl as a user that has access to it",
    EROFS: "name a place on a file system that is not mounted read-only",
    ENOSPC: "free some space, or write elsewhere",
    EDQUOT: "free some space, or write elsewhere",
    EFBIG: "raise the limit (`ulimit -f`), or write elsewhere",
    EIO: "the disk may be failing (see the kernel's log): copy what can be read and examine the copy",
    EMFILE: "raise the limit of open files (`ulimit -n`), or use fewer --jobs",
    ELOOP: "name the folder itself in place of the link",
    ENAMETOOLONG: "use a shorter path",
}
"""What to do about an error of the system, by its number."""


def next_step_of(error: BaseException) -> str:
    """What to do about an error of the system."""
    number = error.errno if isinstance(error, OSError) else None
    if number == EFBIG and isinstance(error, OSError) and error.filename is not None:
        return "it is damaged, or another file under this name"  # read, not written
    return NEXT_STEPS.get(number or 0, "check that the path can be read there by other programs")


def file_error(
    place: object, error: BaseException, kind: type[KctlError] = UnreadableFile, hint: str = ""
) -> KctlError:
    """An error of the system as one of kctl's: the place, the system's words, and what to do about it."""
    path = str(place)
    hint = hint or two_slashes(path) or (near_path(path) if isinstance(error, FileNotFoundError) else "")
    return kind(f"{place}: {reason_of(error)}", hint or next_step_of(error))


ONE_SLASH = re.compile(r"(s3[an]?|gc?s|abfss?|(?:web)?hdfs):/(?!/)", re.IGNORECASE)


def two_slashes(path: str) -> str:
    """The hint for what looks like the URL of a store and lacks a slash; nothing for any other path."""
    match = ONE_SLASH.match(path)
    return f"did you mean {match[1]}://{path[match.end() :]}?" if match else ""


def near_path(path: str) -> str:
    """The hint for a path that is not there: names like its first part that is missing, else what its folder holds."""
    missing, folder = path.rstrip("/"), ""
    while missing and not os.path.isdir(folder := os.path.dirname(missing) or "."):
        missing = folder
    try:
        names = os.listdir(folder) if missing else []
    except OSError:
        return ""
    name = os.path.basename(missing)
    if name in names:
        is_link = os.path.islink(missing)
        return f"{missing} is a link to {os.readlink(missing)}, which is not there" if is_link else ""
    if near := near_names(name, names, otherwise=""):
        return f"{near} (in {folder})" if folder != "." else near
    if folder == "/":
        return f"there is no /{name}; a path from the current folder begins without /"
    from kctl.model import some  # most commands fail without it

    where = folder if folder != "." else "the current folder"
    visible = sorted(other for other in names if not other.startswith("."))
    return f"{where} holds {some(visible)}" if visible else f"{where} is empty" if missing else ""


def near_names(name: str, known: Iterable[str], *, otherwise: str) -> str:
    """The hint for a name that is not among the known ones: those that are like it, else `otherwise`."""
    from difflib import get_close_matches

    near = get_close_matches(name, sorted(known), n=3)
    return f"did you mean {' or '.join(near)}?" if near else otherwise


LIBRARIES = {
    "pyarrow": "Arrow", "duckdb": "DuckDB", "pyspark": "Spark", "py4j": "Spark", "kazoo": "ZooKeeper's client",
    "kafka": "Kafka's client", "zlib": "zlib", "lzma": "lzma", "gzip": "gzip", "cramjam": "the decompressor",
    "json": "JSON", "msgspec": "JSON", "tomllib": "TOML", "ssl": "TLS", "numpy": "numpy",
    "concurrent": "a worker process", "multiprocessing": "a worker process",
}  # fmt: skip
"""Where an exception of a library comes from, by the first part of its module's name."""


def failure_of(error: BaseException) -> KctlError | None:
    """An exception that files, sockets, libraries or the machine explain, as a sentence; None for a bug.

    What a command expects is said where it happens, with the file's name; this is the last boundary.
    """
    if isinstance(error, MemoryError):
        return KctlError("out of memory", "examine less at once, or use fewer --jobs")
    if isinstance(error, RecursionError):
        return KctlError("part of the input is nested too deeply to be read", SMALLER)
    if isinstance(error, RuntimeError) and str(error).startswith(
        "Symlink loop"
    ):  # of Path.resolve, up to 3.12
        return UnreadableFile(str(error).lower(), "check the symbolic link")
    if isinstance(error, UnicodeError):
        return KctlError(f"part of the input is not text ({reason_of(error)})", SMALLER)
    names = (kind.__module__.partition(".")[0] for kind in type(error).__mro__)
    library = next((LIBRARIES[name] for name in names if name in LIBRARIES), None)
    if library is None and not isinstance(error, OSError):
        return None
    lines = reason_of(error).strip().splitlines() or [type(error).__name__]
    return KctlError(f"{library or 'the system'}: {lines[0]}", SMALLER)


SMALLER = "name fewer files to find the one; KCTL_DEBUG=1 prints where it happened"


def reason_of(error: BaseException) -> str:
    """The system's words for an error as a clause, `permission denied`; where it has none its own text, without secrets.

    What Python says of text, numbers and JSON is said in kctl's words.
    """
    from formats.secrets import redact_text

    text = getattr(error, "strerror", None)
    return redact_text(str(text).lower() if text else _in_own_words(error))


NO_NUMBER = re.compile(
    r"(?:invalid literal for int\(\).*|could not convert string to float): (?P<text>.*)", re.DOTALL
)


def _in_own_words(error: BaseException) -> str:
    if isinstance(error, UnicodeDecodeError):
        encoding = (
            error.encoding.upper()
            .removesuffix("-SIG")
            .replace("UTF_", "UTF-")
            .replace("-LE", "")
            .replace("-BE", "")
        )
        byte = error.object[error.start : error.start + 1].hex()
        return f"it is not {encoding} text: byte 0x{byte} at position {error.start:,}"
    if isinstance(error, UnicodeEncodeError):
        return f"the character U+{ord(error.object[error.start]):04X} at position {error.start:,} is none of text"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, KeyError):
        return f"it has no {error.args[0]!r}" if error.args else "a name is missing"
    if isinstance(error, (TypeError, AttributeError, AssertionError, IndexError)):
        return "a value is missing, or of another type than it should be"
    if hasattr(error, "lineno") and hasattr(error, "colno") and hasattr(error, "msg"):  # of JSON and TOML
        return f"{str(error.msg).lower()}, line {error.lineno} column {error.colno}"
    number = NO_NUMBER.fullmatch(str(error))
    return f"{number['text']} is not a number" if number else str(error)
