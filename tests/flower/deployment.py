"""A SuperLink and SuperNodes on loopback, with TLS and node authentication; all of it is ended, also grandchildren."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

BIN = Path(sys.executable).parent
MARK = "FEDKIN_TEST_DEPLOYMENT"  # an environment variable that all processes of a deployment have
PLAIN = serialization.NoEncryption()


def free_ports(number: int) -> list[int]:
    """Ports that nobody listens at now."""
    held = [socket.socket() for _ in range(number)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in held]
    for one in held:
        one.close()
    return ports


def certificates(folder: Path) -> None:
    """A certificate authority of one's own, and the server's certificate by it."""
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("fedkin test", "127.0.0.1")]
    begin, end = datetime.now(UTC) - timedelta(hours=1), datetime.now(UTC) + timedelta(days=1)
    here = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("localhost")])

    def signed(subject: int, *extensions: Any) -> bytes:
        made = x509.CertificateBuilder().subject_name(names[subject]).issuer_name(names[0])
        made = made.public_key(keys[subject].public_key()).serial_number(x509.random_serial_number())
        made = made.not_valid_before(begin).not_valid_after(end)
        made = made.add_extension(x509.BasicConstraints(ca=subject == 0, path_length=None), critical=True)
        for extension in extensions:
            made = made.add_extension(extension, critical=False)
        return made.sign(keys[0], hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    (folder / "ca.crt").write_bytes(signed(0))
    (folder / "server.pem").write_bytes(signed(1, here))
    form = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
    (folder / "server.key").write_bytes(keys[1].private_bytes(*form, PLAIN))


def node_key(folder: Path, name: str) -> None:
    """The private and the public key of a node."""
    key = ec.generate_private_key(ec.SECP384R1())
    form = serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH
    (folder / f"{name}.key").write_bytes(key.private_bytes(*form, PLAIN))
    public = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    (folder / f"{name}.pub").write_bytes(key.public_key().public_bytes(*public))


@dataclass
class Deployment:
    """A SuperLink, and SuperNodes by name. Use it in a `with` block; whatever happens, all processes are ended."""

    folder: Path
    names: tuple[str, ...]
    mark: str = field(default_factory=lambda: uuid4().hex)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    logs: list[IO[bytes]] = field(default_factory=list)

    def __enter__(self) -> Deployment:
        try:
            self.begin()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def begin(self) -> None:
        self.folder.mkdir(parents=True)
        certificates(self.folder)
        home = self.folder / "home"
        home.mkdir()
        self.port, *self.ports = free_ports(1 + len(self.names))
        address = f'address = "127.0.0.1:{self.port}"\nroot-certificates = "{self.folder / "ca.crt"}"\n'
        (home / "config.toml").write_text(f'[superlink]\ndefault = "here"\n\n[superlink.here]\n{address}')
        here = {"FLWR_HOME": str(home), "HOME": str(home), MARK: self.mark, "FLWR_TELEMETRY_ENABLED": "0"}
        here["FLWR_DISABLE_UPDATE_CHECK"] = "1"
        self.env = os.environ | here | {"PATH": f"{BIN}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
        secured = [
            f"--ssl-{kind}={self.folder / name}"
            for kind, name in (("ca-certfile", "ca.crt"), ("certfile", "server.pem"), ("keyfile", "server.key"))
        ]
        link = [*secured, "--enable-supernode-auth", f"--database={self.folder / 'link.db'}"]
        link += ["--disable-runtime-dependency-installation", "--host=127.0.0.1", f"--port={self.port}"]
        self.start("superlink", "flower-superlink", *link)
        self.listening(self.port, 60)
        for name, port in zip(self.names, self.ports, strict=True):
            node_key(self.folder, name)
            self.flwr("supernode", "register", str(self.folder / f"{name}.pub"), "here")
            self.node(name, port)

    def node(self, name: str, port: int) -> None:
        """Start the SuperNode of a site."""
        config = f'name="{name}" folder="{self.folder / "sites" / name}"'
        more = ["--root-certificates", str(self.folder / "ca.crt"), "--superlink", f"127.0.0.1:{self.port}"]
        more += ["--port", str(port), "--node-config", config]
        more += ["--auth-supernode-private-key", str(self.folder / f"{name}.key")]
        self.start(name, "flower-supernode", *more)

    def start(self, name: str, program: str, *words: str) -> None:
        log = open(self.folder / f"{name}.log", "ab")  # noqa: SIM115 - the process writes to it until the end
        self.logs.append(log)
        how: dict[str, Any] = {"stdout": log, "stderr": log, "stdin": subprocess.DEVNULL, "start_new_session": True}
        self.processes[name] = subprocess.Popen([str(BIN / program), *words], env=self.env, cwd=self.folder, **how)

    def listening(self, port: int, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.2)
        raise TimeoutError(f"nobody listens at {port}: {self.log('superlink')}")

    def flwr(self, *words: str, seconds: float = 60) -> str:
        """What a command of Flower's says; it has so many seconds."""
        done = subprocess.run(
            [str(BIN / "flwr"), *words], env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=seconds
        )
        assert done.returncode == 0, done.stdout + done.stderr + self.log("superlink")
        return done.stdout + done.stderr

    def log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace")[-3000:] if path.exists() else ""

    def end(self) -> None:
        """End every process that was started here, and every process that one of them started."""
        for _ in range(50):
            left = self.pids()
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            for process in self.processes.values():
                process.poll()
            if not left:
                break
            time.sleep(0.1)
        for log in self.logs:
            log.close()

    def pids(self) -> list[int]:
        """The processes that carry this deployment's mark in their environment."""
        mark, found = f"{MARK}={self.mark}".encode(), []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found
