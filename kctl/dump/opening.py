"""Open a file to dump, for reading only; errors are one line."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kctl.errors import UnreadableFile, file_error
from kctl.files import NotRegular
from kctl.scan.source import Source, foreign_in, open_source


@contextmanager
def opened(path: str | Path) -> Iterator[Source]:
    """The file as a source of bytes; `UnreadableFile` where it is none, not Kafka's, or reading it fails."""
    source: Source | None = None
    try:
        source = open_source(path, follow=True)
        foreign = foreign_in(source)
        if foreign is not None:
            raise UnreadableFile(
                f"{os.fspath(path)}: looks like {foreign.what} of {foreign.system}, which is not Apache Kafka",
                "use the tools of that system",
            )
        yield source
    except NotRegular as error:
        raise file_error(os.fspath(path), error, UnreadableFile, hint_for(error.mode)) from error
    except OSError as error:
        raise file_error(os.fspath(path), error) from error
    finally:
        if source:
            source.close()


def hint_for(mode: int) -> str:
    """A hint for a path of this kind."""
    return (
        "name the files in it, or see `kctl segment verify`" if stat.S_ISDIR(mode) else "name a regular file"
    )


def whole(source: Source, most: int) -> bytes:
    """All bytes of a small file; `UnreadableFile` where it has more than `most`."""
    if source.size > most:
        raise UnreadableFile(
            f"{source.name}: {source.size} bytes, a file of this kind has at most {most}",
            "it is damaged or of another kind: --type says which",
        )
    return source.read_at(0, source.size)
