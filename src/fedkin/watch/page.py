"""The watch page before it knows anything: the report's style and scripts, and one that asks for what is new."""

from __future__ import annotations

from importlib.resources import files

from fedkin.report import page, scripts

POLICY = f"{page.POLICY}; connect-src 'self'"
STORES = ["figures", "sites", "rounds", "kin"]  # a live page may come to have each of them


def watch_page(name: str) -> str:
    """The page of a folder of this name. Its content comes by the first answer, like every later change."""
    style = scripts.style() + asset("watch.css")
    script = scripts.script(STORES) + asset("watch.js")
    return page.shell(f"{name}: fedkin watch", POLICY, style, "", "", script)


def asset(name: str) -> str:
    return "\n" + files("fedkin.watch").joinpath("assets", name).read_text(encoding="utf-8")
