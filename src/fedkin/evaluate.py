"""What is scored in a run, how often, and how: of which models, on whose samples."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import torch
from torch import Tensor

from fedkin.core import batches, tree
from fedkin.engines.engine import Engine, Score, Split
from fedkin.errors import require
from fedkin.messages import Model, Sent, Task
from fedkin.parts import Method
from fedkin.round import State

KINDS = ("post", "global", "recv", "test")  # of accuracy: of which model on whose samples; docs/decisions/0002

POINTS = 12  # rounds of a run that are scored by default, at least
BLOCK = 512  # clients whose personal models are held at once while they are scored, ...
HELD = 2**30  # ... as far as these models take no more bytes


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
    that only small models feel (measured: about 2,000 for 610 parameters).
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
    work += training(task.n) if method.finetunes and "post" in kinds else 0.0
    work += len(common) if common is not None and "test" in kinds else 0.0
    return max(1, min(task.rounds // POINTS, round(8 * work / training(share * task.n))))


def splits_scored(engine: Engine) -> dict[str, Split]:
    """Return the splits that are scored, by what is added to a kind's name: 'post' and 'post/validation'."""
    scored: dict[str, Split] = {"": "test", "/validation": "validation"}
    return {suffix: split for suffix, split in scored.items() if split in engine.splits}


def received_models(method: Method, task: Task, engine: Engine, sent: Sent) -> Model:
    """Return what every client holds just before it trains: the model it was sent or, if none, the one it had.

    Call this after the server has sent its messages and before the clients train.
    """
    held = engine.current(torch.arange(task.n), method.train.shared)
    if "model" not in sent.own:
        return held
    return {name: value.index_copy(0, sent.ids, sent.own["model"][name]) for name, value in held.items()}


def score_received(method: Method, task: Task, engine: Engine, sent: Sent) -> dict[str, Score]:
    """Score what every client holds just before it trains (`recv`)."""
    held, everyone = received_models(method, task, engine, sent), torch.arange(task.n)
    return {f"recv{suffix}": engine.score(held, everyone, split) for suffix, split in splits_scored(engine).items()}


def score_models(
    method: Method, task: Task, engine: Engine, state: State, kinds: Collection[str] = KINDS
) -> dict[str, Score]:
    """Score the models as they are now: `global`, `post` and `test`, where they are among `kinds`.

    A train part may name further private models (`Train.also`); they are scored as 'post-<name>'.
    """
    found: dict[str, Score] = {}
    common, splits = method.collaborate.model(state.collaborate), splits_scored(engine)
    if common is not None and "global" in kinds:
        found |= {f"global{suffix}": engine.score_one(common, split) for suffix, split in splits.items()}
    parts: dict[str, list[Score]] = {}
    for ids in blocks(task) if "post" in kinds else ():
        models = personal_models(method, task, engine, state, ids)
        for suffix, split in splits.items():
            parts.setdefault(f"post{suffix}", []).append(engine.score(models, ids, split, method.train))
            for name, slot in method.train.also.items():
                score = engine.score(engine.current(ids, slot), ids, split)
                parts.setdefault(f"post-{name}{suffix}", []).append(score)
    found |= {kind: joined(scores) for kind, scores in parts.items()}
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
) -> dict[str, Tensor]:
    """Return the outputs, for every client's test samples, of the models that `post` and `global` score now.

    `personal` are the personal models of all clients, where they are at hand already.
    """
    found: dict[str, Tensor] = {}
    if "post" in kinds:

        def models(ids: Tensor) -> Model:
            return personal_models(method, task, engine, state, ids) if personal is None else tree.rows(personal, ids)

        parts = [engine.outputs(models(ids), ids, "test", method.train) for ids in blocks(task)]
        found["post"] = torch.cat(parts)
    common = method.collaborate.model(state.collaborate)
    if common is not None and "global" in kinds:
        found["global"] = engine.outputs_one(common, "test")
    return found


def blocks(task: Task) -> tuple[Tensor, ...]:
    """Return all clients in blocks, whose personal models are held at once."""
    found: tuple[Tensor, ...] = torch.arange(task.n).split(max(1, min(BLOCK, HELD // tree.size([task.model])[1])))
    return found


def joined(parts: list[Score]) -> Score:
    """Join the scores of blocks of clients."""
    values = {name: torch.cat([part.values[name] for part in parts]) for name in parts[0].values}
    correct, loss, count = (torch.cat([getattr(part, n) for part in parts]) for n in ("correct", "loss", "count"))
    return Score(correct, loss, count, values)


def personal_models(method: Method, task: Task, engine: Engine, state: State, ids: Tensor) -> Model:
    """Return the personal models of these clients, stacked. Nothing is changed by asking.

    Where clients keep no model of their own, this is the common model after one local pass: what a client gets that
    takes the model home.
    """
    sent = Sent(ids[:0])
    if not method.collaborate.gives.own_model:
        current = engine.current(ids, method.train.shared) if method.needs.current else None
        sent, _ = method.collaborate.send(state.collaborate, task, ids, current)
    if method.finetunes:
        return engine.train(method.train, sent, ids, state.round + 1, keep=False).upload["model"]
    return engine.personal(method.train, sent, ids, state.round)
