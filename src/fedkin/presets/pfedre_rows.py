"""What PFedRe's figures have in common: their datasets, models and rates, and the methods that they compare."""

from dataclasses import dataclass, replace

from fedkin.data import Data
from fedkin.keep import Alignment, UpdateDistance
from fedkin.methods.fedavg import fedavg
from fedkin.methods.fedprox import fedprox
from fedkin.methods.pfedre import oracle, pfedre
from fedkin.methods.robust import krum, median, multikrum, trimmed_mean
from fedkin.methods.valued import active, sfedavg
from fedkin.parts import Method
from fedkin.presets.readings import Score
from fedkin.runs.experiment import Experiment
from fedkin.select import Dismiss, Uniform
from fedkin.train import SGD

VARY = ("seed", "data")
BAD = 0.1  # the share of irrelevant clients in figures 4, 5 and 6
OPEN = (
    "No number is printed in the paper, and no rate, number of local epochs, batch, number of dummies or of steps of "
    "the inversion: these are ours (one dummy a class, Adam at 0.1). All clients take part in each round. The common "
    "model is judged. "
)
HALF = (
    "AFL and S-FedAvg choose half of the clients in each round (S-FedAvg as in its own paper, 5 of 10), because a "
    "choice of all is none; 'FedAvg, half' draws half at random. S-FedAvg's server has clean samples of its own, which "
    "no other server has; they are taken out of the data for all rows. "
)
TOLD = "Krum, Multi-Krum and the trimmed mean are told the true share of irrelevant clients, the oracle who they are. "
SMALL = (
    "Made small: MNIST and Fashion-MNIST in Dirichlet(0.5) shares of at most 200 images to 30 clients, multinomial "
    "logistic regression for MNIST and one hidden layer of 100 units for Fashion-MNIST, 30 rounds. "
)


@dataclass(frozen=True)
class Setting:
    """A dataset of the figures, with the model and the local training on it."""

    data: Data
    model: str
    rounds: int
    eta: float
    epochs: int = 1
    batch: int = 32
    iterations: int = 50
    kind: str = "test"  # the common model is judged on the common test set or on the clients' test samples
    strange: str = "permuted"  # where samples out of distribution are from

    @property
    def accuracy(self) -> Score:
        return Score(self.kind, "micro", "last10")

    def experiment(self, method: Method, irrelevant: str, rounds: int | None = None) -> Experiment:
        """A run of a method with these irrelevant clients; "ood" alone are those of this dataset."""
        scenario = f"{irrelevant},{self.strange}" if irrelevant.startswith("ood") else irrelevant
        data = replace(self.data, irrelevant=scenario)
        length = rounds or self.rounds
        return Experiment(method, data, self.model, length, evaluate_every=1, score=(self.kind,), threads=1)

    def pfedre(self) -> Method:
        return pfedre(eta=self.eta, epochs=self.epochs, batch=self.batch, iterations=self.iterations)

    def like(self, method: Method) -> Method:
        """A method with the local training of this setting."""
        assert isinstance(method.train, SGD)
        train = replace(method.train, eta=self.eta, steps=None, epochs=self.epochs, batch=self.batch)
        return replace(method, train=train)

    def everybody(self, method: Method) -> Method:
        """The same, with all clients in each round."""
        return replace(self.like(method), select=Uniform(fraction=1.0))


def images(name: str, model: str, strange: str, partition: str = "dirichlet:0.5") -> Setting:
    """A small setting of 30 clients."""
    data = Data(name, partition=partition, clients=30, samples=200, holdout="official", server=500)
    return Setting(data, model, rounds=30, eta=0.05, strange=strange)


SMALL_SETTINGS = {
    "MNIST": images("mnist", "mlr", "fashion_mnist"),
    "FMNIST": images("fashion_mnist", "dnn:100", "mnist"),
    "Shakespeare": Setting(
        Data("shakespeare", clients=10, samples=128, test=0.05, server=200),
        "lstm:32,1,8",
        rounds=15,
        eta=1.0,
        epochs=2,
        batch=8,
        iterations=10,
        kind="global",
    ),
}
SKEWED = {"MNIST skewed": images("mnist", "mlr", "fashion_mnist", "dirichlet:0.1")}  # clients with few classes each
FULL_SETTINGS = {
    "EMNIST": Setting(
        Data("emnist", clients=500, holdout="official", server=1000),
        "resnet50",
        rounds=1000,
        eta=0.01,
        strange="fashion_mnist",
    ),
    "CIFAR100": Setting(
        Data("cifar100", clients=100, holdout="official", server=1000),
        "vgg11",
        rounds=1000,
        eta=0.01,
        strange="cifar10",
    ),
    "Shakespeare": Setting(
        Data("shakespeare", clients=132, server=1000), "lstm", rounds=1000, eta=1.0, batch=10, kind="global"
    ),
    "Sentiment140": Setting(
        Data("sentiment140", clients=1503, server=1000), "lstm", rounds=1000, eta=0.1, batch=10, kind="global"
    ),
}


def settings(scale: str, text: bool = True) -> dict[str, Setting]:
    """The datasets of a scale, those of text or not."""
    found = SMALL_SETTINGS if scale == "small" else FULL_SETTINGS
    return {name: one for name, one in found.items() if text or one.kind == "test"}


def compared(one: Setting) -> dict[str, Method]:
    """Every method of figures 4 and 5. Rows of the paper come first."""
    found = {
        "PFedRe": one.pfedre(),
        "FedAvg": one.everybody(fedavg()),
        "AFL": one.like(active(0.5)),
        "S-FedAvg": one.like(sfedavg(0.5)),
        "FedProx": one.everybody(fedprox(lam=0.1)),
        "FedAvg, half": replace(one.like(fedavg()), select=Uniform(fraction=0.5)),
        "Krum": one.everybody(krum(BAD)),
        "Multi-Krum": one.everybody(multikrum(BAD)),
        "Trimmed mean": one.everybody(trimmed_mean(BAD)),
        "Median": one.everybody(median()),
        "Oracle": one.everybody(oracle()),
    }
    return {row: replace(method, name=row) for row, method in found.items()}


def filters(one: Setting) -> dict[str, Method]:
    """PFedRe with its own score, and with two that need no inversion."""
    method = one.pfedre()
    found = {
        "PFedRe": method,
        "L1 of updates": replace(method, keep=UpdateDistance("l1", min_gap=None)),  # the paper's rule
        "Alignment": replace(method, keep=Alignment(min_gap=None)),
    }
    return {row: replace(made, name=row) for row, made in found.items()}


def removals(one: Setting, after: int) -> dict[str, Method]:
    """PFedRe that dismisses nobody, or those found irrelevant, or those found relevant, after so many rounds."""
    method = one.pfedre()
    found = {
        "keep all": method,
        "drop irrelevant": replace(method, select=Dismiss(after, "irrelevant", method.select)),
        "drop relevant": replace(method, select=Dismiss(after, "relevant", method.select)),
    }
    return {row: replace(made, name=f"PFedRe, {row}") for row, made in found.items()}


def motivation(scale: str) -> tuple[Setting, dict[str, Method]]:
    """Figure 1: odd digits for six clients, even digits with odd labels for four; and who is compared."""
    small = scale == "small"
    data = Data("mnist", samples=500 if small else None)
    one = Setting(data, "mlr" if small else "dnn:100", rounds=100 if small else 200, eta=0.05)
    common = {"FedAvg": fedavg(), "FedProx": fedprox(lam=0.1)}
    found = {"PFedRe": one.pfedre()}
    for row, method in common.items():
        found |= {row: one.everybody(method), f"{row} without": one.everybody(oracle(method))}
    return one, {row: replace(method, name=row) for row, method in found.items()}
