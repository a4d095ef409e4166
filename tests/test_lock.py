"""What tests install is locked: the versions that we choose and all that pyproject.toml asks for, with check sums."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
LEFT_OUT = "torch"  # its build, and so its check sum, depends on the machine


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked() -> dict[str, str]:
    """The entries of the lock: the text from a name to the next one, by name."""
    text = "\n".join(line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#"))
    entries = re.split(r"\n(?=[A-Za-z0-9])", text.strip())
    return {canonical(entry.partition("==")[0]): entry for entry in entries}


def test_the_lock_has_the_versions_that_we_choose() -> None:
    for line in (ROOT / "constraints.txt").read_text().split():
        name, _, version = line.partition("==")
        if name != LEFT_OUT:
            assert re.match(rf"\S+=={re.escape(version)}\s", locked()[canonical(name)]), f"{line}: make lock"


def test_the_lock_has_all_that_is_asked_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    inner = re.search(r"fedkin\[(.*)\]", " ".join(extras["dev"]))
    assert inner is not None
    asked = [
        *project["dependencies"],
        *(text for name in ("dev", "report", *inner[1].split(",")) for text in extras[name]),
    ]
    names = {canonical(re.split(r"[\[<>=;! ]", text)[0]) for text in asked} - {"fedkin", LEFT_OUT}
    assert names <= set(locked()), "make lock"
    assert LEFT_OUT not in locked()


def test_every_file_has_a_check_sum() -> None:
    for name, entry in locked().items():
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), name
        assert "://" not in entry, name
