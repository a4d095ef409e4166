"""A site of a federation: Flower's SuperNode, which asks the server for messages, and this process, which answers."""

from __future__ import annotations

import os
import secrets
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

SETTINGS, KEY, APP = "site.toml", "site.key", "client_app.py"
REFUSED = {  # words of Flower's log, and what they mean
    "Failed to activate SuperNode": f"The server does not know this site's key ({KEY}); ask whoever runs it.",
    "CERTIFICATE_VERIFY_FAILED": f"Whoever answers there is not the server that {CERTIFICATE} is of; do not go on.",
}


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
        processes.start_flower("supernode", *words, folder=folder)
        print(f"Site {found['name']} asks for work at {found['server']}; Ctrl-C ends it.", flush=True)
        worker.serve(app, f"127.0.0.1:{port}", secret.read_bytes(), lambda: check(processes, str(found["server"])))


def check(processes: Processes, server: str) -> None:
    """Refuse to go on where the SuperNode has ended; the sentence says why, as far as its log does."""
    try:
        processes.check()
    except Unfinished as error:
        _, _, last = processes.log("supernode").rpartition("Starting Flower SuperNode")
        why = next((sentence for words, sentence in REFUSED.items() if words in last), None)
        raise error if why is None else Unfinished(f"This site cannot join at {server}. {why} {error}") from error
