"""A SuperLink and SuperNodes of Flower's own on loopback, with TLS and node authentication."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from fedkin.federation.certificates import certify, node_key
from fedkin.federation.processes import Processes, environment, free_port, listens

BIN = Path(sys.executable).parent


@dataclass
class Deployment:
    """A SuperLink, and SuperNodes by name. Use it in a `with` block; whatever happens, all processes are ended."""

    folder: Path
    names: tuple[str, ...]

    def __enter__(self) -> Deployment:
        home = self.folder / "home"
        home.mkdir(parents=True)
        self.more = {"FLWR_HOME": str(home), "HOME": str(home)}
        self.processes = Processes(self.folder / "logs", self.more)
        try:
            self.processes.__enter__()
            self.begin(home)
        except BaseException:
            self.processes.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.processes.end()

    def begin(self, home: Path) -> None:
        certify(self.folder, ["127.0.0.1"])
        self.port = free_port()
        address = f'address = "127.0.0.1:{self.port}"\nroot-certificates = "{self.folder / "ca.crt"}"\n'
        (home / "config.toml").write_text(f'[superlink]\ndefault = "here"\n\n[superlink.here]\n{address}')
        secured = [
            f"--ssl-{kind}={self.folder / name}"
            for kind, name in (("ca-certfile", "ca.crt"), ("certfile", "server.pem"), ("keyfile", "server.key"))
        ]
        link = [*secured, "--enable-supernode-auth", f"--database={self.folder / 'link.db'}"]
        link += ["--disable-runtime-dependency-installation", "--host=127.0.0.1", f"--port={self.port}"]
        self.processes.start("superlink", str(BIN / "flower-superlink"), *link)
        end = time.monotonic() + 60
        while not listens(self.port):
            self.processes.check()
            assert time.monotonic() < end, self.processes.log("superlink")
            time.sleep(0.2)
        for name in self.names:
            node_key(self.folder / f"{name}.key", self.folder / f"{name}.pub")
            self.flwr("supernode", "register", str(self.folder / f"{name}.pub"), "here")
            self.node(name)

    def node(self, name: str) -> None:
        """Start the SuperNode of a site."""
        config = f'name="{name}" folder="{self.folder / "sites" / name}"'
        more = ["--root-certificates", str(self.folder / "ca.crt"), "--superlink", f"127.0.0.1:{self.port}"]
        more += ["--port", str(free_port()), "--node-config", config]
        more += ["--auth-supernode-private-key", str(self.folder / f"{name}.key")]
        self.processes.start(name, str(BIN / "flower-supernode"), *more)

    def flwr(self, *words: str, seconds: float = 60) -> str:
        """What a command of Flower's says; it has so many seconds."""
        command, how = [str(BIN / "flwr"), *words], {"capture_output": True, "text": True, "timeout": seconds}
        done = subprocess.run(command, env=environment(self.more), cwd=self.folder, **how)  # type: ignore[call-overload]
        assert done.returncode == 0, done.stdout + done.stderr + self.processes.log("superlink")
        return str(done.stdout + done.stderr)
