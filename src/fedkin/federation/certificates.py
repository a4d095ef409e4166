"""Certificates of a server and keys of sites. A private file can be read by its owner only."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAYS = 825  # that a certificate is valid; many programs refuse one of a longer life
CERTIFICATE, SERVER_CERTIFICATE, SERVER_KEY, AUTHORITY_KEY = "ca.crt", "server.pem", "server.key", "ca.key"
Extension = tuple[x509.ExtensionType, bool]  # and whether it is critical


def certify(folder: Path, hosts: Sequence[str]) -> None:
    """Write a certificate authority of one's own, and by it the certificate of a server that has these addresses."""
    authority, server = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    signs = x509.KeyUsage(*[word in ("sign", "crl") for word in KEY_USAGES])
    of_authority: list[Extension] = [(x509.BasicConstraints(ca=True, path_length=0), True), (signs, True)]
    names = x509.SubjectAlternativeName([alternative(host) for host in hosts])
    serves = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    of_server: list[Extension] = [(x509.BasicConstraints(ca=False, path_length=None), True), (names, False)]
    title = "The authority of a fedkin federation"
    write_public(folder / CERTIFICATE, signed(title, authority, title, authority, of_authority))
    by_authority = signed(hosts[0], server, title, authority, [*of_server, (serves, False)])
    write_public(folder / SERVER_CERTIFICATE, by_authority)
    write_private(folder / AUTHORITY_KEY, pem(authority, serialization.PrivateFormat.PKCS8))
    write_private(folder / SERVER_KEY, pem(server, serialization.PrivateFormat.PKCS8))


KEY_USAGES = ("signature", "commitment", "encipherment", "data", "agreement", "sign", "crl", "encipher", "decipher")


def signed(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    by: ec.EllipticCurvePrivateKey,
    extensions: Sequence[Extension],
) -> bytes:
    """Return a certificate."""
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(named(subject)).issuer_name(named(issuer))
    made = made.public_key(key.public_key()).serial_number(x509.random_serial_number())
    made = made.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=DAYS))
    for extension, critical in extensions:
        made = made.add_extension(extension, critical=critical)
    return made.sign(by, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def named(name: str) -> x509.Name:
    """Return a name as certificates have it; they take 64 letters of it."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def alternative(host: str) -> x509.GeneralName:
    """Return an address of a server, a number or a name."""
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def node_key(private: Path, public: Path) -> None:
    """Write the keys of a site: by the private one it proves who it is, by the public one the server knows it."""
    key = ec.generate_private_key(ec.SECP384R1())
    write_private(private, pem(key, serialization.PrivateFormat.OpenSSH))
    form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    write_public(public, key.public_key().public_bytes(*form))


def pem(key: ec.EllipticCurvePrivateKey, form: serialization.PrivateFormat) -> bytes:
    """Return a private key as text."""
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def write_public(path: Path, content: bytes) -> None:
    """Write a file that may be seen."""
    path.write_bytes(content)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that nobody else can read at any time."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
