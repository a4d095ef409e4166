"""SCAFFOLD's client (Karimireddy et al. 2020): each step corrects how the client's gradients differ from the mean of
all clients' gradients."""

from dataclasses import dataclass

from fedkin.contract import Needs
from fedkin.core import tree
from fedkin.core.tree import Message, Model
from fedkin.messages import Work
from fedkin.train.sgd import SGD
from fedkin.training import Descent


@dataclass(frozen=True)
class Scaffold(SGD):
    """y <- y - eta (g(y) - c_i + c);  c_i <- c_i - c + (W - y) / (eta K_eff)  (option II).

    The client is sent W and c, and sends y and the change of c_i: two models each way. c_i starts at zero.
    """

    changes = ("control",)

    @property
    def needs(self) -> Needs:
        return super().needs | Needs(models=("control",))

    def slots(self, model: Model, own: bool) -> Message:
        return super().slots(model, own) | {"control": tree.zeros(model)}

    def descents(self) -> tuple[Descent, ...]:
        return (Descent("model", plus=("all",), minus=("mine",), momentum=self.momentum, decay=self.weight_decay),)

    def begin(self, sent: Message | None, mine: Message) -> Message:
        assert sent is not None
        return self.rested({"model": sent["model"], "all": sent["control"], "mine": mine["control"]})

    def end(self, carry: Message, sent: Message | None, mine: Message, work: Work) -> tuple[Message, Message]:
        assert sent is not None
        scale = 1.0 / (work.rate * self.reach(work.steps))
        change = tree.mapped(lambda w, y, c: scale * (w - y) - c, sent["model"], carry["model"], sent["control"])
        return {"control": tree.added(mine["control"], change)}, {"model": carry["model"], "control": change}
