"""The folder of a federation, from which a server is run and of which every site gets a folder of its own.

README.md                who does what
app/                     the Flower app: what is learnt
server/                  certificates and private keys of the server; keys/ has the public ones of the sites
sites/<name>/            to hand over: the site's key, the server's certificate, site.toml, its app, a start script
runs/                    what was played
state/                   what the server's processes keep: a database, logs, a secret
"""

from __future__ import annotations

import re
import secrets
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from shutil import rmtree
from typing import Any

from fedkin import models
from fedkin.errors import BadInput, require, unknown
from fedkin.federation import certificates
from fedkin.federation.texts import methods_of, quoted, template, words_of

NAME = re.compile(r"[\w][\w .-]*(?<![ .])")
SECRETS = ("*.key", "state/", "kept/", "runs/")  # what no repository should have
HOST = re.compile(r"[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]")


@dataclass(frozen=True)
class Address:
    """Where sites reach the server."""

    host: str
    port: int

    @staticmethod
    def read(text: str) -> Address:
        """Return the address that a text is, as HOST:PORT."""
        host, _, port = text.rpartition(":")
        fits = HOST.fullmatch(host) and port.isdigit() and 0 < int(port) < 65536
        require(fits, f"An address is HOST:PORT, as fed.example.org:9443, and not '{text}'.")
        return Address(host, int(port))

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def here(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return self.host == "localhost" or ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True)
class Folder:
    """The folder of a federation."""

    path: Path

    @property
    def app(self) -> Path:
        return self.path / "app"

    @property
    def server(self) -> Path:
        return self.path / "server"

    @property
    def state(self) -> Path:
        return self.path / "state"

    @property
    def runs(self) -> Path:
        return self.path / "runs"

    @property
    def secret(self) -> Path:
        """By this the server's own processes know each other."""
        return self.state / "secret"

    def site(self, name: str) -> Path:
        """Return the folder that a site gets."""
        return self.path / "sites" / name

    def public_key(self, name: str) -> Path:
        """Return the public key of a site."""
        return self.server / "keys" / f"{name}.pub"

    @staticmethod
    def of(path: Path) -> Folder:
        """Return the folder of a federation that is there; refuses any other folder."""
        found = Folder(path.resolve())
        is_one = (found.server / "server.toml").is_file() and (found.app / "pyproject.toml").is_file()
        require(is_one, f"{path} is not the folder of a federation; make one with: fedkin federation init {path}")
        return found

    def config(self) -> dict[str, Any]:
        """Return what the app is set to do."""
        try:
            found: dict[str, Any] = read_toml(self.app / "pyproject.toml")["tool"]["flwr"]["app"]["config"]
        except (KeyError, TypeError):
            raise BadInput(f"{self.app / 'pyproject.toml'} has no [tool.flwr.app.config].") from None
        return found

    @property
    def names(self) -> list[str]:
        """The sites."""
        return words_of(self.config().get("sites", ""))

    @property
    def address(self) -> Address:
        """Where sites reach the server."""
        return Address.read(str(read_toml(self.server / "server.toml").get("address")))


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a file says; refuses one that is not TOML."""
    try:
        return tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read: {error}.") from error


def write(
    path: Path,
    names: Sequence[str],
    *,
    method: str = "fedmcsa",
    rounds: int = 20,
    model: str = "mlr",
    address: Address,
    target: str = "",
    data: str = "",
    settings: str = "",
) -> Folder:
    """Write the folder of a federation with these sites, ready to be used."""
    check_names(names)
    require(rounds > 0, f"A run has at least one round, not {rounds}.")
    methods_of(method, settings)
    if model.partition(":")[0] not in models.MODELS:
        raise unknown("model", model, models.MODELS)
    require(not path.exists(), f"{path} is there already; choose a folder that is not, so that no key is lost.")
    folder = Folder(path.resolve())
    try:
        fill(folder, names, method, rounds, model, address, target, data, settings)
    except BaseException:  # half a federation is of no use, and would be in the way of the next try
        rmtree(folder.path, ignore_errors=True)
        raise
    return folder


def fill(
    folder: Folder,
    names: Sequence[str],
    method: str,
    rounds: int,
    model: str,
    address: Address,
    target: str,
    data: str,
    settings: str,
) -> None:
    """Write everything that lies in the folder of a federation."""
    for place in (folder.app, folder.server / "keys", folder.state, folder.runs, *map(folder.site, names)):
        place.mkdir(parents=True)
    for private in (folder.server, folder.state, *map(folder.site, names)):
        private.chmod(0o700)
    facts = {"method": method, "model": model, "sites": ",".join(names), "settings": settings}
    filled = {name: quoted(value) for name, value in facts.items()} | {"rounds": str(rounds)}
    (folder.app / "pyproject.toml").write_text(template("app.toml").format(**filled))
    for name in ("server_app", "client_app"):
        (folder.app / f"{name}.py").write_text(template(f"{name}.txt"))
    certificates.certify(folder.server, [address.host.strip("[]"), "127.0.0.1", "localhost"])
    certificates.write_private(folder.secret, secrets.token_bytes(32))
    (folder.server / "server.toml").write_text(f"address = {quoted(str(address))}\n")
    write_script(folder.server / "start.sh", "server_start.sh")
    for name in names:
        write_site(folder, name, address, target, data)
    said = {"count": len(names), "names": ", ".join(names), "method": method, "rounds": rounds, "address": address}
    (folder.path / "README.md").write_text(template("README.md").format(**said))
    (folder.path / ".gitignore").write_text("".join(f"{one}\n" for one in SECRETS))


def write_site(folder: Folder, name: str, address: Address, target: str, data: str) -> None:
    """Write the folder that a site gets."""
    site = folder.site(name)
    certificates.node_key(site / "site.key", folder.public_key(name))
    (site / certificates.CERTIFICATE).write_bytes((folder.server / certificates.CERTIFICATE).read_bytes())
    (site / "client_app.py").write_text(template("client_app.txt"))
    write_script(site / "start.sh", "site_start.sh")
    facts = {"name": name, "server": str(address), "data": data, "target": target}
    filled = {key: quoted(value) for key, value in facts.items()}
    (site / "site.toml").write_text(template("site.toml").format(**filled))


def write_script(path: Path, name: str) -> None:
    """Write a script that can be started."""
    path.write_text(template(name))
    path.chmod(0o755)


def check_names(names: Sequence[str]) -> None:
    """Refuse names of sites that cannot be the names of folders, and a name that two sites have."""
    require(names, "A federation has sites; name them as in --sites berlin,paris,rome.")
    require(len(names) > 1, "A federation has at least two sites; one alone needs none.")
    for name in names:
        fits = NAME.fullmatch(name) and len(name) <= 64
        require(fits, f"A site's name has letters, digits, spaces, dots and dashes, and '{name}' is none.")
    folded = [name.casefold() for name in names]
    twice = next((name for name, other in zip(names, folded, strict=True) if folded.count(other) > 1), None)
    require(twice is None, f"Two sites are called '{twice}'; give each its own name.")
