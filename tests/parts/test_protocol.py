"""What methods to come need of the protocol, one small part a need, on both engines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

import fedkin as fk
from fedkin import round as rounds
from fedkin.collaborate import Mean, Nothing
from fedkin.core import tree
from fedkin.core.tree import Batch, Message, Model
from fedkin.descent import Descent
from fedkin.engines import Plain, Simulation, Stacked
from fedkin.keep import Everyone
from fedkin.messages import Objective, Reply, Sent, Slot, Task, Work
from fedkin.parts import Collaborate, Gives, Keep, Method, Needs, Select, Train
from fedkin.round import Log, State
from fedkin.select import Uniform
from fedkin.train import SGD, Prox

SIZES = (1, 3, 7, 25, 10, 12)
ENGINES = pytest.mark.parametrize("engine", [Plain, Stacked])
STEPS: dict[str, Any] = {"eta": 0.1, "steps": 3, "batch": 4}
EPOCHS: dict[str, Any] = {"eta": 0.1, "steps": None, "epochs": 2, "batch": 4}


def network() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))


@dataclass
class Run:
    """A method on an engine, a round at a time."""

    method: Method
    engine: Simulation
    task: Task
    state: State

    def round(self, evaluates: bool = False) -> Log:
        self.state, log = rounds.play(self.method, self.task, self.engine, self.state, evaluates)
        return log

    @property
    def model(self) -> Model:
        return self.state.collaborate["model"]

    def private(self, slot: str, name: str = "value") -> Tensor:
        return self.engine.slots.values[slot][name].clone()

    def trained(self, start: Model, t: int, client: int) -> Model:
        """Plain steps of one client by hand."""
        part, model = self.method.train, start
        work = self.engine.passed(part, t, torch.tensor([client]))
        for k in range(int(work.steps[0])):
            batch = tree.row(self.engine.batch(work, k, slice(0, 1)), 0)
            model = tree.added(model, self.engine.network.grad(model, batch), -part.eta)
        return model


Begin = Callable[..., Run]


@pytest.fixture
def begin(federate: Any, start: Any) -> Begin:
    def build(kind: type[Simulation], method: Method, sizes: tuple[int, ...] = SIZES, **options: Any) -> Run:
        federation = federate(sizes, 3, (5,), 3)
        return Run(method, *start(kind, method, federation, network(), dtype=torch.float64, **({"chunk": 4} | options)))

    return build


def method_of(train: Train, **parts: Any) -> Method:
    chosen = {"select": Uniform(count=4), "keep": Everyone(), "collaborate": Mean()} | parts
    return Method("toy", train=train, **chosen)


def equal(one: Model, other: Model) -> None:
    torch.testing.assert_close(dict(one), dict(other), rtol=1e-9, atol=1e-12)


# several named models each way


@dataclass(frozen=True)
class Controlled(SGD):
    """SCAFFOLD: y <- y - eta (g - c_i + c); c_i+ = c_i - c + (W - y) / (K eta)."""

    def slots(self, model: Model, own: bool) -> Message:
        return {"control": tree.zeros(model)}

    def descents(self) -> tuple[Descent, ...]:
        return (Descent("model", plus=("common",), minus=("mine",)),)

    def begin(self, sent: Message | None, mine: Message) -> Message:
        assert sent is not None
        return {"model": sent["model"], "common": sent["control"], "mine": mine["control"]}

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        assert sent is not None
        moved = tree.update(carry["model"], sent["model"])  # W - y
        drift = tree.mapped(lambda value: value / (work.steps * work.rate), moved)
        control = tree.added(tree.update(sent["control"], mine["control"]), drift)
        return {"control": control}, {"model": carry["model"], "control": tree.update(mine["control"], control)}


@dataclass(frozen=True)
class MeanAndControl(Mean):
    def init(self, task: Task) -> Slot:
        return {"model": task.model, "control": tree.zeros(task.model)}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        return Sent(ids, shared={"model": slot["model"], "control": slot["control"]}), slot

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        model = super().receive(slot, task, sent, reply, kept)["model"]
        change = tree.mapped(lambda value: value.sum(0) / task.n, reply.upload["control"])
        return {"model": model, "control": tree.added(slot["control"], change)}


@ENGINES
@pytest.mark.parametrize("how", [STEPS, EPOCHS], ids=["steps", "epochs"])
def test_control_variates(begin: Begin, engine: type[Simulation], how: dict[str, Any]) -> None:
    run = begin(engine, method_of(Controlled(**how), collaborate=MeanAndControl()))
    first = run.model
    by_hand = {client: run.trained(first, 1, client) for client in range(6)}
    for t in (1, 2, 3):
        log = run.round()
        assert log.traffic.uploads == log.traffic.downloads == 2 * 4
        assert log.traffic.bytes_up == log.traffic.bytes_down == 2 * 4 * 8 * run.engine.network.parameters
        mine = run.engine.slots.values["control"]
        equal(run.state.collaborate["control"], tree.mapped(lambda value: value.mean(0), mine))
        if t == 1:  # all controls are zero, so this is FedAvg, and c_i the mean gradient on the way
            ids = log.selected.tolist()
            total = sum(SIZES[i] for i in ids)
            for name, value in run.model.items():
                wanted = sum(SIZES[i] / total * by_hand[i][name] for i in ids)
                torch.testing.assert_close(value, wanted)
                for i in range(6):
                    taken = int(run.engine.passed(run.method.train, 1, torch.tensor([i])).steps[0])
                    slope = (first[name] - by_hand[i][name]) / (taken * 0.1) if i in ids else torch.zeros_like(value)
                    torch.testing.assert_close(mine[name][i], slope)


# private slots, and single numbers in messages


@dataclass(frozen=True)
class Alpha(SGD):
    """Counts its rounds, and learns one number of its own: alpha <- alpha - 0.1 <g, w - v>, which needs a product over
    the whole model."""

    elementwise = False

    def slots(self, model: Model, own: bool) -> Message:
        zero = next(iter(model.values())).new_zeros(())  # of the model's own type
        return {"count": {"value": zero}, "alpha": {"value": zero + 0.5}, "v": model}

    def begin(self, sent: Message | None, mine: Message) -> Message:
        assert sent is not None
        return {"model": sent["model"], "alpha": mine["alpha"], "v": mine["v"]}

    def step(self, carry: Message, batches: tuple[Batch, ...], f: Objective, rate: float) -> Message:
        g = f.grad(carry["model"], batches[0])
        along = sum((g[name] * (carry["model"][name] - carry["v"][name])).sum() for name in g)
        alpha = carry["alpha"]["value"] - 0.1 * along
        v = tree.mapped(lambda a, b: alpha * a + (1 - alpha) * b, carry["v"], carry["model"])
        return {"model": tree.added(carry["model"], g, -rate), "alpha": {"value": alpha}, "v": v}

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        count = {"value": mine["count"]["value"] + 1}
        kept = {"count": count, "alpha": carry["alpha"], "v": carry["v"]}
        return kept, {"model": carry["model"], "alpha": carry["alpha"]}


@dataclass(frozen=True)
class MeanAndAlphas(Mean):
    """Tells everybody the mean alpha, and remembers the last one of each client."""

    def init(self, task: Task) -> Slot:
        return {"model": task.model, "alphas": torch.zeros(task.n, dtype=torch.float64)}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        return Sent(ids, {"model": slot["model"]}, {"alpha": {"value": slot["alphas"][ids]}}), slot

    def receive(self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor) -> Slot:
        assert reply.upload["alpha"]["value"].shape == reply.ids.shape
        alphas = slot["alphas"].index_copy(0, reply.ids, reply.upload["alpha"]["value"].double())
        return super().receive(slot, task, sent, reply, kept) | {"alphas": alphas}


@ENGINES
@pytest.mark.parametrize("how", [STEPS, EPOCHS], ids=["steps", "epochs"])
def test_private_slots_persist_and_single_numbers_travel(
    begin: Begin, engine: type[Simulation], how: dict[str, Any]
) -> None:
    run = begin(engine, method_of(Alpha(**how), collaborate=MeanAndAlphas()))
    times = torch.zeros(6)
    shown = torch.zeros(6, dtype=torch.float64)
    for _ in range(4):
        log = run.round()
        times[log.selected] += 1
        alphas = run.private("alpha")
        shown[log.selected] = alphas[log.selected].double()
        torch.testing.assert_close(run.state.collaborate["alphas"], shown, rtol=1e-6, atol=0)
        numbers = run.engine.network.parameters
        assert log.traffic.uploads == pytest.approx(4 * (numbers + 1) / numbers)
    assert run.private("count").tolist() == times.tolist()
    moved = (run.private("alpha") - 0.5).abs() > 1e-6
    assert moved[times > 1].all()
    assert not moved[times == 0].any()


@dataclass(frozen=True)
class Clipped(SGD):
    """A step as long as eta at most: uses a norm, so it is not elementwise."""

    elementwise = False

    def step(self, carry: Message, batches: tuple[Batch, ...], f: Objective, rate: float) -> Message:
        g = f.grad(carry["model"], batches[0])
        norm = torch.sqrt(sum((value**2).sum() for value in g.values()))
        return {"model": tree.mapped(lambda w, v: w - rate * v / norm, carry["model"], g)}


@ENGINES
def test_a_step_with_a_norm(begin: Begin, engine: type[Simulation]) -> None:
    method = method_of(Clipped(eta=0.1, steps=1, batch=4))
    run = begin(engine, method)
    sent, _ = method.collaborate.send(run.state.collaborate, run.task, torch.arange(6), None)
    reply = run.engine.train(method.train, sent, torch.arange(6), 1)
    update = tree.update(tree.repeated(run.model, 6), reply.upload["model"])
    torch.testing.assert_close(tree.vector(update).norm(dim=1), torch.full((6,), 0.1, dtype=torch.float64))


# what clients exchange before round 1


@dataclass(frozen=True)
class Pooled(SGD):
    """Each client sends its mean input; steps use 0.9 of the sample and 0.1 of the third client's mean."""

    elementwise = False

    def prepare(self, x: Tensor, y: Tensor, classes: int) -> Message | None:
        return {"pool": {"x": x.mean(0)[None], "size": torch.tensor([float(len(y))])}}

    def begin(self, sent: Message | None, mine: Message) -> Message:
        assert sent is not None
        return {"model": sent["model"], "pool": sent["pool"]}

    def step(self, carry: Message, batches: tuple[Batch, ...], f: Objective, rate: float) -> Message:
        mixed = batches[0] | {"x": 0.9 * batches[0]["x"] + 0.1 * carry["pool"]["x"][2]}
        return carry | {"model": tree.added(carry["model"], f.grad(carry["model"], mixed), -rate)}

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        assert sent is not None
        return mine, {"model": carry["model"], "pool": sent["pool"]}


@ENGINES
def test_every_client_finds_the_pool(begin: Begin, engine: type[Simulation]) -> None:
    method = method_of(Pooled(**EPOCHS))
    run = begin(engine, method)
    sent, _ = method.collaborate.send(run.state.collaborate, run.task, torch.arange(6), None)
    reply = run.engine.train(method.train, sent, torch.tensor([1, 2, 5]), 1)
    fed = run.engine.federation
    means = torch.stack([fed.x[fed.train[i]].double().mean(0) for i in range(6)])
    for pool in reply.upload["pool"]["x"]:
        torch.testing.assert_close(pool, means)
    assert reply.upload["pool"]["size"][0].tolist() == list(SIZES)
    still = begin(engine, method_of(SGD(**EPOCHS)))
    alone = still.engine.train(still.method.train, sent, torch.tensor([1, 2, 5]), 1)
    assert not torch.allclose(alone.upload["model"]["0.weight"], reply.upload["model"]["0.weight"], atol=1e-6)


def test_what_is_exchanged_before_round_1_is_counted(federate: Any) -> None:
    federation = federate(SIZES, 3, (5,), 3)

    def cost(train: Train) -> dict[str, float]:
        found: dict[str, float] = fk.run(fk.Experiment(method_of(train), federation, network(), 2)).summary["cost"]
        return found

    numbers = 6 * (5 + 1)
    with_pool, without = cost(Pooled(**STEPS)), cost(SGD(**STEPS))
    uploaded = numbers * 2 * 4  # `end` sends the pool along with each of 2 x 4 models, to be looked at
    parameters = 5 * 4 + 4 + 4 * 3 + 3
    assert with_pool["uploads"] - without["uploads"] == pytest.approx((numbers + uploaded) / parameters)
    assert with_pool["downloads"] - without["downloads"] == pytest.approx(6 * numbers / parameters)
    assert with_pool["bytes_up"] - without["bytes_up"] == 4 * (numbers + uploaded)


# several batches a step


@dataclass(frozen=True)
class Meta(SGD):
    """Per-FedAvg, first order: try a step on one batch, take the gradient there on the next."""

    batches_per_step = 2

    def begin(self, sent: Message | None, mine: Message) -> Message:
        assert sent is not None
        return {"model": sent["model"]}

    def step(self, carry: Message, batches: tuple[Batch, ...], f: Objective, rate: float) -> Message:
        one, two = batches
        tried = tree.added(carry["model"], f.grad(carry["model"], one), -0.5)
        return {"model": tree.added(carry["model"], f.grad(tried, two), -rate)}

    def personal_model(self, sent: Message | None, mine: Message, batch: Batch, f: Objective) -> Model:
        assert sent is not None
        return tree.added(sent["model"], f.grad(sent["model"], batch), -0.5)


@dataclass(frozen=True)
class Thrice(Meta):
    batches_per_step = 3

    def step(self, carry: Message, batches: tuple[Batch, ...], f: Objective, rate: float) -> Message:
        a, b, c = batches
        carry = super().step(carry, (a, b), f, rate)
        return {"model": tree.added(carry["model"], f.grad(carry["model"], c), -rate)}


def planned(run: Run, t: int, client: int) -> list[Batch]:
    work = run.engine.passed(run.method.train, t, torch.tensor([client]))
    return [tree.row(run.engine.batch(work, k, slice(0, 1)), 0) for k in range(len(work.rows))]


@ENGINES
@pytest.mark.parametrize("part", [Meta, Thrice])
@pytest.mark.parametrize("how", [STEPS, EPOCHS], ids=["steps", "epochs"])
def test_several_batches_a_step(begin: Begin, engine: type[Simulation], part: type[SGD], how: dict[str, Any]) -> None:
    sizes = (3, 7, 25, 10, 12, 30) if part is Meta else (5, 7, 25, 10, 12, 30)  # two or three batches in two epochs
    method = method_of(part(**how))
    run = begin(engine, method, sizes=sizes)
    everyone = torch.arange(6)
    sent, _ = method.collaborate.send(run.state.collaborate, run.task, everyone, None)
    reply = run.engine.train(method.train, sent, everyone, 1)
    per = part.batches_per_step
    for client, size in enumerate(sizes):
        batches = planned(run, 1, client)
        wanted = 3 * per if how is STEPS else 2 * -(-size // 4) // per * per
        assert len(batches) == wanted
        model: Message = {"model": run.model}
        for k in range(0, wanted, per):
            model = method.train.step(model, tuple(batches[k : k + per]), run.engine.network, 0.1)
        equal(tree.row(reply.upload["model"], client), model["model"])
    assert reply.report["steps"].tolist() == [len(planned(run, 1, i)) // per for i in range(6)]


@ENGINES
@pytest.mark.parametrize("part", [Meta, Thrice])
def test_several_batches_a_step_where_an_epoch_has_only_one(
    begin: Begin, engine: type[Simulation], part: type[SGD]
) -> None:
    """One step a round is the least, and every batch of it has samples."""
    run = begin(engine, method_of(part(eta=0.1, steps=None, epochs=1, batch=4), select=Uniform(count=6)))
    for client in range(6):
        assert all(batch.get("weight", torch.ones(1)).sum() > 0 for batch in planned(run, 1, client))
    log = run.round()
    assert log.dropped == []
    assert log.replied == 6


# the judged model


@ENGINES
def test_judged_by_a_model_made_from_a_training_batch(begin: Begin, engine: type[Simulation]) -> None:
    run = begin(engine, method_of(Meta(**STEPS)))
    run.round()
    run.round()
    before = run.model
    judged = rounds.judged(run.method, run.task, run.engine, run.state, torch.arange(6))
    for client in range(6):
        batch = planned(run, 2, client)[0]
        wanted = tree.added(before, run.engine.network.grad(before, batch), -0.5)
        equal(tree.row(judged, client), wanted)
    equal(run.model, before)
    assert not run.method.finetunes
    score = rounds.scores(run.method, run.task, run.engine, run.state, None)["post"]
    direct = run.engine.evaluate(judged, torch.arange(6), run.engine.federation.test)
    assert torch.equal(score.correct, direct.correct)


@ENGINES
def test_nothing_is_dropped_where_a_client_is_judged(federate: Any, start: Any, engine: type[Simulation]) -> None:
    method = method_of(Meta(**STEPS))
    module = nn.Sequential(nn.Linear(5, 4), nn.Dropout(0.5), nn.Linear(4, 3))
    built = start(engine, method, federate(SIZES, 3, (5,), 3), module, dtype=torch.float64, chunk=4)
    run = Run(method, *built)
    run.round()
    judged = rounds.judged(method, run.task, run.engine, run.state, torch.arange(6))
    for client in range(6):
        batch = {key: value for key, value in planned(run, 1, client)[0].items() if not key.startswith("mask of ")}
        wanted = tree.added(run.model, run.engine.network.grad(run.model, batch), -0.5)
        equal(tree.row(judged, client), wanted)


@dataclass(frozen=True)
class TwoModels(SGD):
    """Ditto: a common model, and a private one pulled towards what was sent; judged by the latter."""

    lam: float = 0.5

    def slots(self, model: Model, own: bool) -> Message:
        return {"personal": model}

    def descents(self) -> tuple[Descent, ...]:
        return Descent("model"), Descent("personal", "sent", self.lam)

    def begin(self, sent: Message | None, mine: Message) -> Message:
        assert sent is not None
        return {"model": sent["model"], "personal": mine["personal"], "sent": sent["model"]}

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        return {"personal": carry["personal"]}, {"model": carry["model"]}

    def personal_model(self, sent: Message | None, mine: Message, batch: Batch, f: Objective) -> Model:
        return mine["personal"]


@ENGINES
def test_judged_by_a_private_slot(begin: Begin, engine: type[Simulation]) -> None:
    run = begin(engine, method_of(TwoModels(**EPOCHS)))
    first = run.model
    plain = begin(engine, method_of(SGD(**EPOCHS)))
    log = run.round()
    plain.round()
    equal(run.model, plain.model)  # the private model does not touch the common one
    judged = rounds.judged(run.method, run.task, run.engine, run.state, torch.arange(6))
    for client in range(6):
        model = first
        if client in log.selected.tolist():
            for batch in planned(run, 1, client):
                g = tree.added(run.engine.network.grad(model, batch), tree.update(first, model), 0.5)
                model = tree.added(model, g, -0.1)
        equal(tree.row(judged, client), model)
    result = fk.run(fk.Experiment(run.method, run.engine.federation, network(), 2, evaluate_every=1))
    assert set(result.models) == {"global", "personal"}
    assert set(result.rounds[0]["accuracy"]) == {"global", "post"}


# selection that learns


@dataclass(frozen=True)
class Costliest(Select):
    """The clients with the largest reported loss; those never heard of first."""

    count: int = 2

    @property
    def needs(self) -> Needs:
        return Needs(reports=("loss",))

    def init(self, task: Task) -> Slot:
        return {"loss": torch.full((task.n,), torch.inf, dtype=torch.float64), "heard": torch.zeros(())}

    def __call__(self, slot: Slot, task: Task, round: int, gen: torch.Generator) -> tuple[Tensor, Slot]:
        return torch.sort(slot["loss"], descending=True, stable=True).indices[: self.count].sort().values, slot

    def observe(
        self, slot: Slot, task: Task, sent: Sent, reply: Reply, kept: Tensor, after: Model | None, gen: torch.Generator
    ) -> Slot:
        assert after is not None
        far = sum((after[name] - value).abs().sum() for name, value in sent.shared["model"].items())
        return {"loss": slot["loss"].index_copy(0, reply.ids, reply.report["loss"]), "heard": slot["heard"] + (far > 0)}


@ENGINES
def test_selection_learns_from_replies(begin: Begin, engine: type[Simulation]) -> None:
    run = begin(engine, method_of(SGD(**STEPS), select=Costliest(2)))
    fed = run.engine.federation
    known: dict[int, float] = {}
    for t in range(6):
        before = run.model
        log = run.round()
        ids = log.selected.tolist()
        if t < 3:
            assert ids == [2 * t, 2 * t + 1]
        else:
            assert ids == sorted(sorted(known, key=lambda i: (-known[i], i))[:2])
        for i in ids:  # f_i of the model it was sent, over all its training samples
            rows = fed.train[i]
            batch = {"x": run.engine.x[rows], "y": fed.y[rows]}
            known[i] = float(run.engine.network.loss(before, batch))
            assert float(run.state.select["loss"][i]) == pytest.approx(known[i], rel=1e-9)
    assert run.state.select["heard"] == 6


# a model per client, mixed before training


@dataclass(frozen=True)
class Halfway(Collaborate):
    """Each selected client is sent the middle between its model and the mean of the selected."""

    @property
    def needs(self) -> Needs:
        return Needs(current=True)

    @property
    def gives(self) -> Gives:
        return Gives(own_model=True)

    def init(self, task: Task) -> Slot:
        return {"rounds": torch.zeros(())}

    def send(self, slot: Slot, task: Task, ids: Tensor, current: Model | None) -> tuple[Sent, Slot]:
        assert current is not None
        assert all(len(value) == len(ids) for value in current.values())
        mixed = tree.mapped(lambda value: 0.5 * value + 0.5 * value.mean(0, keepdim=True), current)
        return Sent(ids, own={"model": mixed}), {"rounds": slot["rounds"] + 1}


@dataclass(frozen=True)
class Shows(Prox):
    """Shows another model than the one it is judged by: twice its own."""

    shared: ClassVar[str] = "shown"

    def slots(self, model: Model, own: bool) -> Message:
        return super().slots(model, own) | {"shown": tree.mapped(lambda value: 2 * value, model)}

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        kept, upload = super().end(carry, sent, mine, work)
        return kept | {"shown": tree.mapped(lambda value: 2 * value, carry["model"])}, upload


@ENGINES
@pytest.mark.parametrize("part", [SGD, Prox, Shows])
@pytest.mark.parametrize("trains", ["selected", "everyone"])
def test_mixing_before_training(begin: Begin, engine: type[Simulation], part: type[SGD], trains: Any) -> None:
    method = method_of(part(**EPOCHS), collaborate=Halfway(), trains=trains)
    run = begin(engine, method)
    for t in (1, 2, 3):
        before = tree.mapped(torch.clone, run.engine.slots.values[part.shared])
        log = run.round(evaluates=True)
        ids = log.selected
        held = tree.mapped(torch.clone, before)
        for name, value in before.items():
            held[name][ids] = 0.5 * value[ids] + 0.5 * value[ids].mean(0, keepdim=True)
        assert log.received is not None
        equal(log.received, held)
        found = rounds.scores(method, run.task, run.engine, run.state, log.received)
        assert set(found) == {"recv", "post"}
        judged = run.engine.evaluate(held, torch.arange(6), run.engine.federation.test)
        assert torch.equal(found["recv"].loss, judged.loss)
        if part is SGD:
            for client in range(6):
                start = tree.row(held, client)
                idle = trains == "selected" and client not in ids.tolist()
                wanted = start if idle else run.trained(start, t, client)
                equal(tree.row(run.engine.slots.values["model"], client), wanted)
        assert (log.traffic.uploads, log.traffic.downloads) == (4.0, 4.0)
    assert run.state.collaborate["rounds"] == 3


@ENGINES
def test_a_centre_stays_where_it_was_sent(begin: Begin, engine: type[Simulation]) -> None:
    """Prox for clients with models of their own: pulled, also in rounds without a message, to what was last sent."""
    method = method_of(Prox(**STEPS, lam=2.0), collaborate=Halfway(), trains="everyone", select=Uniform(count=2))
    run = begin(engine, method)
    centre = tree.repeated(run.engine.network.model, 6)
    for t in (1, 2, 3):
        own = tree.mapped(torch.clone, run.engine.slots.values["model"])
        log = run.round(evaluates=True)
        assert log.received is not None
        chosen = torch.zeros(6, dtype=torch.bool).index_fill(0, log.selected, True)
        for client in range(6):
            start = tree.row(log.received if chosen[client] else own, client)
            pole = start if chosen[client] else tree.row(centre, client)
            model = start
            for batch in planned(run, t, client):
                g = tree.added(run.engine.network.grad(model, batch), tree.update(pole, model), 2.0)
                model = tree.added(model, g, -0.1)
            equal(tree.row(run.engine.slots.values["model"], client), model)
        centre = tree.mapped(torch.clone, run.engine.slots.values["centre"])
        received = log.received
        equal(tree.rows(centre, chosen), tree.rows(received, chosen))


# who trains and who receives


@dataclass(frozen=True)
class Told(SGD):
    """Notes whether anything was sent."""

    def slots(self, model: Model, own: bool) -> Message:
        return {"model": model, "told": {"value": torch.zeros(())}, "trained": {"value": torch.zeros(())}}

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        told = {"value": mine["told"]["value"] + (0.0 if sent is None else 1.0)}
        trained = {"value": mine["trained"]["value"] + 1.0}
        return {"model": carry["model"], "told": told, "trained": trained}, {"model": carry["model"]}


@ENGINES
def test_the_others_train_with_nothing_sent(begin: Begin, engine: type[Simulation]) -> None:
    run = begin(engine, method_of(Told(**EPOCHS), collaborate=Halfway(), trains="everyone", select=Uniform(count=2)))
    told = torch.zeros(6)
    for _ in range(3):
        log = run.round()
        told[log.selected] += 1
        assert log.replied == 2
    assert run.private("told").tolist() == told.tolist()
    assert run.private("trained").tolist() == [3.0] * 6


@ENGINES
def test_everyone_trains_and_the_selected_count(begin: Begin, engine: type[Simulation]) -> None:
    method = method_of(Told(**EPOCHS), select=Uniform(count=2), trains="everyone", receives="everyone")
    run = begin(engine, method)
    for t in (1, 2):
        before = run.model
        log = run.round()
        ids = log.selected.tolist()
        assert log.replied == 2
        assert (log.traffic.uploads, log.traffic.downloads) == (2.0, 6.0)
        models = [run.trained(before, t, i) for i in range(6)]
        equal(run.engine.slots.values["model"], tree.stacked(models))
        weight = torch.tensor([float(SIZES[i]) for i in ids])
        equal(run.model, tree.weighted(tree.stacked([models[i] for i in ids]), weight))
    assert run.private("told").tolist() == [2.0] * 6


# replies that do not come, or should not have


def losing(kind: type[Simulation], lost: Callable[[int, int], bool]) -> type[Simulation]:
    """An engine on which the reply of client i in round t is lost if `lost(t, i)`."""

    class Losing(kind):  # type: ignore[misc, valid-type]
        def train(self, part: Train, sent: Sent, ids: Tensor, round: int, *rest: Any, **more: Any) -> Reply:
            reply = super().train(part, sent, ids, round, *rest, **more)
            mask = torch.tensor([not lost(round, i) for i in reply.ids.tolist()], dtype=torch.bool)
            return reply.only(mask)

    return Losing


@dataclass(frozen=True)
class Counting(Keep):
    def init(self, task: Task, gen: torch.Generator) -> Slot:
        return {"times": torch.zeros(())}

    def __call__(
        self, slot: Slot, task: Task, sent: Sent, reply: Reply, round: int, gen: torch.Generator
    ) -> tuple[Tensor, Slot]:
        return torch.ones(len(reply.ids), dtype=torch.float64), {"times": slot["times"] + 1}


@ENGINES
def test_fewer_replies_than_selected(begin: Begin, engine: type[Simulation]) -> None:
    method = method_of(SGD(**EPOCHS), select=Uniform(count=6))
    run = begin(losing(engine, lambda t, i: i in (0, 3)), method)
    before = run.model
    log = run.round()
    assert (len(log.selected), log.replied, log.kept, log.dropped) == (6, 4, 4.0, [])
    assert (log.traffic.uploads, log.traffic.downloads) == (4.0, 6.0)
    came = [1, 2, 4, 5]
    models = tree.stacked([run.trained(before, 1, i) for i in came])
    equal(run.model, tree.weighted(models, torch.tensor([float(SIZES[i]) for i in came])))


@ENGINES
def test_no_reply_is_a_skipped_round(begin: Begin, engine: type[Simulation]) -> None:
    method = method_of(SGD(**EPOCHS), select=Costliest(2), keep=Counting())
    run = begin(losing(engine, lambda t, i: t == 2), method)
    run.round()
    before = run.state
    log = run.round()
    assert (log.replied, log.kept, log.dropped, log.traffic.uploads) == (0, 0.0, [], 0.0)
    assert run.state.round == 2
    for name in ("select", "keep", "collaborate"):
        one, other = tree.flat(getattr(before, name)), tree.flat(getattr(run.state, name))
        assert set(one) == set(other)
        assert all(torch.equal(value, other[key]) for key, value in one.items())
    run.round()
    assert run.state.keep["times"] == 2
    assert not torch.equal(run.model["0.weight"], before.collaborate["model"]["0.weight"])


@dataclass(frozen=True)
class Broken(SGD):
    """Clients with `size` samples upload something that is not a number."""

    size: int = 7
    what: str = "nan"

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        kept, upload = super().end(carry, sent, mine, work)
        bad = torch.where(work.size == self.size, float(self.what), 0.0)
        spoiled = {name: tree.mapped(lambda value: value + bad, model) for name, model in upload.items()}
        return {name: spoiled[name] for name in kept}, spoiled


@ENGINES
@pytest.mark.parametrize("what", ["nan", "inf"])
def test_a_client_that_uploads_nonsense_is_dropped(begin: Begin, engine: type[Simulation], what: str) -> None:
    run = begin(engine, method_of(Broken(**EPOCHS, what=what), select=Uniform(count=6)))
    before = run.model
    log = run.round()
    assert (log.dropped, log.replied, log.kept) == ([SIZES.index(7)], 5, 5.0)
    others = [i for i in range(6) if SIZES[i] != 7]
    models = tree.stacked([run.trained(before, 1, i) for i in others])
    equal(run.model, tree.weighted(models, torch.tensor([float(SIZES[i]) for i in others])))
    result = fk.run(
        fk.Experiment(run.method, run.engine.federation, network(), 3, engine=engine.name, evaluate_every=1)
    )
    assert [line["dropped"] for line in result.rounds] == [[2]] * 3
    assert result.summary["dropped"] == 3
    assert all(value.isfinite().all() for value in result.models["global"].values())
    assert result.summary["accuracy"]["global"]["macro"]["last"] is not None


@ENGINES
def test_all_upload_nonsense(begin: Begin, engine: type[Simulation]) -> None:
    run = begin(engine, method_of(Broken(**EPOCHS, size=4), select=Uniform(count=3)), sizes=(4, 4, 4))
    before = run.model
    log = run.round()
    assert (log.dropped, log.replied, log.kept) == ([0, 1, 2], 0, 0.0)
    equal(run.model, before)


@ENGINES
def test_a_broken_client_does_not_break_those_it_is_mixed_with(begin: Begin, engine: type[Simulation]) -> None:
    run = begin(engine, method_of(Broken(**EPOCHS), select=Uniform(count=6), collaborate=Halfway()))
    for _ in range(3):
        log = run.round()
        assert log.dropped == [SIZES.index(7)]
        assert log.replied == 5
    others = torch.tensor([size != 7 for size in SIZES])
    assert tree.finite(tree.rows(run.engine.slots.values["model"], others)).all()


# whose update counts


@dataclass(frozen=True)
class Even(Keep):
    """Only clients with an even number count, each by `weight`."""

    weight: float = 1.0

    def __call__(
        self, slot: Slot, task: Task, sent: Sent, reply: Reply, round: int, gen: torch.Generator
    ) -> tuple[Tensor, Slot]:
        return (reply.ids % 2 == 0).double() * self.weight, slot


@ENGINES
@pytest.mark.parametrize("weights", ["size", "uniform"])
def test_only_the_kept_count(begin: Begin, engine: type[Simulation], weights: Any) -> None:
    method = method_of(SGD(**EPOCHS), select=Uniform(count=6), keep=Even(), collaborate=Mean(weights))
    run = begin(engine, method)
    before = run.model
    log = run.round()
    assert (log.kept, log.replied) == (3.0, 6)
    models = tree.stacked([run.trained(before, 1, i) for i in (0, 2, 4)])
    weight = torch.tensor([float(SIZES[i]) if weights == "size" else 1.0 for i in (0, 2, 4)])
    equal(run.model, tree.weighted(models, weight))


@ENGINES
def test_nobody_kept_leaves_the_model(begin: Begin, engine: type[Simulation]) -> None:
    run = begin(engine, method_of(SGD(**EPOCHS), select=Uniform(count=6), keep=Even(0.0)))
    before = run.model
    log = run.round()
    assert (log.kept, log.replied) == (0.0, 6)
    equal(run.model, before)


# all of them on every engine, in any chunks

TOYS = {
    "control variates": method_of(Controlled(**EPOCHS), collaborate=MeanAndControl()),
    "single numbers": method_of(Alpha(**EPOCHS), collaborate=MeanAndAlphas()),
    "a norm": method_of(Clipped(**EPOCHS)),
    "a pool": method_of(Pooled(**EPOCHS)),
    "two batches a step": method_of(Meta(**STEPS)),
    "three batches a step": method_of(Thrice(**STEPS)),
    "two models": method_of(TwoModels(**EPOCHS)),
    "selection by loss": method_of(SGD(**EPOCHS), select=Costliest(2)),
    "mixing before": method_of(SGD(**EPOCHS), collaborate=Halfway()),
    "mixing before, everyone trains": method_of(Prox(**EPOCHS), collaborate=Halfway(), trains="everyone"),
    "another model shown": method_of(Shows(**EPOCHS), collaborate=Halfway(), trains="everyone"),
    "everyone receives": method_of(Told(**EPOCHS), trains="everyone", receives="everyone"),
    "some kept": method_of(SGD(**EPOCHS), keep=Even()),
}


@pytest.mark.parametrize("name", TOYS)
def test_engines_agree(begin: Begin, name: str) -> None:
    found = []
    for kind, chunk in ((Plain, 1), (Stacked, 1), (Stacked, 4), (Stacked, 6)):
        run = begin(kind, TOYS[name], chunk=chunk)
        for _ in range(2):
            run.round()
        server = {"select": run.state.select, "collaborate": run.state.collaborate}
        found.append(tree.flat(server | {"clients": run.engine.slots.values}))
    for other in found[1:]:
        equal(found[0], other)


@pytest.mark.parametrize("name", TOYS)
def test_looking_changes_nothing(begin: Begin, name: str) -> None:
    found = []
    for looks in (False, True):
        run = begin(Stacked, TOYS[name])
        for _ in range(2):
            log = run.round(looks)
            if looks:
                rounds.scores(run.method, run.task, run.engine, run.state, log.received)
        server = {"select": run.state.select, "collaborate": run.state.collaborate}
        found.append(tree.flat(server | {"clients": run.engine.slots.values}))
    assert all(torch.equal(value, found[1][key]) for key, value in found[0].items())


def test_a_failing_client_is_named(federate: Any, start: Any) -> None:
    @dataclass(frozen=True)
    class Failing(SGD):
        def step(self, carry: Message, batches: tuple[Batch, ...], f: Objective, rate: float) -> Message:
            raise ValueError("no")

    method = method_of(Failing(**STEPS))
    federation = replace(federate(SIZES, 3, (5,), 3), clients=tuple("abcdef"))
    engine, task, state = start(Plain, method, federation, network())
    with pytest.raises(RuntimeError, match=r"client [a-f], round 1, part Failing: ValueError: no"):
        rounds.play(method, task, engine, state)


# a method's parts must fit


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"select": Mean()}, "Method 'toy' needs a Select part as select, not Mean"),
        ({"train": Uniform(count=1)}, "Method 'toy' needs a Train part as train, not Uniform"),
        ({"keep": "everyone"}, "Method 'toy' needs a Keep part as keep, not str"),
        ({"collaborate": None}, "Method 'toy' needs a Collaborate part as collaborate, not NoneType"),
        ({"trains": "all"}, "trains must be 'selected' or 'everyone', not 'all'"),
        ({"receives": "nobody"}, "receives must be 'selected' or 'everyone', not 'nobody'"),
        ({"collaborate": Nothing(), "receives": "everyone"}, "everyone receives but only the selected train"),
        ({"trains": "everyone"}, "everyone trains but Mean leaves the others no model to train"),
        ({"train": Prox(start="own")}, "clients cannot start from their own model, because Mean gives them none"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, Any], sentence: str) -> None:
    good: dict[str, Any] = {"select": Uniform(count=1), "train": SGD(), "keep": Everyone(), "collaborate": Mean()}
    Method("toy", **good)
    with pytest.raises(fk.BadInput, match=sentence):
        Method("toy", **(good | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"trains": "everyone", "receives": "everyone"},
        {"collaborate": Nothing(), "trains": "everyone"},
        {"collaborate": Nothing(), "train": Prox(start="own")},
    ],
)
def test_parts_that_fit_are_taken(changes: dict[str, Any]) -> None:
    good: dict[str, Any] = {"select": Uniform(count=1), "train": SGD(), "keep": Everyone(), "collaborate": Mean()}
    Method("toy", **(good | changes))
