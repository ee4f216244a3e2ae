"""Authorities and certificates for tests, made in memory; keys on P-256, since RSA takes long."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)


class Certificate(NamedTuple):
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key_pem(self, password: str | None = None) -> str:
        how = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how).decode()

    def pkcs12(self, password: str, *others: Certificate) -> bytes:
        others_ = [other.certificate for other in others]
        how = BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(b"me", self.key, self.certificate, others_, how)

    def server_context(self, folder: Path, client_ca: Certificate | None = None) -> ssl.SSLContext:
        """A server with this certificate, which requires one of clients if an authority of theirs is given."""
        (folder / "server.pem").write_text(self.pem + self.key_pem())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem")
        if client_ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=client_ca.pem)
        return context


def made(
    name: str,
    signer: Certificate | None = None,
    *,
    names: tuple[str, ...] = (),
    days: tuple[float, float] = (-1, 2),
) -> Certificate:
    """A certificate for host names and addresses; without a signer that of an authority. `days`: validity from now."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer.certificate.subject if signer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=days[0]))
        .not_valid_after(now + timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(ca=signer is None, path_length=None), critical=True)
    )
    if names:
        alternatives = [
            x509.IPAddress(ipaddress.ip_address(text)) if text[0].isdigit() else x509.DNSName(text)
            for text in names
        ]
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return Certificate(builder.sign(signer.key if signer else key, hashes.SHA256()), key)
