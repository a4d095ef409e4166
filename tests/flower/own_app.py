"""A ClientApp as Flower's users write them: plain SGD on the model that comes, and nothing is kept."""

from __future__ import annotations

from typing import Any

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from torch import nn
from torch.nn.functional import cross_entropy

ETA, STEPS = 0.1, 3


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))


def with_statistics() -> nn.Module:
    """A network with running statistics, and a counter of batches."""
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 3))


def samples(number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of one node; each has another number of them."""
    gen = torch.Generator().manual_seed(number)
    return torch.randn(10 + 5 * number, 4, generator=gen), torch.arange(10 + 5 * number) % 3


def trained(model: dict[str, torch.Tensor], number: int, make: Any = network) -> dict[str, torch.Tensor]:
    """What plain SGD on all samples makes of a model."""
    module = make()
    module.load_state_dict(model)
    x, y = samples(number)
    descent = torch.optim.SGD(module.parameters(), lr=ETA)
    for _ in range(STEPS):
        descent.zero_grad()
        cross_entropy(module(x), y).backward()
        descent.step()
    return {name: value.detach() for name, value in module.state_dict().items()}


def own_app(change: Any = lambda context, records: records, make: Any = network) -> ClientApp:
    """The app; `change` spoils what a node sends."""
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        number = int(context.node_config["partition-id"])
        arrays = message.content["arrays"]
        model = trained(arrays.to_torch_state_dict(), number, make)
        metrics = MetricRecord({"num-examples": 10 + 5 * number, "round": message.content["config"]["server-round"]})
        records = RecordDict({"arrays": ArrayRecord(model), "metrics": metrics})
        return Message(change(context, records), reply_to=message)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        number = int(context.node_config["partition-id"])
        module = make()
        module.load_state_dict(message.content["arrays"].to_torch_state_dict())
        x, y = samples(number)
        loss = cross_entropy(module(x), y).item()
        metrics = MetricRecord({"num-examples": 10 + 5 * number, "loss": loss})
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    return app
