"""Java's own key store (JKS): certificates that are trusted, and private keys with their chains.

A header, entries, and a SHA-1 digest over the password and all that stands before. Keys are encrypted with a stream of SHA-1
digests (salt, bytes, digest of the key). Certificates are not encrypted, so they can be read without the password.

Source: java.base/share/classes/sun/security/provider/{JavaKeyStore,KeyProtector}.java (Java 17)
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha1
from hmac import compare_digest
from typing import NamedTuple

from formats.errors import FormatError, Truncated

MAGIC = b"\xfe\xed\xfe\xed"
SECRET_KEYS_MAGIC = b"\xce\xce\xce\xce"  # JCEKS, which Java reads by another provider
TAIL = b"Mighty Aphrodite"
DIGEST = 20
PRIVATE_KEY, TRUSTED = 1, 2


class WrongPassword(ValueError):
    """The password is not that of the store, or not that of the key."""


class KeyStore(NamedTuple):
    """What a store holds, in DER: trusted certificates, and keys with their chains."""

    trusted: list[bytes]
    keys: list[tuple[bytes, list[bytes]]]  # encrypted keys: `decrypt_key`


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def take(self, count: int) -> bytes:
        piece = self.data[self.position : self.position + count]
        if len(piece) != count:
            raise Truncated("the key store ends in the middle of an entry", self.position)
        self.position += count
        return piece

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def certificate(self, version: int) -> bytes:
        if version == 2:
            self.take(self.number(2))  # its type, X.509
        return self.take(self.number(4))


def read_jks(data: bytes, password: str | None) -> KeyStore:
    """The entries. FormatError if it is no such store, WrongPassword if a password is given and does not fit."""
    reader = _Reader(data[:-DIGEST])
    if reader.take(4) != MAGIC:
        raise FormatError("not a JKS key store", 0)
    version = reader.number(4)
    if version not in (1, 2):
        raise FormatError(f"a JKS key store of version {version}", 4)
    if password and not compare_digest(
        sha1(_utf16(password) + TAIL + data[:-DIGEST], usedforsecurity=False).digest(), data[-DIGEST:]
    ):
        raise WrongPassword
    store = KeyStore([], [])
    for _ in range(reader.number(4)):
        kind = reader.number(4)
        reader.take(reader.number(2))  # its alias
        reader.take(8)  # its date
        if kind == PRIVATE_KEY:
            key = reader.take(reader.number(4))
            store.keys.append((key, [reader.certificate(version) for _ in range(reader.number(4))]))
        elif kind == TRUSTED:
            store.trusted.append(reader.certificate(version))
        else:
            raise FormatError(f"an entry of kind {kind}", reader.position)
    return store


def decrypt_key(entry: bytes, password: str) -> bytes:
    """The key of an entry as PKCS #8 in DER. FormatError if the entry is cut off, WrongPassword."""
    # EncryptedPrivateKeyInfo: a sequence of the algorithm's identifier and the octets.
    outer = [content for _, content in _elements(entry)][:1]
    encrypted = [b"", *(content for content in outer for _, content in _elements(content))][-1]
    if len(encrypted) < 2 * DIGEST:
        raise Truncated("the key is cut off", len(encrypted))
    salt, body, check = encrypted[:DIGEST], encrypted[DIGEST:-DIGEST], encrypted[-DIGEST:]
    word, stream, digest = _utf16(password), bytearray(), salt
    while len(stream) < len(body):
        digest = sha1(word + digest, usedforsecurity=False).digest()
        stream += digest
    key = bytes(a ^ b for a, b in zip(body, stream, strict=False))
    if not compare_digest(sha1(word + key, usedforsecurity=False).digest(), check):
        raise WrongPassword
    return key


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tags and contents of the DER elements that stand one behind the other."""
    position = 0
    while position + 2 <= len(data):
        tag, size = data[position], data[position + 1]
        position += 2
        if size & 0x80:
            count = size & 0x7F
            size = int.from_bytes(data[position : position + count])
            position += count
        if position + size > len(data):
            raise Truncated("a DER element is cut off", position)
        yield tag, data[position : position + size]
        position += size
