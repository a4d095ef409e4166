"""What the people at the server ask its SuperLink: who is there, what runs, and to start a run."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_public_key
from flwr.cli.build import build_fab_from_disk
from flwr.common.serde import fab_to_proto, user_config_to_proto
from flwr.proto.control_pb2 import (
    ListNodesRequest,
    ListRunsRequest,
    RegisterNodeRequest,
    StartRunRequest,
    StopRunRequest,
)
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.fab import Fab
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor

from fedkin.errors import Unfinished, require
from fedkin.federation.certificates import CERTIFICATE
from fedkin.federation.folder import Folder


class Started(NamedTuple):
    """A run as Flower knows it."""

    number: int
    status: str  # as "running", or "finished:completed"
    details: str

    @property
    def ended(self) -> bool:
        return self.status.startswith("finished")

    @property
    def completed(self) -> bool:
        return self.status == "finished:completed"


class Control:
    """The SuperLink of a federation, asked from the server's own machine."""

    def __init__(self, folder: Folder):
        self.folder, self.port = folder, folder.address.port
        checks = [RuntimeVersionHttpInterceptor(component_name="flwr CLI")]
        authority = (folder.server / CERTIFICATE).read_bytes()
        self.client = ControlHttpClient.from_server_address(f"127.0.0.1:{self.port}", False, authority, checks)

    def __enter__(self) -> Control:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def asked(self, name: str, request: Any) -> Any:
        """Return what the SuperLink answers."""
        try:
            return getattr(self.client, name)(request)
        except httpx.TransportError as error:
            start = f"start it with: fedkin federation serve {self.folder.path}"
            raise Unfinished(f"The server does not answer at port {self.port} of this machine; {start}") from error
        except httpx.HTTPError as error:
            raise Unfinished(f"The server refuses: {error}") from error

    def register(self) -> None:
        """Let the SuperLink know the public keys of all sites that it does not know yet."""
        known = {bytes(node.public_key) for node in self.asked("ListNodes", ListNodesRequest()).nodes_info}
        for name in self.folder.names:
            key = self.key(name)
            if key not in known:
                self.asked("RegisterNode", RegisterNodeRequest(public_key=key, name=name))

    def key(self, name: str) -> bytes:
        """Return the public key of a site as Flower has it."""
        path = self.folder.public_key(name)
        require(path.is_file(), f"Site {name} has no public key; {path} is missing.")
        public = load_ssh_public_key(path.read_bytes())
        return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def up(self) -> dict[str, str]:
        """Return what the SuperLink knows of each site: 'online', 'offline', 'registered', or 'unknown'."""
        nodes = self.asked("ListNodes", ListNodesRequest()).nodes_info
        found = {bytes(node.public_key): str(node.status) for node in nodes}
        return {name: found.get(self.key(name), "unknown") for name in self.folder.names}

    def runs(self) -> list[Started]:
        """Return all runs that the SuperLink knows, the first one first."""
        found = self.asked("ListRuns", ListRunsRequest()).run_dict.values()
        return [started(run) for run in sorted(found, key=lambda run: str(run.pending_at))]

    def start(self, config: dict[str, Any]) -> int:
        """Start a run of the federation's app with these settings in place of its own; returns its number."""
        content = build_fab_from_disk(Path(self.folder.app))
        fab = fab_to_proto(Fab(sha256(content).hexdigest(), content, {}))
        answer = self.asked("StartRun", StartRunRequest(fab=fab, override_config=user_config_to_proto(config)))
        if not answer.HasField("run_id"):
            raise Unfinished("The server did not start the run; its log says why.")
        return int(answer.run_id)

    def stop(self, number: int) -> None:
        """Stop a run; what it has played so far is kept."""
        self.asked("StopRun", StopRunRequest(run_id=number))


def started(run: Any) -> Started:
    """Return a run as people read it."""
    words = [str(run.status.status), str(run.status.sub_status)]
    return Started(int(run.run_id), ":".join(word for word in words if word), str(run.status.details))
