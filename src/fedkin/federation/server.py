"""The server of a federation: Flower's SuperLink, and the process that runs the app when a run is started."""

from __future__ import annotations

import time

from fedkin.errors import Unfinished
from fedkin.federation import certificates
from fedkin.federation.control import Control
from fedkin.federation.folder import Folder
from fedkin.federation.processes import Processes, check_free, listens

PATIENCE = 120.0  # seconds in which the SuperLink has to listen
POLL = "FLWR_SUPEREXEC_TASK_POLL_INTERVAL"


def surroundings(folder: Folder) -> dict[str, str]:
    """Return what the server's processes find in their environment: apps are installed inside the folder."""
    return {"FLWR_HOME": str(folder.state / "flower"), POLL: "0.2"}


def start(folder: Folder, processes: Processes) -> None:
    """Start the server of a federation, and let it know the keys of the sites."""
    address = folder.address
    host = "127.0.0.1" if address.here else "0.0.0.0"
    check_free(host, address.port)
    secured = {
        "--ssl-ca-certfile": folder.server / certificates.CERTIFICATE,
        "--ssl-certfile": folder.server / certificates.SERVER_CERTIFICATE,
        "--ssl-keyfile": folder.server / certificates.SERVER_KEY,
        "--superexec-auth-secret-file": folder.secret,
        "--database": folder.state / "link.db",
    }
    words = [f"{name}={value}" for name, value in secured.items()]
    words += ["--enable-supernode-auth", "--disable-runtime-dependency-installation", "--isolation=process"]
    words += [f"--host={host}", f"--port={address.port}"]
    processes.start_flower("superlink", *words, folder=folder.path)
    end = time.monotonic() + PATIENCE
    while not listens(address.port):
        processes.check()
        if time.monotonic() > end:
            raise Unfinished(f"The server does not listen after {PATIENCE:.0f} s; its log is in {processes.logs}.")
        time.sleep(0.2)
    with Control(folder) as control:
        control.register()
    start_runner(folder, processes)


def start_runner(folder: Folder, processes: Processes) -> None:
    """Start the process that runs the app."""
    words = [
        f"--runtime-api-address=127.0.0.1:{folder.address.port}",
        f"--root-certificates={folder.server / certificates.CERTIFICATE}",
        f"--superexec-auth-secret-file={folder.secret}",
    ]
    processes.start_flower("superexec", *words, folder=folder.path)


def serve(folder: Folder) -> None:
    """Run the server of a federation until this process is ended."""
    with Processes(folder.state / "logs", surroundings(folder)) as processes:
        start(folder, processes)
        print(f"The server listens at {folder.address}; Ctrl-C ends it.", flush=True)
        while True:
            processes.check()
            time.sleep(1.0)
