"""kin's client: it trains several experts, and learns from samples that it held out how far to trust each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fedkin.contract import Needs
from fedkin.core.tree import Batch, Message, Model
from fedkin.errors import require
from fedkin.fields import Count, NonNegative, Positive
from fedkin.messages import Objective, Work
from fedkin.train.label_shares import log_shares
from fedkin.train.sgd import SGD
from fedkin.training import Descent

Expert = Literal["alone", "tuned", "kin", "common", "shares"]
EVERY: tuple[Expert, ...] = ("alone", "tuned", "kin", "common", "shares")
LEAST = 1e-6  # the probability that an expert gives any class, at least: one bold mistake is to be no verdict
TURNS = 50  # of expectation and maximisation


@dataclass(frozen=True)
class Experts(SGD):
    """p_i(y | x) = sum_e pi_ie p_ie(y | x), with the experts e of client i:

    alone   a private model that never sees the others,
    tuned   the common model after the client's last local pass,
    kin     a model that starts every round at a mixture of the models of the client's kin: after the client's last
            local pass, and that mixture as it was sent then,
    common  the common model as it is,
    shares  softmax(log p_common + log (n_iy + a / C)), once for each a in `added`; with kin also of the mixture.

    pi_i maximises  sum_j log sum_e pi_e q_je + strength sum_e m_e log pi_e,  found by expectation and maximisation.
    q_je is the probability that expert e, trained without sample j, gives the right label of j, and m are the average
    weights of the clients (`MeanOfExperts`). For this every expert that is trained has a shadow for each of the first
    `crossed` of `folds` folds of the client's samples, which learns from all samples but these. No test sample is ever
    used.

    The guard: d_j = log sum_e pi_ie q_je - log q_j,alone says how much better the mixture is than the client alone. The
    mean of d_j over the held-out samples, drawn towards the clients' average as the weights are, must be at least
    `guard` of its standard errors. Otherwise the client is judged by its own model only, also where `experts` leaves
    it out of the mixture. An expert that is left out is trained as ever, and its weight is 0; kin alone is neither sent
    nor trained then.
    """

    folds: Count = 3  # into how many folds a client's samples are divided
    crossed: Count = 3  # how many of the folds are held out from shadows, each from its own; all folds: cross-fitting
    strength: NonNegative = 10.0  # how many held-out samples the average weights of the clients are worth
    added: tuple[Positive, ...] = (1.0, 10.0, 50.0)  # samples, spread over all classes, that are added to label shares
    guard: NonNegative | None = 0.0  # standard errors by which the mixture must be better than alone; None: no guard
    experts: tuple[Expert, ...] = EVERY  # which of them are mixed, for ablations
    counts = True

    def check(self) -> None:
        super().check()
        require(self.folds > 1, "train.folds must be at least 2: shadows learn from what is not held out.")
        fit = self.crossed <= self.folds
        some = self.experts and len(set(self.experts)) == len(self.experts)
        require(some, "train.experts must name at least one expert, and each once.")
        require(fit, f"train.crossed is {self.crossed}, but there are only {self.folds} folds; set it to at most that.")

    @property
    def needs(self) -> Needs:
        return Needs(common_model=True, classes=True, models=(*self.shadows, *self.of_kin, "mix"))

    @property
    def held(self) -> int:
        return self.crossed

    @property
    def shadows(self) -> tuple[str, ...]:
        """The names of the shadows of the common model."""
        return tuple(f"without {fold + 1}" for fold in range(self.crossed))

    @property
    def of_kin(self) -> tuple[str, ...]:
        """The names of the mixture with a client's kin and of its shadows, if that is one of the experts."""
        return ("kin", *(f"kin {name}" for name in self.shadows)) if "kin" in self.experts else ()

    @property
    def networks(self) -> tuple[str, ...]:
        """The experts that are networks: the client's own, then those as they were sent (`received` of them)."""
        return ("alone", "tuned", "kin", "common", "mixture") if self.of_kin else ("alone", "tuned", "common")

    @property
    def own(self) -> tuple[str, ...]:
        """The networks that a client keeps to itself."""
        return tuple(name for name in self.networks if name != "common")

    @property
    def personal_size(self) -> int:
        return len(self.networks)

    @property
    def received(self) -> int:
        """How many networks are used as they were sent. These are also mixed with the client's label shares."""
        return 2 if self.of_kin else 1

    @property
    def number(self) -> int:
        """How many experts there are."""
        return len(self.networks) + self.received * len(self.added)

    def even(self, like: Tensor) -> Tensor:
        """Equal weights of the experts that are mixed, and 0 for the others: EM leaves a weight of 0 as it is."""
        mixed = ["kin" if name == "mixture" else name for name in self.networks]
        mixed += ["shares"] * self.received * len(self.added)
        chosen = [name in self.experts for name in mixed]
        return like.new_tensor(chosen) / sum(chosen)

    def slots(self, model: Model, own: bool) -> Message:
        like = next(iter(model.values()))
        mix = {"weights": self.even(like), "trained": like.new_zeros(())}
        private = [*self.own, *(f"alone {name}" for name in self.shadows)]
        return {"mix": mix} | dict.fromkeys(private, model)

    def descents(self) -> tuple[Descent, ...]:
        """The common model, alone and kin; then the shadows of all three without each of the folds."""
        found = []
        for place, common in enumerate(("model", *self.shadows)):
            alone = f"alone {common}" if place else "alone"
            for name in (common, alone, *self.of_kin[place : place + 1]):
                without = place - 1 if place else None
                found.append(Descent(name, momentum=self.momentum, decay=self.weight_decay, without=without))
        return tuple(found)

    def begin(self, sent: Message | None, mine: Message) -> Message:
        assert sent is not None
        private = {name: mine[name] for name in ("alone", *(f"alone {name}" for name in self.shadows))}
        shadows = {name: sent[name] for name in (*self.shadows, *self.of_kin)}
        none = torch.zeros_like(mine["mix"]["trained"])
        mix = {"weights": mine["mix"]["weights"], "lead": none, "clear": none}  # until `reflect` finds them
        return self.rested({"model": sent["model"], **private, **shadows, "mix": mix})

    def reflect(self, carry: Message, sent: Message | None, mine: Message, batch: Batch, f: Objective) -> Message:
        assert sent is not None
        right = torch.zeros_like(batch["weight"])
        for fold, name in enumerate(self.shadows):
            counts = batch["counts"].sum(0) - batch["counts"][fold]  # (classes,) of what the shadows learnt from
            kin, mixture = ([of[f"kin {name}"]] if self.of_kin else [] for of in (carry, sent))
            networks = [carry[f"alone {name}"], carry[name], *kin, sent[name], *mixture]
            logits = self.logits(networks, log_shares(counts, self.added), batch, f.logits)  # (E, h, classes)
            here = (batch["fold"] == fold).to(logits.dtype)
            given = logits.softmax(-1).gather(2, batch["y"].expand(self.number, -1)[..., None])[..., 0]
            right = right + here * given  # (E, h)
        right = right.T.clamp(min=LEAST)
        even = self.even(right)
        before = sent.get("mix", {"weights": even, "lead": even.new_zeros(())})  # what the clients found on average
        weights = expected(right, batch["weight"], proper(before["weights"], even), even, self.strength)
        lead, clear = self.compared(right, weights, batch["weight"], before["lead"])
        return carry | {"mix": {"weights": weights, "lead": lead, "clear": clear}}

    def compared(self, right: Tensor, weights: Tensor, count: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """How much better the mixture is than alone by held-out samples, on average, and whether that is clear."""
        better = (right @ weights).log() - right[:, 0].log()  # (h,) d_j
        total = count.sum() + self.strength
        lead = ((count * better).sum() + self.strength * before) / total.clamp(min=1e-12)
        error = ((count * (better - lead) ** 2).sum() / total.clamp(min=1e-12) ** 2).sqrt()
        clear = torch.ones_like(lead) if self.guard is None else (lead >= self.guard * error).to(lead.dtype)
        return lead, clear

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        assert sent is not None
        mix = carry["mix"]
        alone = torch.zeros_like(mix["weights"])
        alone[..., 0] = 1.0
        private = {name: carry[name] for name in mine if name in carry} | {"tuned": carry["model"]}
        trained = torch.ones_like(mine["mix"]["trained"])
        private |= {"mixture": sent["kin"]} if self.of_kin else {}
        private["mix"] = {"weights": torch.where(mix["clear"] > 0, mix["weights"], alone), "trained": trained}
        upload = {name: carry[name] for name in ("model", *self.shadows, *self.of_kin)}
        return private, upload | {"mix": {name: mix[name] for name in ("weights", "lead")}}

    def personal_model(self, sent: Message | None, mine: Message, batch: Batch, f: Objective) -> Model:
        """All experts and their weights, as one model. A client that never trained has the clients' average weights,
        and the common model in the place of all others."""
        assert sent is not None
        trained = mine["mix"]["trained"] > 0
        average = mine["mix"]["weights"]
        average = proper(sent["mix"]["weights"], self.even(average)) if "mix" in sent else average
        found = {"weights": torch.where(trained, mine["mix"]["weights"], average)}
        found["log shares"] = log_shares(batch["counts"].sum(0), self.added)
        for name, value in sent["model"].items():
            found[f"common/{name}"] = value
            for own in self.own:
                found[f"{own}/{name}"] = torch.where(trained, mine[own][name], value)
        return found

    def predicted(self, personal: Model, batch: Batch, logits: Callable[[Model, Batch], Tensor]) -> Tensor:
        """log p_i(y | x) for all classes y."""
        networks = [
            {name.removeprefix(f"{expert}/"): x for name, x in personal.items() if name.startswith(f"{expert}/")}
            for expert in self.networks
        ]
        each = self.logits(networks, personal["log shares"], batch, logits).log_softmax(-1)  # (E, B, classes)
        return (each + personal["weights"].log()[:, None, None]).logsumexp(0)

    def logits(self, networks: list[Model], shares: Tensor, batch: Batch, f: Callable[..., Tensor]) -> Tensor:
        """The logits of all experts, given those that are networks and the logarithms of the label shares."""
        found = [f(model, batch) for model in networks]
        as_sent = found[-self.received :]
        return torch.stack([*found, *(z + share for z in as_sent for share in shares)])  # (E, B, classes)


def proper(weights: Tensor, even: Tensor) -> Tensor:
    """The weights as shares, 0 where the even ones are 0: noise, or a client that lies, may have made them others."""
    positive = torch.where(even > 0, weights.nan_to_num(0.0, 0.0, 0.0), 0.0).clamp(min=0)
    total = positive.sum(-1, keepdim=True)
    return torch.where(total > 0, positive / total.clamp(min=1e-12), even)


def expected(right: Tensor, weight: Tensor, prior: Tensor, even: Tensor, strength: float) -> Tensor:
    """The weights of experts by expectation and maximisation, with a Dirichlet prior whose mean is `prior`.

    right: (h, E) the probability that each expert gives the right label. weight: (h,) how far each sample counts. It
    begins halfway to `even`, since an expert that the clients gave next to nothing could not come back in 50 turns.
    Without any sample, or anything that they are drawn to, the weights are those of the prior.
    """
    found, total = (prior + even) / 2, weight.sum() + strength
    for _ in range(TURNS):
        share = found * right  # (h, E)
        share = share / share.sum(1, keepdim=True).clamp(min=1e-30)
        found = ((weight[:, None] * share).sum(0) + strength * prior) / total.clamp(min=1e-12)
    return torch.where(total > 0, found, prior)
