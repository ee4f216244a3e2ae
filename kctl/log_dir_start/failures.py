"""How loading a log may end before its end."""

from __future__ import annotations


class LoadFails(Exception):
    """An exception of Kafka's: its class, its words, and the file that it is about."""

    def __init__(
        self, exception: str, words: str, file: str, *, is_io: bool = False, is_storage: bool = False
    ) -> None:
        super().__init__(f"{exception}: {words}")
        self.exception = exception
        self.words = words
        self.file = file
        self.is_io = is_io  # an IOException
        self.is_storage = is_storage  # a KafkaStorageException over an IOException


class UnknownOutcome(Exception):
    """What Kafka does here is not forecast; the text says what it meets."""
