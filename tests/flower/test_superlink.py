"""A run through a real SuperLink with TLS and node authentication is the run on the stacked engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from deployment import Deployment
from federation import same_run

import fedkin as fk
from fedkin.runs import files

ROUNDS, SIZES = 3, {"east": 40, "north": 12, "south": 16, "west": 24}  # samples of each site
NAMES = tuple(SIZES)
PROJECT = """
[project]
name = "tried"
version = "1.0.0"
license = "Apache-2.0"

[tool.flwr.app]
publisher = "fedkin"

[tool.flwr.app.components]
serverapp = "server_app:app"
clientapp = "client_app:app"

[tool.flwr.app.config]
folder = ""
"""
SERVER = f"""
import fedkin as fk
from fedkin import flower
from flwr.serverapp import ServerApp

app = ServerApp()

@app.main()
def main(grid, context):
    method = fk.methods.scaffold(count=2, steps=3)
    experiment = fk.Experiment(method, model="mlr", rounds={ROUNDS}, evaluate_every={ROUNDS}, seed=3, dtype="float64")
    flower.run(grid, experiment, context.run_config["folder"], sites={list(NAMES)}, wait=90, timeout=90)
"""
CLIENT = f"""
import numpy as np
from fedkin import flower

def load(context):
    name = context.node_config["name"]
    size, draw = {SIZES}[name], np.random.default_rng(ord(name[0]))
    return draw.normal(size=(size, 6)).astype(np.float32), np.arange(size) % 3

app = flower.client(load_data=load)
"""


def test_a_superlink_is_stacked(tmp_path: Path) -> None:
    app = tmp_path / "app"
    app.mkdir()
    for name, text in (("pyproject.toml", PROJECT), ("server_app.py", SERVER), ("client_app.py", CLIENT)):
        (app / name).write_text(text)
    with Deployment(tmp_path / "federation", NAMES) as deployment:
        config = f'folder="{tmp_path / "run"}"'
        said = deployment.flwr("run", str(app), "here", "--run-config", config, "--stream", seconds=200)
        logs = said + "".join(deployment.processes.log(name) for name in ("superlink", *NAMES))
        assert (tmp_path / "run" / "summary.json").exists(), logs

    clients = {}
    for name, size in SIZES.items():
        draw = np.random.default_rng(ord(name[0]))
        clients[name] = draw.normal(size=(size, 6)).astype(np.float32), np.arange(size) % 3
    data = fk.from_clients(clients)
    begun = fk.Experiment(
        fk.methods.scaffold(count=2, steps=3),
        data,
        "mlr",
        ROUNDS,
        evaluate_every=ROUNDS,
        seed=3,
        dtype="float64",
        chunk=2,
        threads=1,
    )
    one = fk.run(begun, tmp_path / "stacked", checkpoint_seconds=0.0, warn=lambda sentence: None)
    there = [sorted((tmp_path / "federation" / "sites" / name).glob("runs/*/round-*")) for name in NAMES]
    held = [files.read_tensors(paths[-1]) if paths else {} for paths in there]
    first = next(tensors for tensors in held if tensors)  # before a client trains, its control variate is 0
    private = {key: torch.stack([one.get(key, torch.zeros_like(zero)) for one in held]) for key, zero in first.items()}
    same_run(one, fk.Run(tmp_path / "run"), private)
