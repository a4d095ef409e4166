"""A site of a federation: Flower's SuperNode, which asks the server for messages, and this process, which answers."""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from flwr.clientapp import ClientApp

from fedkin.errors import Unfinished, require
from fedkin.federation import launch, worker
from fedkin.federation.certificates import CERTIFICATE, write_private
from fedkin.federation.folder import Address, read_toml
from fedkin.federation.processes import Processes, free_port
from fedkin.imports import imported
from fedkin.runs import files

SETTINGS, KEY, APP = "site.toml", "site.key", "client_app.py"
AGAIN, PAUSE = 30.0, 6.0  # seconds in which a site that the server does not let in tries again, and between two tries
NOT_LET_IN, OTHER_SERVER = "Failed to activate SuperNode", "CERTIFICATE_VERIFY_FAILED"  # words of Flower's log


def settings(folder: Path) -> dict[str, Any]:
    """Return what a site's folder says of it; refuses a folder that is not a site's, or whose data are not named."""
    for name in (SETTINGS, KEY, CERTIFICATE, APP):
        require((folder / name).is_file(), f"{folder} is not the folder of a site: it has no {name}.")
    found = read_toml(folder / SETTINGS)
    require(found.get("name"), f"{folder / SETTINGS} does not say the site's name.")
    Address.read(str(found.get("server")))
    data = str(found.get("data") or "")
    require(data, f"Name the file with this site's data in {folder / SETTINGS}, as data.")
    require((folder / data).exists(), f"There is no file {folder / data}, which {folder / SETTINGS} names as data.")
    return found


def take_part(folder: Path) -> None:
    """Answer the server until this process is ended."""
    folder = folder.resolve()
    found = settings(folder)
    launch.end_with_parent()
    os.chdir(folder)
    torch.set_num_threads(1)
    kept = folder / str(found.get("folder", "kept"))
    kept.mkdir(mode=0o700, exist_ok=True)
    (kept / "logs").mkdir(exist_ok=True)
    with files.locked(kept / "logs"):  # a site takes part once
        answer(folder, kept, found)


def answer(folder: Path, kept: Path, found: dict[str, Any]) -> None:
    """Start the SuperNode of a site, and answer what it is asked."""
    app = imported("client_app:app", "The app of this site")
    require(isinstance(app, ClientApp), f"{folder / APP} has no ClientApp called app.")
    secret, port = kept / "node-secret", free_port()
    secret.unlink(missing_ok=True)
    write_private(secret, secrets.token_bytes(32))
    words = [
        f"--root-certificates={folder / CERTIFICATE}",
        f"--auth-supernode-private-key={folder / KEY}",
        f"--superlink={found['server']}",
        f"--node-config={folder / SETTINGS}",
        f"--port={port}",
        f"--superexec-auth-secret-file={secret}",
        "--isolation=process",
    ]
    with Processes(kept / "logs", {"FLWR_HOME": str(kept / "flower")}) as processes:
        node = Node(processes, words, folder, str(found["server"]))
        node.start()
        print(f"Site {found['name']} asks for work at {found['server']}; Ctrl-C ends it.", flush=True)
        worker.serve(app, f"127.0.0.1:{port}", secret.read_bytes(), node.check)


@dataclass
class Node:
    """The SuperNode of a site. Where the server does not let it in, it is started again for a while: a server takes
    some seconds to notice that a site was killed, and till then it does not let the same key in again."""

    processes: Processes
    words: list[str]
    folder: Path
    server: str
    refused: float | None = None  # when it was first not let in

    def start(self) -> None:
        self.processes.start_flower("supernode", *self.words, folder=self.folder)

    def check(self) -> None:
        """Refuse to go on where the SuperNode has ended; the sentence says why, as far as its log does."""
        try:
            self.processes.check()
        except Unfinished as error:
            _, _, last = self.processes.log("supernode").rpartition("Starting Flower SuperNode")
            cannot = f"This site cannot join at {self.server}."
            if OTHER_SERVER in last:
                why = f"Whoever answers there is not the server that {CERTIFICATE} is of; do not go on."
                raise Unfinished(f"{cannot} {why} {error}") from error
            if NOT_LET_IN not in last:
                raise
            now = time.monotonic()
            if self.refused is not None and now > self.refused + AGAIN:
                why = f"The server does not know its key ({KEY}), or somebody else takes part with it."
                raise Unfinished(f"{cannot} {why} {error}") from error
            if self.refused is None:
                self.refused = now
                print(f"The server does not let this site in; trying again for {AGAIN:.0f} s.", flush=True)
            time.sleep(PAUSE)
            self.processes.end("supernode")
            self.start()
