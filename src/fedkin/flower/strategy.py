"""Methods of fedkin as Flower strategies."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from logging import INFO, WARNING
from typing import Any

import numpy as np
import torch
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.common.logger import log
from flwr.serverapp import Grid
from flwr.serverapp import strategy as flower
from flwr.serverapp.strategy.strategy_utils import aggregate_metricrecords
from torch import Tensor, nn

from fedkin.engines.engine import Look
from fedkin.errors import require
from fedkin.flower.nodes import Keys, Nodes
from fedkin.flower.recruits import check_method, recruited, task_of
from fedkin.log import Log
from fedkin.messages import Sent, Task
from fedkin.parts import Method
from fedkin.privacy import accountant, protected, read
from fedkin.round import Opened, State, begin, closed, opened
from fedkin.runs.part_json import to_json
from fedkin.runs.setup import check_layers
from fedkin.runs.spent import spent
from fedkin.select import Uniform

Averaged = Callable[[list[RecordDict], str], MetricRecord]


class Strategy(flower.Strategy):  # type: ignore[misc]  # flwr has no types where it is not installed
    """A method of fedkin in place of any other Flower strategy: `strategy.start(grid, initial_arrays, num_rounds)`.

    Nodes run `fedkin.flower.client` or, where the method's client is plain SGD, any ClientApp of Flower's usual form.
    Who takes part is the method's own selection or, with `fraction_train`, a random share of the nodes. The other
    arguments are those of Flower's FedAvg. `model` and `sample`, a function that makes the network and one sample, are
    for methods whose server looks into the network, as PFedRe's does.

    With `dp`, as "clip=1.0,noise=0.8", nodes clip their updates and add noise before they send them; only
    `fedkin.flower.client` does that. What each site has spent is among the metrics: 'fedkin-epsilon-<site>' and
    'fedkin-epsilon-replaced-<site>' at 'fedkin-delta' (docs/privacy.md).

    Where each node has a model of its own, nodes are sent their own mixtures and are evaluated by their own models;
    `Result.arrays` is then the mean of these models by size.
    """

    nodes: Nodes
    playing: Method  # the method as it is played on these nodes
    task: Task
    state: State
    half: Opened  # the round that is being played, before its replies
    releases: np.ndarray  # (n,) how many uploads of each node have arrived

    def __init__(
        self,
        method: Method,
        fraction_train: float | None = None,
        fraction_evaluate: float = 1.0,
        min_train_nodes: int = 2,
        min_evaluate_nodes: int = 2,
        min_available_nodes: int = 2,
        weighted_by_key: str = "num-examples",
        arrayrecord_key: str = "arrays",
        configrecord_key: str = "config",
        train_metrics_aggr_fn: Averaged | None = None,
        evaluate_metrics_aggr_fn: Averaged | None = None,
        *,
        model: Callable[[], nn.Module] | None = None,
        sample: Tensor | None = None,
        seed: int = 0,
        largest: float | None = 50.0,
        timeout: float = 600.0,
        dp: str | None = None,
    ) -> None:
        require(isinstance(method, Method), "A strategy is made of a method, as fk.methods.fedmcsa() gives.")
        self.privacy = None if dp is None else read(dp)
        if self.privacy is not None:
            accountant.check_installed()
            method = protected(method, self.privacy)
        check_method(method, model, fraction_train)
        self.method, self.fraction_train, self.fraction_evaluate = method, fraction_train, fraction_evaluate
        self.min_train_nodes, self.min_evaluate_nodes = min_train_nodes, min_evaluate_nodes
        self.min_available_nodes = min_available_nodes
        self.keys = Keys(weighted_by_key, arrayrecord_key, configrecord_key)
        self.averaged = train_metrics_aggr_fn or aggregate_metricrecords
        self.averaged_scores = evaluate_metrics_aggr_fn or aggregate_metricrecords
        self.make, self.sample, self.seed, self.largest, self.timeout = model, sample, seed, largest, timeout
        self.rounds = 1
        self.messages: dict[int, Message] = {}  # the last ones, by node
        self.log = Log(0)  # of the last round

    def start(self, grid: Grid, initial_arrays: ArrayRecord, num_rounds: int = 3, *rest: Any, **more: Any) -> Any:
        """Play so many rounds, as Flower does it; a schedule may need to know how many."""
        self.rounds = num_rounds
        return super().start(grid, initial_arrays, num_rounds, *rest, **more)

    def summary(self) -> None:
        chosen = "as the method selects" if self.fraction_train is None else f"{self.fraction_train:.2f} of the nodes"
        log(INFO, "\t├──> fedkin: %s, %s train", self.method.name, chosen)
        for verb in ("select", "train", "keep", "collaborate"):
            log(INFO, "\t│\t├── %s: %s", verb, to_json(getattr(self.method, verb)))
        log(INFO, "\t└──> Weighted by '%s', arrays in '%s'", self.keys.weight, self.keys.arrays)

    def begin(self, first: ArrayRecord, grid: Grid) -> None:
        """Wait until enough nodes are connected, find out who they are, and begin a run of the method on them."""
        least = max(self.min_available_nodes, self.min_train_nodes)
        while (here := len(list(grid.get_node_ids()))) < least:
            log(INFO, "Waiting for nodes to connect: %d connected (minimum required: %d).", here, least)
            time.sleep(1)
        how = self.keys, self.seed, self.timeout, self.largest, self.privacy, self.warn
        self.nodes, agreed = recruited(grid, self.method, first, *how)
        sample, n = self.sample, len(self.nodes.names)
        if sample is None and "shape" in agreed:
            sample = torch.zeros(agreed["shape"])
        select = self.method.select
        if self.fraction_train is not None:
            select = Uniform(count=min(n, max(int(n * self.fraction_train), self.min_train_nodes, 1)))
        self.playing = replace(self.method, select=select)
        self.task = task_of(self.nodes, first, self.rounds, self.seed, self.make, sample, self.method.train.batch)
        check_layers(self.method, list(self.task.model))
        self.state = begin(self.playing, self.task)
        self.releases = np.zeros(n, dtype=np.int64)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        if server_round == 1:
            self.begin(arrays, grid)
        self.log = Log(self.state.round + 1)
        self.half = opened(self.playing, self.task, self.nodes.current, self.state, self.log)
        config["server-round"] = server_round
        self.messages = self.nodes.training(self.half.order, config)
        log(INFO, "configure_train: %s of %s nodes train", len(self.messages), self.task.n)
        return list(self.messages.values())

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        records = self.replied(replies, "aggregate_train")
        reply = self.nodes.taken(self.half.order, records)
        self.task = replace(self.task, sizes=self.nodes.sizes)
        self.state = closed(self.playing, self.task, self.state, self.half, reply, self.log)
        found = self.nodes.measured(records)
        metrics = self.averaged(found, self.keys.weight) if found else MetricRecord()
        metrics["fedkin-replied"], metrics["fedkin-counted"] = self.log.replied, self.log.counted
        for name, value in self.spent(records).items():
            metrics[name] = value
        return self.nodes.result(self.playing.collaborate.model(self.state.collaborate)), metrics

    def spent(self, records: Mapping[int, RecordDict]) -> dict[str, float]:
        """Count what arrived in a round, and return what each node has spent of its privacy so far."""
        if self.privacy is None:
            return {}
        self.releases[self.nodes.released(records)] += 1
        both = spent(self.privacy, self.releases)
        names = {"fedkin-epsilon": both["epsilon"], "fedkin-epsilon-replaced": both["epsilon_replaced"]}
        found = {
            f"{name}-{site}": e for name, all in names.items() for site, e in zip(self.nodes.names, all, strict=True)
        }
        return found | {"fedkin-delta": self.privacy.delta}

    def replied(self, replies: Iterable[Message], where: str) -> dict[int, RecordDict]:
        """Return the records of the nodes that replied. Only the message that is replied to says which node it was."""
        asked = {message.metadata.message_id: number for number, message in self.messages.items()}
        found: dict[int, RecordDict] = {}
        failed = 0
        for reply in replies:
            number = asked.get(reply.metadata.reply_to_message_id)
            if number is None or reply.has_error():
                failed += 1
                name = "that was not asked" if number is None else self.nodes.names[number]
                log(INFO, "\t> No reply from node %s: %s", name, reply.error.reason if reply.has_error() else "")
            else:
                found[number] = reply.content
        log(INFO, "%s: Received %s results and %s failures", where, len(found), failed)
        return found

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        self.messages = {}
        told = self.privacy is None or self.privacy.losses  # else nodes keep their scores to themselves
        if self.fraction_evaluate > 0 and told:
            n = self.task.n
            count = min(n, max(int(n * self.fraction_evaluate), self.min_evaluate_nodes))
            ids = torch.randperm(n, generator=torch.Generator().manual_seed(self.seed))[:count].sort().values
            config["server-round"] = server_round
            self.messages = self.nodes.evaluating(ids, self.looks(), config)
        return list(self.messages.values())

    def looks(self) -> dict[str, Look]:
        """Return what nodes are evaluated by: the common model, and the model of their own where they have one. With
        neither, as where there is a model for each cluster, it is what they would be sent, after a local pass."""
        everyone = torch.arange(self.task.n)
        common = self.playing.collaborate.model(self.state.collaborate)
        if common is None and self.playing.finetunes:
            now = self.playing.collaborate.send(self.state.collaborate, self.task, everyone, None)[0]
            return {"post": Look("tuned", now, ("test",), self.state.round + 1)}
        sent = Sent(everyone[:0]) if common is None else Sent(everyone, {"model": common})
        found = {} if common is None else {"global": Look("held", sent, ("test",))}
        own = not self.playing.finetunes
        return found | ({"post": Look("personal", sent, ("test",), self.state.round)} if own else {})

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        found = self.nodes.measured(self.replied(replies, "aggregate_evaluate"))
        return self.averaged_scores(found, self.keys.weight) if found else None

    @staticmethod
    def warn(sentence: str) -> None:
        """Let the people at the server read a sentence."""
        log(WARNING, sentence)
