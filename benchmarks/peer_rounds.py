"""Rounds of FedAvg in one framework, in a process of its own: peers.py starts it.

    OMP_NUM_THREADS=1 python benchmarks/peer_rounds.py PEER ROUNDS CORES [FOLDER]

prints the seconds of each round but the first, and the mean training loss of the model after the last round, as JSON.
All frameworks train the same network from the same start on the same samples: 20 clients, each of which goes once
through its 400 samples in batches of 20. Nothing is evaluated in the rounds that count. A framework is imported in its
own function only, so that one that is not installed disturbs no other.
"""

from __future__ import annotations

import copy
import json
import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from peer_work import BATCH, CLIENTS, RATE, SAMPLES, epoch, network, samples
from torch import Tensor, nn

Played = tuple[list[float], list[Tensor]]  # when each round was over, and the parameters after the last


def bare(rounds: int, cores: int) -> Played:
    """Play rounds without a framework."""
    common, over = network(), []
    for _ in range(rounds):
        trained = []
        for x, y in samples():
            model = copy.deepcopy(common)
            epoch(model, x, y)
            trained.append(list(model.parameters()))
        with torch.no_grad():
            for p, *theirs in zip(common.parameters(), *trained, strict=True):
                p.copy_(torch.stack(theirs).mean(0))
        over.append(perf_counter())
    return over, list(common.parameters())


def fedkin(rounds: int, cores: int) -> Played:
    """Play rounds of `fk.run`, recorded in a folder, as users do."""
    from dataclasses import replace

    import fedkin as fk

    over: list[float] = []

    class Clock(fk.Callback):
        def recorded(self, record: fk.Record) -> None:
            over.append(perf_counter())

    federation = fk.from_clients({str(i): pair for i, pair in enumerate(samples())}, test=0.0)
    part = fk.train.SGD(eta=RATE, steps=None, epochs=1, batch=BATCH)
    method = replace(fk.methods.fedavg(count=CLIENTS), train=part)
    # the last round is evaluated too, and is not the shortest for it
    experiment = fk.Experiment(method, federation, network(), rounds, evaluate_every=rounds, threads=cores)
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"checkpoint_seconds": 1e9, "warn": lambda _: None}
        found = fk.run(experiment, Path(folder) / "run", callbacks=[Clock()], **options)
        model = found.model(module=network())
    return over, list(model.parameters())


def pfl_research(rounds: int, cores: int) -> Played:
    """Play rounds of pfl-research; under torchrun every process plays its share of the clients."""
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.pytorch import PyTorchTensorDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam.base import NNTrainHyperParams
    from pfl.metrics import Metrics
    from pfl.model.pytorch import PyTorchModel

    class Module(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network()

        def loss(self, x: Tensor, y: Tensor) -> Tensor:
            return F.cross_entropy(self.inner(x), y)

        def metrics(self, x: Tensor, y: Tensor) -> dict[str, Any]:
            return {}

    over: list[float] = []

    class Clock(TrainingProcessCallback):
        def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):  # type: ignore[no-untyped-def]
            over.append(perf_counter())
            return False, Metrics()

    users = {i: PyTorchTensorDataset(pair, user_id=str(i)) for i, pair in enumerate(samples())}
    data = FederatedDataset(users.__getitem__, get_user_sampler("minimize_reuse", list(users)))
    module = Module()
    model = PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), lr=1.0))
    train = NNTrainHyperParams(local_batch_size=BATCH, local_num_epochs=1, local_learning_rate=RATE)
    plan = NNAlgorithmParams(
        central_num_iterations=rounds,
        evaluation_frequency=rounds + 1,
        train_cohort_size=CLIENTS,
        val_cohort_size=None,
    )
    FederatedAveraging().run(plan, SimulatedBackend(data, data), model, train, callbacks=[Clock()])
    if torch.distributed.is_initialized():
        torch.distributed.barrier()  # a process that ends first breaks the line of the other
        torch.distributed.destroy_process_group()
    return over, list(module.parameters())


def flower(rounds: int, cores: int) -> Played:
    """Play rounds of Flower's simulation, which has a Ray actor for each core."""
    os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    client, server, over, final = ClientApp(), ServerApp(), [], []

    @client.train()
    def train(message: Message, context: Context) -> Message:
        torch.set_num_threads(1)
        model = network()
        model.load_state_dict(message.content["arrays"].to_torch_state_dict())
        epoch(model, *samples()[int(context.node_config["partition-id"])])
        sizes = MetricRecord({"num-examples": SAMPLES})
        content = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": sizes})
        return Message(content=content, reply_to=message)

    class Timed(FedAvg):
        def aggregate_train(self, server_round, replies):  # type: ignore[no-untyped-def]
            found = super().aggregate_train(server_round, replies)
            over.append(perf_counter())
            return found

    @server.main()
    def serve(grid: Grid, context: Context) -> None:
        strategy = Timed(fraction_train=1.0, fraction_evaluate=0.0, min_train_nodes=CLIENTS)
        begun = ArrayRecord(network().state_dict())
        result = strategy.start(grid=grid, initial_arrays=begun, num_rounds=rounds)
        final.extend(result.arrays.to_torch_state_dict().values())

    actors = {"init_args": {"num_cpus": cores}, "client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
    run_simulation(server, client, num_supernodes=CLIENTS, backend_config=actors)
    return over, final


def pfllib(rounds: int, cores: int, folder: Path) -> Played:
    """Play rounds of PFLlib's FedAvg, which reads the samples of a client anew in each round."""
    from argparse import Namespace

    sys.path.insert(0, str(folder / "system"))
    with tempfile.TemporaryDirectory() as place:
        for part, rows in (("train", slice(None)), ("test", slice(BATCH))):
            (Path(place) / "dataset" / "own" / part).mkdir(parents=True)
            for i, (x, y) in enumerate(samples()):
                data = {"x": x[rows].numpy(), "y": y[rows].numpy()}
                np.savez_compressed(Path(place) / "dataset" / "own" / part / f"{i}.npz", data=data)
        (Path(place) / "system").mkdir()
        os.chdir(Path(place) / "system")  # PFLlib reads ../dataset
        from flcore.servers.serveravg import FedAvg

        none = ("random_join_ratio", "time_select", "auto_break", "dlg_eval", "learning_rate_decay")
        zero = ("client_drop_rate", "train_slow_rate", "send_slow_rate", "num_new_clients", "fine_tuning_epoch_new")
        off = dict.fromkeys(none, False) | dict.fromkeys((*zero, "few_shot"), 0)
        settings = Namespace(
            device="cpu",
            dataset="own",
            num_classes=10,
            model=network(),
            algorithm="FedAvg",
            goal="speed",
            global_rounds=rounds - 1,  # and one more
            local_epochs=1,
            batch_size=BATCH,
            local_learning_rate=RATE,
            learning_rate_decay_gamma=1.0,
            num_clients=CLIENTS,
            join_ratio=1.0,
            time_threthold=1e9,
            save_folder_name="items",
            top_cnt=100,
            eval_gap=rounds + 1,
            dlg_gap=100,
            batch_num_per_client=2,
            **off,
        )
        server = FedAvg(settings, 0)
        server.train()
        os.chdir("/")
    return np.cumsum(server.Budget).tolist(), list(server.global_model.parameters())


def fl_bench(rounds: int, cores: int, folder: Path) -> Played:
    """Play rounds of FL-bench's FedAvg in its serial mode."""
    sys.path.insert(0, str(folder))
    from data.utils.datasets import BaseDataset
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import OmegaConf
    from src.server import fedavg
    from src.utils.constants import DEFAULTS
    from src.utils.models import DecoupledModel

    over: list[float] = []

    class Module(DecoupledModel):
        def __init__(self) -> None:
            super().__init__()
            self.base, self.classifier = network()[:-1], network()[-1]

    class Server(fedavg.FedAvgServer):
        def init_model(self) -> None:
            super().init_model(model=Module())

        def get_dataset(self) -> BaseDataset:
            x, y = (torch.cat(values) for values in zip(*samples(), strict=True))
            found = BaseDataset(torch.zeros(1), y, list(range(10)))
            found.data = x  # it would divide samples above 1 by 255
            return found

        def train_one_round(self) -> None:
            super().train_one_round()
            over.append(perf_counter())

    every = list(range(CLIENTS))
    rows = [{"train": list(range(i * SAMPLES, (i + 1) * SAMPLES)), "val": [], "test": []} for i in every]
    separation = {"train": every, "val": every, "test": every, "total": CLIENTS}
    settings = OmegaConf.create(DEFAULTS)
    settings.optimizer.lr = RATE
    common = {"join_ratio": 1.0, "global_epoch": rounds, "local_epoch": 1, "batch_size": BATCH, "use_cuda": False}
    silent = ("client_side_evaluation", "save_log", "save_learning_curve_plot", "save_metrics")
    settings.common.update(common | dict.fromkeys(silent, False))
    settings.common.test.client.interval = -1
    with tempfile.TemporaryDirectory() as place:
        home = Path(place) / "data" / settings.dataset.name
        home.mkdir(parents=True)
        (home / "args.json").write_text('{"split": "sample"}')
        (home / "partition.pkl").write_bytes(pickle.dumps({"separation": separation, "data_indices": rows}))
        fedavg.FLBENCH_ROOT = Path(place)
        HydraConfig.instance().cfg = OmegaConf.create({"hydra": {"runtime": {"output_dir": place}}})
        server = Server(settings)
        server.train()
    return over, list(server.public_model_params.values())


PEERS: dict[str, tuple[Callable[..., Played], str]] = {  # and the package whose version counts
    "bare loop": (bare, "torch"),
    "fedkin": (fedkin, "torch"),
    "pfl-research": (pfl_research, "pfl"),
    "Flower": (flower, "flwr"),
    "PFLlib": (pfllib, "torch"),
    "FL-bench": (fl_bench, "torch"),
}


@torch.no_grad()
def loss(parameters: list[Tensor]) -> float:
    """Return the mean loss of a model on all samples."""
    model = network()
    for p, value in zip(model.parameters(), parameters, strict=True):
        p.copy_(value)
    return float(sum(F.cross_entropy(model(x), y) for x, y in samples())) / CLIENTS


def main(name: str, rounds: str, cores: str, *folder: str) -> None:
    torch.set_num_threads(1)
    play, package = PEERS[name]
    over, final = play(int(rounds), int(cores), *map(Path, folder))
    seconds = [b - a for a, b in pairwise(over)]
    if int(os.environ.get("RANK", "0")) == 0:
        print(json.dumps({"seconds": seconds, "loss": loss(final), "version": f"{package} {version(package)}"}))


if __name__ == "__main__":
    main(*sys.argv[1:])
