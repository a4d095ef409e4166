"""The files of the page's style and scripts can be read, and are part of the package that is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from fedkin.report import scripts

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fedkin"


def test_package_data_is_every_file_that_is_not_python() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    named = {pattern: set(PACKAGE.glob(pattern)) for pattern in settings["fedkin"]}
    assert all(named.values()), f"a pattern without files: {named}"
    others = {path for path in PACKAGE.rglob("*.*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert set().union(*named.values()) == others


def test_every_script_is_in_a_page() -> None:
    whole = scripts.script(["figures", "sites", "rounds", "kin"])
    for path in (PACKAGE / "report" / "assets").glob("*.js"):
        assert path.read_text() in whole, path
    assert scripts.asset("style.css") == scripts.style()


def test_the_scripts_can_be_read() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    checked = f"new Function({json.dumps(scripts.script(['figures', 'sites', 'rounds', 'kin']))})"
    subprocess.run([node, "-"], input=checked, capture_output=True, text=True, check=True, timeout=60)
