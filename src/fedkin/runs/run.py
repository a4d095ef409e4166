"""A run: what was asked of it, and what has come out of it so far. `fk.run` returns one, `fk.load` reads one."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from torch import nn

from fedkin.core.tree import Model
from fedkin.data import load
from fedkin.data.federation import Federation
from fedkin.errors import require, unknown
from fedkin.messages import Kin
from fedkin.privacy import read
from fedkin.runs import judged, statistics
from fedkin.runs.experiment import data_from_json
from fedkin.runs.measures import Measures
from fedkin.runs.profile import Profile
from fedkin.runs.spent import EPSILONS, spent

if TYPE_CHECKING:
    import pandas as pd


class Repetition(NamedTuple):
    """Which repetition of its method a run is: with which seed, on which division into train and test, and with which
    seed of the data."""

    seed: int
    split: int = 0
    data_seed: int = 0


class Run(Measures):
    """A run as it lies in its folder, finished or not. Every file is read when it is first asked for, and once.

    A run that was played without a folder has the same properties, from memory: they are handed over as `known`.
    `asked` is the number of rounds that the run is to have, `seed` its seed, and `metric` the one that decides; by
    default those of its experiment.
    A folder that is `temporary` lives as long as that object.
    """

    def __repr__(self) -> str:
        return f"Run({self.folder or 'in memory'}: {self.name})"

    # what was asked

    @property
    def method(self) -> str:
        return str(self.experiment["method"]["name"])

    @cached_property
    def seed(self) -> int:
        return int(self.experiment["seed"])

    @property
    def split(self) -> int:
        """The number of the division of the samples into train and test."""
        return int(self.experiment["data"].get("split") or 0)

    @property
    def data_seed(self) -> int:
        """The seed of the data and their partition; 0 where the data were handed over."""
        return int(self.experiment["data"].get("seed") or 0)

    @property
    def repetition(self) -> Repetition:
        return Repetition(self.seed, self.split, self.data_seed)

    @property
    def name(self) -> str:
        split = f" split {self.split}" if self.split else ""
        return f"{self.method} seed {self.seed}{split}" + (f" data seed {self.data_seed}" if self.data_seed else "")

    @cached_property
    def asked(self) -> int:
        """How many rounds the run is to have."""
        return int(self.experiment["rounds"])

    @cached_property
    def judged(self) -> str:
        """The kind of score by which the method is compared with training alone: `post`, or `global` where a client's
        own model never sees the others. Runs of older versions were all judged by `post`."""
        return str(self.experiment["resolved"].get("judged", "post"))

    @property
    def pools(self) -> bool:
        """Whether the method trains on everybody's samples together, so that no client can be advised to take part."""
        return bool(self.experiment["resolved"].get("pools", False))

    @cached_property
    def about_clients(self) -> dict[str, Any]:
        """What is written down of the clients, a list each: 'names' always, and where known 'train', 'test' (numbers of
        samples), 'labels' (training samples by class), 'irrelevant', and 'scale' (what 1 in y is worth)."""
        stored = self.files.clients()
        known = {key: value for key, value in stored.items() if isinstance(value, list) and len(value) == self.n}
        return {"names": [str(i) for i in range(self.n)]} | known

    @cached_property
    def preparation(self) -> dict[str, Any] | None:
        """How the rows of a table became samples, as `fedkin.data.preparation` says; None where data were no table."""
        return self.files.preparation()

    @cached_property
    def federation(self) -> Federation:
        """The clients and their samples. For a run that is read from its folder the data are loaded again."""
        return load(data_from_json(self.experiment["data"]))

    @property
    def lists_clients(self) -> bool:
        """Whether more than the clients' number is written down."""
        return len(self.about_clients) > 1

    # what has come out

    @property
    def begun(self) -> bool:
        return "experiment" in self.__dict__ or self.files.begun

    @cached_property
    def finished(self) -> bool:
        """Whether all rounds that are asked for were played."""
        return self.files.summarised and self.summary["rounds"] >= self.asked

    @property
    def reached(self) -> int:
        """The last round that was played; 0 before the first."""
        return int(self.lines[-1]["round"]) if self.lines else 0

    @cached_property
    def selected(self) -> list[np.ndarray]:
        """Who was selected, round by round."""
        return statistics.by_round(self.lines, self.files.selected())

    @cached_property
    def kept(self) -> list[np.ndarray] | None:
        """How far the update of each selected client counted, round by round; nan for one that did not reply.

        None where a version wrote the run that did not write this down.
        """
        lines, stored = self.lines, self.files.kept()
        found = None if stored is None else statistics.by_round(lines, stored)
        same = found is not None and [len(row) for row in found] == [line["selected"] for line in lines]
        return found if same else None

    @cached_property
    def participation(self) -> dict[str, np.ndarray]:
        """In how many rounds each client was 'selected', 'replied', and was 'left_out' (its update did not count)."""
        return statistics.participation(self.n, self.selected, self.kept)

    def kin(self) -> dict[int, Kin]:
        """Return who learned from whom, by round. It may be large, so it is read anew each time.

        Of many clients only the largest weights of each were written; then `Kin.nearest` says whose they are.
        """
        found = {}
        for round, tensors in self.files.pictures("kin").items():
            weights, nearest = (
                {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}
                for start in ("weights/", "nearest/")
            )
            found[round] = Kin(tensors["ids"], tensors["sources"], weights, nearest=nearest)
        return found

    @cached_property
    def all_marks(self) -> dict[int, dict[str, np.ndarray]]:
        """What parts thought of every client, by round and '<part>/<name>'."""
        stored = self.files.pictures("marks")
        return {r: {name: value.numpy() for name, value in tensors.items()} for r, tensors in stored.items()}

    def marks(self, part: str, name: str) -> dict[int, np.ndarray]:
        """Return what one part thought of every client by round: ("select", "score") of AdaFL's attention."""
        return {r: found[f"{part}/{name}"] for r, found in self.all_marks.items() if f"{part}/{name}" in found}

    @cached_property
    def profile(self) -> Profile | None:
        """Where the run's time went when it was last played; None where that was not asked for."""
        stored = self.files.profile() if self.folder is not None else None
        return None if stored is None else Profile.from_json(stored)

    # answers

    def clients(self) -> pd.DataFrame:
        """Return a table with a row for each client.

        It has the client's name, its numbers of samples, its last accuracy of every kind ('post'), the other metrics of
        `post` and `global` ('post auc'), in how many rounds it was selected, replied and was left out (its update did
        not count), with `dp` what it has spent of its privacy, and, where known, whether it is irrelevant.
        """
        import pandas as pd

        about = self.about_clients
        table = {"client": about["names"]} | {name: about[name] for name in ("train", "test") if name in about}
        truth = {"irrelevant": about["irrelevant"]} if "irrelevant" in about else {}
        others = {
            f"{kind} {metric}": values
            for metric, kinds in self.measured.items()
            for kind, values in kinds.items()
            if metric != "accuracy" and kind in ("post", "global")
        }
        dp = self.experiment.get("dp")
        cost = {} if dp is None else {name: spent(read(dp), self.participation["replied"])[name] for name in EPSILONS}
        return pd.DataFrame(table | self.accuracies | others | self.participation | cost | truth)

    def rounds(self) -> pd.DataFrame:
        """Return a table with a row for each round that was played. The column 'accuracy.post.macro' is what a line of
        rounds.jsonl has there, and missing where the round was not scored."""
        import pandas as pd

        return pd.json_normalize(self.lines)

    @cached_property
    def models(self) -> dict[str, Model]:
        """The final models: 'global' where the method has one, and 'personal' (stacked, a row for each client).

        Where clients hold no model of their own, 'personal' is the common model after a local pass of each client; it
        is not stored where that would be many numbers, and `model` makes it again.
        """
        found: dict[str, Model] = {}
        for path, value in self.files.models().items():
            kind, _, name = path.partition("/")
            found.setdefault(kind, {})[name] = value
        return found

    def model(self, client: int | str | None = None, module: nn.Module | None = None) -> nn.Module:
        """Return a client's own model, the one that `post` scores, or without a client the common model.

        Where the method has one model for all, a client's model is the common one, fine-tuned for the client as in the
        table. A run of a module that was handed in needs that module again.
        """
        return judged.model(self, client, module)

    def personal(self, client: int | str, module: nn.Module | None = None) -> Model:
        """Return the numbers of a client's own model, the one that `post` scores."""
        return judged.personal(self, self.number(client), module)

    def number(self, client: int | str) -> int:
        """Return the number of a client that is given by number or name."""
        names = self.about_clients["names"]
        if isinstance(client, str):
            if client not in names:
                raise unknown("client", client, names)
            return int(names.index(client))
        require(0 <= client < self.n, f"There is no client {client}; they are numbered from 0 to {self.n - 1}.")
        return client
