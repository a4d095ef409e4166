"""The named datasets: what they are, where they are found, and how they are divided by default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fedkin.data.class_names import CLASS_NAMES


@dataclass(frozen=True)
class Entry:
    """One named dataset. All `sources` are tried in order as folders, then in order as ids on the Hugging Face hub."""

    name: str
    description: str
    kind: Literal["synthetic", "digits", "images", "characters", "tweets", "table"]
    sources: tuple[str, ...] = ()  # "namespace/name"; "local/..." exists as a folder only
    classes: int = 10
    columns: tuple[str, ...] = ()  # of the features, the label, and the client if the dataset has clients
    pixels: Literal["standardised", "scaled"] = "standardised"
    partition: str = "dirichlet:0.5"
    clients: int | None = 100  # default number of clients; None: all natural clients
    test: float | None = None  # held out of each client's samples, where it is published how to prepare and divide them
    minimum: int = 1  # natural clients with fewer samples are dropped, since they have too few to train and test on

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes; empty if they have none."""
        return CLASS_NAMES.get(self.name, ())

    @property
    def hub_ids(self) -> tuple[str, ...]:
        """The sources that exist on the hub."""
        return tuple(source for source in self.sources if not source.startswith("local/"))


_ENTRIES = (
    Entry(
        "synthetic",
        "60 features, 10 classes, clients of very different sizes: synthetic(alpha, beta) of FedProx, as in pFedMe",
        "synthetic",
        partition="natural",
    ),
    Entry(
        "heart",
        "920 heart patients of four hospitals, 13 columns, 2 classes; a client is a hospital; comes with fedkin",
        "table",
        classes=2,
        partition="natural",
        clients=None,
    ),
    Entry(
        "heart_flamby",
        "heart as FLamby prepares and divides it: the 740 patients without missing values, 13 features",
        "table",
        classes=2,
        partition="natural",
        clients=None,
        test=0.34,
    ),
    Entry("digits", "1,797 handwritten digits 1x8x8, comes with scikit-learn", "digits", clients=20),
    Entry(
        "mnist",
        "70,000 handwritten digits 1x28x28, 10 classes",
        "images",
        ("ylecun/mnist",),
        columns=("image", "label"),
    ),
    Entry(
        "fashion_mnist",
        "70,000 pictures of clothes 1x28x28, 10 classes",
        "images",
        ("zalando-datasets/fashion_mnist",),
        columns=("image", "label"),
    ),
    Entry(
        "emnist",
        "131,600 handwritten characters 1x28x28, 47 balanced classes (the folder emnist47_bymerge has another split)",
        "images",
        ("claudiogsc/emnist_balanced", "local/emnist47_bymerge"),
        classes=47,
        columns=("image", "label"),
    ),
    Entry(
        "cifar10",
        "60,000 photographs 3x32x32, 10 classes",
        "images",
        ("uoft-cs/cifar10",),
        columns=("img", "label"),
        pixels="scaled",
    ),
    Entry(
        "cifar100",
        "60,000 photographs 3x32x32, 100 classes",
        "images",
        ("uoft-cs/cifar100",),
        classes=100,
        columns=("img", "fine_label"),
        pixels="scaled",
    ),
    Entry(
        "shakespeare",
        "the next character after 80 characters of a role in a play; a client is a role",
        "characters",
        ("flwrlabs/shakespeare", "local/shakespeare_pd"),
        classes=81,
        columns=("x", "y", "character_id"),
        partition="natural",
        clients=None,
        minimum=64,
    ),
    Entry(
        "sentiment140",
        "the mood of a tweet, 2 classes; a client is a user",
        "tweets",
        ("stanfordnlp/sentiment140",),
        classes=2,
        columns=("text", "sentiment", "user"),
        partition="natural",
        clients=None,
        minimum=30,
    ),
)

CATALOGUE = {entry.name: entry for entry in _ENTRIES}
