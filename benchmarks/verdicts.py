"""How often a verdict is false: methods against themselves with other seeds, and gains drawn at random.

python benchmarks/verdicts.py [runs of each method] [pairs drawn of them]

A method is compared with itself, each side with other seeds, so that every clear difference is a false one. `before` is
the rule of earlier versions: Wilcoxon's test over clients, and the same sign in every seed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
from scipy import stats

import fedkin as fk
from fedkin.data import load
from fedkin.parts import Method
from fedkin.runs.difference import LEVEL, difference, holm

METHODS = 8  # of a table
SEEDS = (1, 2, 3, 5)


@dataclass(frozen=True)
class Setting:
    """Data and a model on which methods are compared with themselves."""

    title: str
    data: fk.Data
    model: str
    rounds: int = 12


SETTINGS = (
    Setting("digits, 20 clients", fk.Data("digits", "dirichlet:0.5", clients=20), "mlr"),
    Setting("digits, 60 clients, 8 test rows each", fk.Data("digits", "iid", clients=60), "dnn:16"),
    Setting("synthetic, 30 clients of 50 samples", fk.Data("synthetic", clients=30, samples=50), "mlr"),
)


def scores(method: Method, setting: Setting, runs: int) -> np.ndarray:
    """Return what every client reaches in each of these runs."""  # (runs, clients)
    federation, found = load(setting.data), []
    experiment = fk.Experiment(method, setting.data, setting.model, setting.rounds, evaluate_every=setting.rounds)
    for seed in range(runs):
        run = fk.run(replace(experiment, seed=seed), federation=federation, warn=lambda _: None)
        found.append(run.last()[run.judged])
    return np.stack(found)


def new_rule(gains: np.ndarray) -> float:
    return difference(gains).p


def old_rule(gains: np.ndarray) -> float:
    """Return the p of Wilcoxon's test over the clients' means; 1 where the seeds differ in sign."""
    means = gains.mean(0)
    agree = len(set(np.sign(gains.mean(1)).tolist())) == 1
    return float(stats.wilcoxon(means).pvalue) if agree and not np.allclose(means, 0) else 1.0


def false_pairs(draw: Callable[[int], Iterator[np.ndarray]], rule: Callable[[np.ndarray], float], seeds: int) -> float:
    """Return the share of pairs that are called different."""
    return float(np.mean([rule(gains) < LEVEL for gains in draw(seeds)]))


def false_tables(draw: Callable[[int], Iterator[np.ndarray]], rule: Callable[[np.ndarray], float], seeds: int) -> float:
    """Return the share of tables of eight methods with some false verdict; the new rule is corrected after Holm."""
    tables: list[list[float]] = [[]]
    for gains in draw(seeds):
        if len(tables[-1]) == METHODS:
            tables.append([])
        tables[-1].append(rule(gains))
    corrected = [p if rule is old_rule else holm(p) for p in tables if len(p) == METHODS]
    return float(np.mean([min(p) < LEVEL for p in corrected]))


def against_itself(reached: np.ndarray, pairs: int) -> Callable[[int], Iterator[np.ndarray]]:
    """Return a function that draws gains over the same method with other seeds. The eight of a table share a side."""

    def draw(seeds: int) -> Iterator[np.ndarray]:
        rng = np.random.default_rng(0)
        for i in range(pairs):
            if i % METHODS == 0:
                mine = rng.choice(len(reached), seeds, replace=False)
            others = np.setdiff1d(np.arange(len(reached)), mine)
            yield reached[rng.choice(others, seeds, replace=False)] - reached[mine]

    return draw


def simulated(of_seed: float, of_client: float, clients: int, tables: int) -> Callable[[int], Iterator[np.ndarray]]:
    """Return a function that draws gains with no mean: noise, a part that all clients of a seed share, and one of each
    client, all against the same Local in a table."""

    def draw(seeds: int) -> Iterator[np.ndarray]:
        rng = np.random.default_rng(1)

        def one() -> np.ndarray:
            shared = of_seed * rng.standard_normal((seeds, 1)) + of_client * rng.standard_normal(clients)
            return rng.standard_normal((seeds, clients)) + shared

        for i in range(tables):
            if i % METHODS == 0:
                local = one()
            yield one() - local

    return draw


def told(title: str, draw: Callable[[int], Iterator[np.ndarray]]) -> None:
    """Print a row for each number of seeds."""
    for seeds in SEEDS:
        shares = [f(draw, rule, seeds) for f in (false_pairs, false_tables) for rule in (old_rule, new_rule)]
        print(f"{title:58} {seeds:5}  " + "  ".join(f"{100 * share:6.1f} %" for share in shares), flush=True)


def false_leaders(seeds: int, of_seed: float, of_client: float, tables: int) -> tuple[float, float, float]:
    """Return in which shares of tables of equal methods some pair is called different, and some method the best; and
    the leader better than another one, were it compared with the others only. There are eight methods and Local, with
    20 clients."""
    rng, some, best, led = np.random.default_rng(2), 0, 0, 0
    for _ in range(tables):
        arms = rng.standard_normal((METHODS + 1, seeds, 20)) + of_seed * rng.standard_normal((METHODS + 1, seeds, 1))
        arms += of_client * rng.standard_normal((METHODS + 1, 1, 20))
        pairs = list(combinations(range(METHODS + 1), 2))
        found = [difference(arms[a], arms[b]).p for a, b in pairs]
        clear = [p < LEVEL for p in holm(found)]
        first = int(arms.mean((1, 2)).argmax())
        some += any(clear)
        best += all(sure for pair, sure in zip(pairs, clear, strict=True) if first in pair)
        led += min(holm([p for pair, p in zip(pairs, found, strict=True) if first in pair])) < LEVEL
    return some / tables, best / tables, led / tables


def rules(seeds: int, clients: int, draws: int = 20000) -> dict[str, float]:
    """Return how often each of three rules errs at most, over mixtures of what a seed and what a client adds to noise.

    `both` asks for a t test over seeds and one over clients; `quasi-F` is Clark's min F'; `squares` is ours.
    """
    rng, worst = np.random.default_rng(3), dict.fromkeys(("both", "quasi-F", "squares"), 0.0)
    freedom = np.array([seeds - 1, clients - 1])
    t = stats.t.isf(LEVEL / 2, freedom)
    for of_seed, of_client in product((1, 2, 4, 8, 16, 64), repeat=2):  # expected mean squares; noise alone is 1
        square = np.array([of_seed, of_client]) * rng.chisquare(freedom, (draws, 2)) / freedom
        mean = np.sqrt(of_seed + of_client - 1) * np.abs(rng.standard_normal(draws))
        quasi = square.sum(1) ** 2 / (square**2 / freedom).sum(1)
        wrong = {
            "both": (mean[:, None] > t * np.sqrt(square)).all(1),
            "quasi-F": mean > stats.t.isf(LEVEL / 2, quasi) * np.sqrt(square.sum(1)),
            "squares": mean > np.sqrt((t**2 * square).sum(1)),
        }
        worst = {name: max(worst[name], float(found.mean())) for name, found in wrong.items()}
    return worst


def main(runs: int, pairs: int) -> None:
    for seeds, clients in product((2, 3, 5), (10, 100)):
        found = ", ".join(f"{name} {100 * share:.1f} %" for name, share in rules(seeds, clients).items())
        print(f"{seeds} seeds, {clients} clients, at most: {found}", flush=True)
    for seeds, of_seed, of_client in ((s, *parts) for s in (3, 5) for parts in ((0, 0), (0.3, 0), (1, 0), (0.3, 1))):
        some, best, led = false_leaders(seeds, of_seed, of_client, pairs // 4)
        title = f"36 pairs of equal methods: {seeds} seeds, {of_seed:g} of a seed, {of_client:g} of a client"
        shares = f"some pair {100 * some:.1f} %, a best {100 * best:.1f} %, leader only {100 * led:.1f} %"
        print(f"{title}: {shares}", flush=True)
    print(f"{'':58} {'seeds':>5}  {'pairs: before, now':18}  {'tables of 8: before, now'}")
    for of_seed, of_client, clients in ((0, 0, 20), (0.2, 0, 20), (1, 0, 20), (0.2, 1, 20), (0.2, 0, 100), (0.2, 0, 6)):
        title = f"simulated: {clients} clients, {of_seed:g} of a seed, {of_client:g} of a client"
        told(title, simulated(of_seed, of_client, clients, pairs))
    for setting in SETTINGS:
        for method in (fk.methods.local(), fk.methods.fedavg(count=5)):
            told(f"{method.name}, {setting.title}", against_itself(scores(method, setting, runs), pairs))


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    main(*(numbers + [60, 2000][len(numbers) :]))
