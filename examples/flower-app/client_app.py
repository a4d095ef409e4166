"""A ClientApp as Flower's users write it; nothing in it knows of fedkin."""

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy

app = ClientApp()


def network() -> torch.nn.Module:
    return torch.nn.Linear(64, 10)


def digits(context: Context, test: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the images of this node, who writes some digits more often than others."""
    found, mine = load_digits(), context.node_config
    x, y = torch.tensor(found.data / 16, dtype=torch.float32), torch.tensor(found.target)
    at = (torch.arange(len(y)) + y) % int(mine["num-partitions"]) == int(mine["partition-id"])
    held_out = torch.arange(len(y)) % 5 == 0
    return x[at & (held_out == test)], y[at & (held_out == test)]


def loaded(message: Message) -> torch.nn.Module:
    model = network()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    return model


@app.train()
def train(message: Message, context: Context) -> Message:
    model, (x, y) = loaded(message), digits(context, test=False)
    descent = torch.optim.SGD(model.parameters(), lr=message.content["config"]["lr"])
    for _ in range(10):
        descent.zero_grad()
        cross_entropy(model(x), y).backward()
        descent.step()
    metrics = MetricRecord({"num-examples": len(y)})
    return Message(RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics}), reply_to=message)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    model, (x, y) = loaded(message), digits(context, test=True)
    accuracy = (model(x).argmax(1) == y).float().mean().item()
    metrics = MetricRecord({"num-examples": len(y), "accuracy": accuracy})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)
