"""The TLS settings as a context of the standard library, built before the first connection.

Files are PEM, PKCS #12 or JKS by what they hold, whatever they are called; a value that begins with -----BEGIN is PEM itself.
Every mistake in them is found here, and named with the file. OpenSSL never asks for a password.
"""

from __future__ import annotations

import contextlib
import os
import ssl
from base64 import encodebytes
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple, NoReturn, Protocol

from formats.errors import FormatError
from formats.jks import MAGIC as JKS
from formats.jks import SECRET_KEYS_MAGIC, KeyStore, WrongPassword, decrypt_key, read_jks
from kctl.errors import BadValue, KctlError, file_error
from kctl.files import read_whole

LARGEST_STORE = 4 << 20  # bytes
BEGIN, END = b"-----BEGIN ", b"-----END "
PKCS12 = b"\x02\x01\x03"  # in a sequence: version 3


class TlsSettings(Protocol):
    """What is set about TLS, by the names of a context."""

    @property
    def tls_ca(self) -> str | None: ...
    @property
    def tls_ca_password(self) -> str | None: ...
    @property
    def tls_certificate(self) -> str | None: ...
    @property
    def tls_certificate_password(self) -> str | None: ...
    @property
    def tls_key(self) -> str | None: ...
    @property
    def tls_key_password(self) -> str | None: ...
    @property
    def tls_check_hostname(self) -> bool: ...


class Pem(NamedTuple):
    """Blocks of PEM: certificates, and a private key."""

    certificates: bytes
    key: bytes


def without_checks() -> ssl.SSLContext:
    """A context that takes any certificate: to look at a server, never to send something to it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class BadTls(KctlError):
    """A file of the TLS settings cannot be used."""

    hint = (
        "correct the file or the setting; `openssl x509 -in FILE -text` shows what a certificate file holds"
    )


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """The context for connections to servers. Raises KctlError with the file and the reason."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = settings.tls_check_hostname
    if settings.tls_ca:
        _trust(context, settings.tls_ca, settings.tls_ca_password)
    else:
        context.load_default_certs()
    if settings.tls_certificate:
        _present(context, settings, settings.tls_certificate)
    elif settings.tls_key:
        raise BadTls(
            f"tls_key {_name(settings.tls_key)} is set without tls_certificate",
            "name the certificate as well",
        )
    return context


def _trust(context: ssl.SSLContext, ca: str, password: str | None) -> None:
    data = _contents(ca, "tls_ca")
    pem = _read(data, ca, "tls_ca", password, None)
    if not pem.certificates:
        raise BadTls(f"tls_ca {_name(ca)}: {_lack(data, 'certificate')}")
    try:
        context.load_verify_locations(cadata=pem.certificates.decode("ascii", "replace"))
    except (ssl.SSLError, ValueError) as error:
        raise BadTls(f"tls_ca {_name(ca)}: a certificate in it is damaged ({_reason(error)})") from None


def _present(context: ssl.SSLContext, settings: TlsSettings, certificate: str) -> None:
    """Load the certificate and the key of the client."""
    data = _contents(certificate, "tls_certificate")
    own = _read(
        data,
        certificate,
        "tls_certificate",
        settings.tls_certificate_password or settings.tls_key_password,
        settings.tls_key_password or settings.tls_certificate_password,
    )
    if not own.certificates:
        raise BadTls(f"tls_certificate {_name(certificate)}: {_lack(data, 'certificate')}")
    key, place, setting = own.key, certificate, "tls_certificate"
    if settings.tls_key:
        place, setting = settings.tls_key, "tls_key"
        data = _contents(place, setting)
        key = _read(data, place, setting, settings.tls_key_password, settings.tls_key_password).key
    if not key:
        raise BadTls(
            f"{setting} {_name(place)}: {_lack(data, 'private key')}", "name the file of the key: tls_key"
        )
    # A store's key was decrypted with the store.
    password = settings.tls_key_password or settings.tls_certificate_password

    def key_password() -> str:
        return password or password_of(_name(place))

    try:
        with _file_of(own.certificates + key) as path:
            context.load_cert_chain(path, password=key_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise BadTls(
                f"{setting} {_name(place)}: the key is not that of the first certificate in {_name(certificate)}",
                "name the key that the certificate was made for",
            ) from None
        if b"ENCRYPTED" in key:
            _refuse_password(setting, place)
        raise BadTls(
            f"{setting} {_name(place)}: the certificate or the key is damaged ({_reason(error)})"
        ) from None
    except ValueError as error:  # a password longer than OpenSSL takes
        raise BadTls(f"{setting} {_name(place)}: {error}") from None


def _read(data: bytes, place: str, setting: str, password: str | None, key_password: str | None) -> Pem:
    """What stands in PEM, PKCS #12 or JKS."""
    if data.startswith(JKS):
        return _read_jks(data, place, setting, password, key_password)
    if data.startswith(SECRET_KEYS_MAGIC):
        raise BadTls(
            f"{setting} {_name(place)} is a JCEKS key store, which kctl does not read",
            f"keytool -importkeystore -srckeystore {_name(place)} -srcstoretype JCEKS -destkeystore NEW.p12 -deststoretype PKCS12",
        )
    if data[:1] == b"\x30":
        if data[2 : 2 + len(PKCS12) + 4].find(PKCS12) in range(5):
            return _read_pkcs12(data, place, setting, password)
        raise BadTls(
            f"{setting} {_name(place)} is DER, not PEM",
            f"openssl x509 -inform DER -in {_name(place)} -out NEW.pem writes a certificate as PEM",
        )
    blocks = list(_blocks(data))
    certificates = (block for label, block in blocks if label.endswith(b"CERTIFICATE"))
    keys = (block for label, block in blocks if label.endswith(b"PRIVATE KEY"))
    return Pem(b"".join(certificates), next(keys, b""))


def _read_jks(data: bytes, place: str, setting: str, password: str | None, key_password: str | None) -> Pem:
    try:
        store = read_jks(data, password)
        if setting == "tls_ca":
            return Pem(_pem(b"CERTIFICATE", store.trusted), b"")
        return _first_key(store, place, password, key_password)
    except WrongPassword:
        _refuse_password(setting, place)
    except FormatError as error:
        raise BadTls(f"{setting} {_name(place)}: the key store is damaged ({error})") from None


def _first_key(store: KeyStore, place: str, password: str | None, key_password: str | None) -> Pem:
    if not store.keys:
        return Pem(_pem(b"CERTIFICATE", store.trusted), b"")
    key, chain = store.keys[0]
    word = key_password or password or password_of(_name(place))
    return Pem(_pem(b"CERTIFICATE", chain), _pem(b"PRIVATE KEY", [decrypt_key(key, word)]))


def _read_pkcs12(data: bytes, place: str, setting: str, password: str | None) -> Pem:
    try:
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
            pkcs12,
        )
    except ImportError as error:
        raise KctlError(
            f"{setting} {_name(place)} is PKCS #12, which needs the extra `keystores`",
            "pip install 'kctl[keystores]', or write it as PEM: openssl pkcs12 -in FILE -out NEW.pem",
        ) from error

    def read(word: str | None) -> pkcs12.PKCS12KeyAndCertificates:
        return pkcs12.load_pkcs12(data, word.encode() if word is not None else None)

    try:
        store = read(password)
    except ValueError:
        if password is not None:
            _refuse_password(setting, place, " or the file is damaged")
        try:
            store = read(password_of(_name(place)))
        except ValueError:
            _refuse_password(setting, place, " or the file is damaged")
    held = [*([store.cert] if store.cert else []), *store.additional_certs]
    certificates = b"".join(item.certificate.public_bytes(Encoding.PEM) for item in held)
    if store.key is None:
        return Pem(certificates, b"")
    return Pem(certificates, store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def _contents(place: str, setting: str) -> bytes:
    """The bytes of a file, or the PEM that stands in the setting itself."""
    if is_inline(place):
        return place.encode("utf-8", "surrogateescape")
    try:
        return read_whole(place, LARGEST_STORE, follow=True)
    except OSError as error:
        raise file_error(f"{setting} {place}", error, BadTls) from None


def is_inline(value: str) -> bool:
    """Whether the setting is PEM itself and not the name of a file."""
    return "-----BEGIN" in value


def _name(place: str) -> str:
    return "(PEM in the setting)" if is_inline(place) else place


def _blocks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Labels and text of the PEM blocks; properties may hold one with blanks in place of its line ends."""
    label, lines = b"", list[bytes]()
    for line in data.replace(END, b"\n" + END).replace(b"----- ", b"-----\n").splitlines():
        line = line.strip()
        if line.startswith(BEGIN):
            label, lines = line[len(BEGIN) :].rstrip(b"-"), [line]
        elif label and line.startswith(END):
            yield label, b"\n".join([*lines, line, b""])
            label = b""
        elif label and b":" in line:  # a header of an encrypted key, which a blank line ends
            lines[1:] = [*(header for header in lines[1:] if header), line, b""]
        elif label:
            lines += _wrapped(line)


def _wrapped(line: bytes) -> list[bytes]:
    digits = b"".join(line.split())
    return [digits[at : at + 64] for at in range(0, len(digits), 64)]


def _pem(label: bytes, contents: Sequence[bytes]) -> bytes:
    return b"".join(
        BEGIN + label + b"-----\n" + encodebytes(der) + END + label + b"-----\n" for der in contents
    )


def _lack(data: bytes, thing: str) -> str:
    labels = sorted({label.decode("ascii", "replace").lower() for label, _ in _blocks(data)})
    if not data:
        return "the file is empty"
    return f"no {thing} in it, only {', '.join(labels)}" if labels else f"no {thing} in it: it is not PEM"


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error).split(" (_ssl")[0]).lower().replace("_", " ")
    return str(error).lower()


def _refuse_password(setting: str, place: str, otherwise: str = "") -> NoReturn:
    names = "tls_ca_password" if setting == "tls_ca" else "tls_key_password, tls_certificate_password"
    raise BadTls(f"{setting} {_name(place)}: the password is wrong{otherwise}", f"check {names}")


def has_terminal() -> bool:
    """Whether there is a terminal to ask on."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


@cache
def password_of(place: str) -> str:
    """The password of a file, asked for once on the terminal. Raises BadValue where there is none."""
    from getpass import getpass

    if not has_terminal():
        raise BadValue(
            f"{place} is encrypted, and no password is set",
            "set KCTL_TLS_KEY_PASSWORD, or tls_key_password_command in the context",
        )
    try:
        return getpass(f"Password of {place}: ")
    except EOFError:
        raise BadValue(f"{place} is encrypted, and no password was given", "type it when asked") from None


@contextlib.contextmanager
def _file_of(data: bytes) -> Iterator[str]:
    """A file that holds the bytes for as long as the block runs: OpenSSL takes keys from files only.

    It lies in memory where the system can do that, since a key that was decrypted belongs on no disk.
    """
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("tls", os.MFD_CLOEXEC)
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            yield f"/proc/self/fd/{number}"
        return
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        yield file.name
