"""The folder of a federation: what is in it, who can read it, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key
from flwr.cli.build import build_fab_from_disk
from flwr.cli.config_utils import load_and_validate

import fedkin as fk
from fedkin.federation.folder import Address, Folder, write
from fedkin.federation.site import settings
from fedkin.federation.texts import methods_of
from fedkin.imports import user_module

NAMES = ["berlin", "New York", "a.b-c"]
HERE = Address("fed.example.org", 9443)
PRIVATE = ["server/ca.key", "server/server.key", "state/secret", *(f"sites/{name}/site.key" for name in NAMES)]


@pytest.fixture
def made(tmp_path: Path) -> Folder:
    return write(tmp_path / "study", NAMES, method="fedavg fedmcsa", rounds=7, address=HERE, target="outcome")


@pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")  # Flower's own
def test_a_new_folder_is_a_flower_app(made: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    _, warnings = load_and_validate(made.app / "pyproject.toml")
    assert not warnings
    assert build_fab_from_disk(made.app)
    config = made.config()
    assert [method.name for method in methods_of(config["method"], config["set"])] == ["fedavg", "fedmcsa"]
    assert (config["rounds"], config["model"], made.names) == (7, "mlr", NAMES)
    monkeypatch.chdir(made.app)
    monkeypatch.setattr(sys, "path", [str(made.app), *sys.path])
    for name, kind in (("server_app", "ServerApp"), ("client_app", "ClientApp")):
        assert type(user_module(name, "The app").app).__name__ == kind
        monkeypatch.delitem(sys.modules, name)


def test_nobody_else_reads_private_files(made: Folder) -> None:
    for name in PRIVATE:
        assert (made.path / name).stat().st_mode & 0o777 == 0o600, name
    private = {made.path / name for name in PRIVATE}
    for path in made.path.rglob("*"):
        if path.is_file() and path not in private:
            assert b"PRIVATE KEY" not in path.read_bytes(), path
    for name in ("server", "state", *(f"sites/{name}" for name in NAMES)):
        assert (made.path / name).stat().st_mode & 0o777 == 0o700, name


def test_a_repository_takes_no_private_file(made: Folder) -> None:
    subprocess.run(["git", "init", "--quiet", str(made.path)], check=True)
    asked = ["git", "-C", str(made.path), "check-ignore", *PRIVATE, "README.md"]
    assert subprocess.run(asked, capture_output=True, text=True).stdout.splitlines() == PRIVATE


def test_certificates_are_for_the_address(made: Folder) -> None:
    authority, server = (
        x509.load_pem_x509_certificate((made.server / name).read_bytes()) for name in ("ca.crt", "server.pem")
    )
    server.verify_directly_issued_by(authority)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["fed.example.org", "localhost"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert not server.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_what_a_site_gets(made: Folder) -> None:
    for name in NAMES:
        site = made.site(name)
        key = load_ssh_private_key((site / "site.key").read_bytes(), None)
        public = load_ssh_public_key(made.public_key(name).read_bytes())
        assert key.public_key().public_numbers() == public.public_numbers()  # type: ignore[union-attr]
        assert os.access(site / "start.sh", os.X_OK)
        assert tomllib.loads((site / "site.toml").read_text()) == {
            "name": name,
            "server": "fed.example.org:9443",
            "data": "",
            "target-column": "outcome",
            "folder": "kept",
        }
    page = (made.path / "README.md").read_text()
    assert "fed.example.org:9443" in page
    assert "New York" in page
    assert "{" not in page


def test_a_site_says_what_its_folder_lacks(made: Folder) -> None:
    site = made.site("berlin")
    with pytest.raises(fk.BadInput, match=r"Name the file with this site's data in .*site.toml"):
        settings(site)
    text = (site / "site.toml").read_text()
    (site / "site.toml").write_text(text.replace('data = ""', 'data = "rows.csv"'))
    with pytest.raises(fk.BadInput, match=r"There is no file .*rows.csv"):
        settings(site)
    (site / "rows.csv").write_text("age,outcome\n1,2\n")
    assert settings(site)["name"] == "berlin"
    (site / "site.key").unlink()
    with pytest.raises(fk.BadInput, match=r"is not the folder of a site: it has no site.key"):
        settings(site)


REFUSED: dict[str, tuple[list[str], dict[str, Any], str]] = {
    "no sites": ([], {}, "A federation has sites"),
    "one site": (["a"], {}, "at least two sites"),
    "a name twice": (["a", "b", "A"], {}, "Two sites are called 'a'"),
    "a path": (["a", "b/c"], {}, "'b/c' is none"),
    "a hidden folder": (["a", "..", "b"], {}, "'..' is none"),
    "an unknown method": (["a", "b"], {"method": "fedavgg"}, "did you mean fedavg"),
    "an unknown model": (["a", "b"], {"model": "mlpp"}, "There is no model called 'mlpp'"),
    "no rounds": (["a", "b"], {"rounds": 0}, "at least one round"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(tmp_path: Path, case: str) -> None:
    names, options, words = REFUSED[case]
    with pytest.raises(fk.BadInput, match=words):
        write(tmp_path / "study", names, address=HERE, **options)
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("text", ["example.org", "example.org:", ":9443", "example.org:99999", "a b:1", "http://a:1"])
def test_an_address_that_is_none(text: str) -> None:
    with pytest.raises(fk.BadInput, match="An address is HOST:PORT"):
        Address.read(text)


def test_a_folder_that_is_there_is_not_touched(made: Folder) -> None:
    key = (made.server / "ca.key").read_bytes()
    with pytest.raises(fk.BadInput, match="is there already"):
        write(made.path, NAMES, address=HERE)
    assert (made.server / "ca.key").read_bytes() == key


def test_a_folder_that_is_no_federation(tmp_path: Path) -> None:
    with pytest.raises(fk.BadInput, match="fedkin federation init"):
        Folder.of(tmp_path)


def test_without_flower_it_is_one_sentence(tmp_path: Path) -> None:
    code = "import sys; sys.modules['flwr'] = None; from fedkin.command.cli import main; main()"
    words = ["federation", "init", str(tmp_path / "study"), "--sites", "a,b"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "fedkin: Flower is not installed; install it with: pip install 'fedkin[flower]'."
    ]
