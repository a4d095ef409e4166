"""What is scored in a run, how often, and how: of which models, on whose samples."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from fedkin.core import batches, tree
from fedkin.core.rng import generator
from fedkin.engines.engine import Engine, Far, Look, Score, Split
from fedkin.errors import require
from fedkin.log import Log
from fedkin.messages import Model, Sent, Task
from fedkin.parts import Method
from fedkin.round import State, opened

KINDS = ("post", "global", "recv", "test")  # of accuracy: of which model on whose samples; docs/decisions/0002

POINTS = 12  # rounds of a run that are scored by default, at least
BLOCK = 512  # clients whose personal models are held at once while they are scored, ...
HELD = 2**30  # ... as far as these models take no more bytes
SCORED: dict[str, Split] = {"": "test", "/validation": "validation"}  # splits, by what is added to a kind's name


def kinds_of(method: Method, common: bool) -> tuple[str, ...]:
    """Return the kinds of accuracy that a method can be scored by; `common`: there is a common test set.

    `post` scores each client's personal model, `recv` the model it was just sent, `global` the common model, all three
    on the client's own test samples; `test` scores the common model on the common test set.
    """
    one = method.collaborate.gives.common_model
    has = {"post": True, "global": one, "recv": method.needs.current, "test": one and common}
    return tuple(kind for kind in KINDS if has[kind])


def wanted_kinds(method: Method, asked: Collection[str] | None, common: bool) -> tuple[str, ...]:
    """Return the kinds of accuracy to compute: of those that the method can be scored by, those asked for."""
    kinds = kinds_of(method, common)
    found = tuple(kind for kind in kinds if asked is None or kind in asked)
    words, rest = " or ".join(asked or ()), " or ".join(kinds)
    sentence = f"{method.name} has no {words} to be scored by on these data; add {rest} to what is scored (--score)."
    require(found, sentence)
    return found


def cadence(
    method: Method, task: Task, kinds: Collection[str], chunk: int, test_sizes: Tensor, common: Tensor | None
) -> int:
    """Return every how many rounds to score: at least `POINTS` times a run, so that its curves show a course, and more
    often as long as scoring costs about an eighth of the run.

    The last round is scored in any case. The cost is counted in work, not in time, so that the choice is the same on
    every machine. The unit is one scored sample: a trained sample costs three, and a step of a chunk has a fixed cost
    that only small models feel (measured: about 2,000 for 610 parameters). `chunk` is how many clients train at once on
    most machines, and `test_sizes` are those of the clients that are scored.
    """
    train, sizes = method.train, task.sizes.numpy()
    fixed = 1.2e6 / tree.size([task.model])[0]
    steps = batches.number(sizes, train.batch, train.steps, train.epochs).mean()
    width = np.minimum(sizes, train.batch).mean()

    def training(clients: float) -> float:
        return float(steps * (np.ceil(clients / chunk) * fixed + 3 * clients * width))

    share = 1.0 if method.trains == "everyone" else method.select.share(task)
    looks = ("post" in kinds) + ("recv" in kinds or "global" in kinds)
    work = looks * float(test_sizes.sum())
    work += training(len(test_sizes)) if method.finetunes and "post" in kinds else 0.0
    work += len(common) if common is not None and "test" in kinds else 0.0
    return max(1, min(task.rounds // POINTS, round(8 * work / training(share * task.n))))


def splits_scored(engine: Engine) -> dict[str, Split]:
    """Return the splits that are scored, by what is added to a kind's name: 'post' and 'post/validation'."""
    return {suffix: split for suffix, split in SCORED.items() if split in engine.splits}


def sampled(seed: int, n: int, number: int | None) -> Tensor | None:
    """Return the clients that are scored where not all of n are: a random sample, the same for all rounds and methods
    of one seed; None where all are scored."""  # (number,) ascending
    if number is None or number >= n:
        return None
    return torch.randperm(n, generator=generator(seed, "score clients"))[:number].sort().values


def received_models(method: Method, task: Task, engine: Engine, sent: Sent, ids: Tensor | None = None) -> Model:
    """Return what these clients, by default all, hold just before they train: the model they were sent or, if none, the
    one they had.

    Call this after the server has sent its messages and before the clients train.
    """
    ids = torch.arange(task.n) if ids is None else ids
    held = engine.current(ids, method.train.shared)
    got = torch.isin(ids, sent.ids)
    if "model" not in sent.own or not got.any():
        return held
    to, row = got.nonzero()[:, 0], torch.searchsorted(sent.ids, ids[got])
    new = {name: held[name].index_copy(0, to, value[row]) for name, value in sent.own["model"].items()}
    return {name: new.get(name, value) for name, value in held.items()}  # layers that were not sent are their own


def score_received(
    method: Method, task: Task, engine: Engine, sent: Sent, sample: Tensor | None = None
) -> dict[str, Score]:
    """Score what every client, or each of a sample, holds just before it trains (`recv`)."""
    if isinstance(engine, Far):
        return looked(task, engine, look_at_received(method, engine, sent), sample)
    parts: dict[str, list[Score]] = {}
    for ids in blocks(task, sample):
        held = received_models(method, task, engine, sent, ids)
        for suffix, split in splits_scored(engine).items():
            parts.setdefault(f"recv{suffix}", []).append(engine.score(held, ids, split))
    return {kind: joined(scores, task.n, sample) for kind, scores in parts.items()}


def score_models(
    method: Method,
    task: Task,
    engine: Engine,
    state: State,
    kinds: Collection[str] = KINDS,
    sample: Tensor | None = None,
) -> dict[str, Score]:
    """Score the models as they are now: `global`, `post` and `test`, where they are among `kinds`.

    A train part may name further private models (`Train.also`); they are scored as 'post-<name>'. With a `sample` only
    these clients are scored.
    """
    if isinstance(engine, Far):
        return looked(task, engine, looks_at_models(method, task, engine, state, kinds), sample)
    found: dict[str, Score] = {}
    common, splits = method.collaborate.model(state.collaborate), splits_scored(engine)
    parts: dict[str, list[Score]] = {}
    if common is not None and "global" in kinds:
        if sample is None:
            found |= {f"global{suffix}": engine.score_one(common, split) for suffix, split in splits.items()}
        for ids in blocks(task, sample) if sample is not None else ():
            for suffix, split in splits.items():
                score = engine.score(tree.repeated(common, len(ids)), ids, split)
                parts.setdefault(f"global{suffix}", []).append(score)
    for ids in blocks(task, sample, method.train.personal_size) if "post" in kinds else ():
        models = personal_models(method, task, engine, state, ids)
        for suffix, split in splits.items():
            parts.setdefault(f"post{suffix}", []).append(engine.score(models, ids, split, method.train))
            for name, slot in method.train.also.items():
                score = engine.score(engine.current(ids, slot), ids, split)
                parts.setdefault(f"post-{name}{suffix}", []).append(score)
    found |= {kind: joined(scores, task.n, sample) for kind, scores in parts.items()}
    if common is not None and engine.has_common_test and "test" in kinds:
        found["test"] = engine.score_common(common)
    return found


def predictions(
    method: Method,
    task: Task,
    engine: Engine,
    state: State,
    kinds: Collection[str] = KINDS,
    personal: Model | None = None,
    sample: Tensor | None = None,
) -> dict[str, Tensor]:
    """Return the outputs, for every client's test samples, of the models that `post` and `global` score now.

    `personal` are the personal models of all clients, where they are at hand already. With a `sample` the outputs are
    for these clients' samples.
    """
    found: dict[str, Tensor] = {}
    if "post" in kinds:

        def models(ids: Tensor) -> Model:
            return personal_models(method, task, engine, state, ids) if personal is None else tree.rows(personal, ids)

        some = blocks(task, sample, method.train.personal_size)
        parts = [engine.outputs(models(ids), ids, "test", method.train) for ids in some]
        found["post"] = torch.cat(parts)
    common = method.collaborate.model(state.collaborate)
    if common is not None and "global" in kinds:
        if sample is None:
            found["global"] = engine.outputs_one(common, "test")
        else:
            repeated = [(tree.repeated(common, len(ids)), ids) for ids in blocks(task, sample)]
            found["global"] = torch.cat([engine.outputs(models, ids, "test") for models, ids in repeated])
    return found


def blocks(task: Task, ids: Tensor | None = None, size: int = 1) -> tuple[Tensor, ...]:
    """Return these clients, or all, in blocks, whose personal models are held at once; each is as large as so many
    models (`Train.personal_size`)."""
    ids = torch.arange(task.n) if ids is None else ids
    found: tuple[Tensor, ...] = ids.split(max(1, min(BLOCK, HELD // (size * tree.size([task.model])[1]))))
    return found


def joined(parts: list[Score], n: int, sample: Tensor | None = None) -> Score:
    """Join the scores of blocks of clients. Of n clients those not in the sample, if there is one, have a row too: that
    of a client without samples."""
    values = {name: torch.cat([part.values[name] for part in parts]) for name in parts[0].values}
    correct, loss, count = (torch.cat([getattr(part, k) for part in parts]) for k in ("correct", "loss", "count"))
    if sample is None:
        return Score(correct, loss, count, values)
    spread = {name: torch.full((n,), torch.nan, dtype=torch.float64) for name in values}
    correct, loss, count = (torch.zeros(n, dtype=v.dtype).index_copy(0, sample, v) for v in (correct, loss, count))
    return Score(correct, loss, count, {name: spread[name].index_copy(0, sample, v) for name, v in values.items()})


def personal_models(method: Method, task: Task, engine: Engine, state: State, ids: Tensor) -> Model:
    """Return the personal models of these clients, stacked. Nothing is changed by asking.

    Where clients keep no model of their own, this is the common model after one local pass: what a client gets that
    takes the model home.
    """
    sent = sent_to_be_judged(method, task, engine, state, ids)
    if method.finetunes:
        return engine.train(method.train.at_home(), sent, ids, state.round + 1, keep=False).upload["model"]
    return engine.personal(method.train, sent, ids, state.round)


def sent_to_be_judged(method: Method, task: Task, engine: Engine, state: State, ids: Tensor) -> Sent:
    """Return what these clients are sent before they are judged: nothing where they hold models of their own."""
    if method.collaborate.gives.own_model:
        return Sent(ids[:0])
    current = engine.current(ids, method.train.shared) if method.needs.current else None
    return method.collaborate.send_to_judge(state.collaborate, task, ids, current)


# clients that are far away score their models themselves


def look_at_received(method: Method, engine: Engine, sent: Sent) -> dict[str, Look]:
    """Return what `recv` is of: what a client was sent or, if nothing, what it holds."""
    return {"recv": Look("held", sent, tuple(splits_scored(engine).values()), slot=method.train.shared)}


def looks_at_models(
    method: Method, task: Task, engine: Engine, state: State, kinds: Collection[str]
) -> dict[str, Look]:
    """Return what `global`, `post` and 'post-<name>' are of, as `score_models` has it.

    After the last round each client also writes the model by which it is judged down, at its own place.
    """
    found: dict[str, Look] = {}
    everyone, splits = torch.arange(task.n), tuple(splits_scored(engine).values())
    common, last = method.collaborate.model(state.collaborate), state.round == task.rounds
    if common is not None and "global" in kinds:
        found["global"] = Look("held", Sent(everyone, {"model": common}), splits)
    if "post" in kinds or last:
        sent, scored = sent_to_be_judged(method, task, engine, state, everyone), splits if "post" in kinds else ()
        way: tuple[Literal["personal", "tuned"], int] = ("personal", state.round)
        way = ("tuned", state.round + 1) if method.finetunes else way
        found["post"] = Look(way[0], sent, scored, way[1], stored=last)
    for name, slot in method.train.also.items() if "post" in kinds else ():
        found[f"post-{name}"] = Look("held", Sent(everyone[:0]), splits, slot=slot)
    return found


def looked(task: Task, engine: Far, looks: Mapping[str, Look], sample: Tensor | None) -> dict[str, Score]:
    """Let clients score these models, and return the scores by kind, of all clients."""
    ids = torch.arange(task.n) if sample is None else sample
    found = engine.looked(looks, ids)
    names = {split: suffix for suffix, split in SCORED.items()}
    return {
        kind + names[split]: joined([score], task.n, sample)
        for kind, scores in found.items()
        for split, score in scores.items()
    }


def ahead(method: Method, task: Task, engine: Engine, state: State, received: bool) -> None:
    """Tell an engine whose clients are far away which training comes next, so that it asks for scores and for training
    in one message. `received`: in that round it is scored what clients hold before they train."""
    if isinstance(engine, Far) and state.round < task.rounds:
        order = opened(method, task, engine.current, state, Log(state.round + 1)).order
        engine.expect(order, look_at_received(method, engine, order.sent) if received else {})
