"""Networks by name, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import fedkin as fk
from fedkin.engines.layers import supported_layers
from fedkin.engines.network import Network
from fedkin.models import build
from fedkin.models.shape import flat_width


def answer() -> int:
    return 42


class Demanding(nn.Module):
    def __init__(self, shape: tuple[int, ...], classes: int, depth: int):
        super().__init__()


MNIST, CIFAR = (1, 28, 28), (3, 32, 32)
SIZES = [
    ("mlr", (60,), 610),
    ("mlr", MNIST, 7_850),
    ("dnn", (60,), 1_430),
    ("dnn:20", (60,), 1_430),
    ("dnn", MNIST, 79_510),
    ("dnn:100", MNIST, 79_510),
    ("dnn:100", CIFAR, 308_310),
    ("mlp", MNIST, 199_210),
    ("mlp:200,200", MNIST, 199_210),
    ("mlp:7", (60,), 507),
    ("lenet", CIFAR, 62_006),
    ("lenet", MNIST, 61_706),
    ("cnn", MNIST, 20_522),
    ("cnn:fedmix", CIFAR, 3_491_530),
]


@pytest.mark.parametrize(("spec", "shape", "parameters"), SIZES)
def test_parameters(spec: str, shape: tuple[int, ...], parameters: int) -> None:
    module = build(spec, shape, 10, 0)
    assert sum(value.numel() for value in module.parameters()) == parameters
    assert module(torch.zeros(2, *shape)).shape == (2, 10)


@pytest.mark.parametrize(("spec", "shape"), [(spec, shape) for spec, shape, _ in SIZES if spec != "cnn:fedmix"])
def test_every_named_network_runs_stacked(spec: str, shape: tuple[int, ...]) -> None:
    network = Network(build(spec, shape, 10, 0), torch.zeros(shape), 2)
    assert network.layers is not None


def test_fedmix_has_dropout_the_engines_key() -> None:
    module = build("cnn:fedmix", (3, 8, 8), 10, 0)
    assert sum(isinstance(layer, nn.Dropout) for layer in module.modules()) == 3
    network = Network(module, torch.zeros(3, 8, 8), 2)
    assert network.layers is not None
    assert list(network.dropouts.values()) == [0.1] * 3
    assert supported_layers(module, set(network.model)) is None  # an unkeyed dropout is not among the layers


def test_the_width_of_layers_is_found_without_drawing(untouched: None) -> None:
    assert flat_width([nn.AvgPool2d(2), nn.Dropout(0.5), nn.Flatten()], (3, 8, 8)) == 3 * 4 * 4


@pytest.mark.parametrize("spec", ["mlr", "dnn", "mlp:8,8", "lenet", "cnn", "vgg11:4", "resnet50:4"])
def test_a_seed_is_an_initialisation(spec: str, untouched: None) -> None:
    def weights(seed: int) -> list[Tensor]:
        every = build(spec, MNIST, 10, seed).named_modules()
        return [value for _, layer in every if not isinstance(layer, nn.GroupNorm) for value in layer.parameters(False)]

    one, again, other = weights(3), weights(3), weights(4)
    assert all(torch.equal(a, b) for a, b in zip(one, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_initialisation_is_torchs_own() -> None:
    weight = build("mlr", (400,), 10, 0)[1].weight.detach()  # type: ignore[index]
    assert weight.abs().max() <= 1 / 20
    assert float(weight.std()) == pytest.approx(1 / 20 / 3**0.5, rel=0.05)


@pytest.mark.parametrize(
    ("spec", "shape", "sentence"),
    [
        ("mrl", (60,), "There is no model called 'mrl'; did you mean .*mlr"),
        ("transformer", (60,), "There is no model called 'transformer'"),
        ("dnn:many", (60,), "sizes of a model are whole numbers"),
        ("dnn:1.5", (60,), "sizes of a model are whole numbers"),
        ("dnn:0", (60,), "sizes of a model are positive"),
        ("mlp:20,-1", (60,), "sizes of a model are positive"),
        ("dnn:20,20", (60,), "takes fewer numbers"),
        ("mlr:5", (60,), "takes fewer numbers"),
        ("cnn:large", MNIST, "comes as 'cnn' or 'cnn:fedmix'"),
        ("cnn", (60,), "takes images of at least 16x16"),
        ("cnn", (1, 8, 8), "takes images of at least 16x16"),
        ("cnn:fedmix", (3, 4, 4), "takes images of at least 8x8"),
        ("lenet", (60,), "takes images of at least 16x16"),
        ("vgg11", (60,), "'vgg11' takes images of at least 8x8"),
        ("vgg11:8", (1, 7, 28), "'vgg11' takes images of at least 8x8"),
        ("vgg11:8,8", MNIST, "takes fewer numbers"),
        ("resnet50", (60,), "'resnet50' takes images of at least 8x8"),
        ("resnet50:0", MNIST, "sizes of a model are positive"),
        ("resnet50:wide", MNIST, "sizes of a model are whole numbers"),
        ("nowhere.at_all:Net", (60,), "cannot be imported"),
        ("torch.nn:Nothing", (60,), "cannot be imported"),
        ("math:pi", (60,), "'math:pi'"),
        (f"{__name__}:answer", (60,), "gives a int, not a torch.nn.Module"),
        (f"{__name__}:Demanding", (60,), "Demanding'"),
    ],
)
def test_a_bad_spec_is_one_sentence(spec: str, shape: tuple[int, ...], sentence: str, untouched: None) -> None:
    with pytest.raises(fk.BadInput, match=sentence) as caught:
        build(spec, shape, 10, 0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("spec", ["mlr", "dnn", "mlp:8", "lenet", "cnn", "vgg11", "resnet50"])
def test_text_is_not_numbers(spec: str) -> None:
    with pytest.raises(fk.BadInput, match="takes numbers, but these data are text; use lstm, or a module of your own"):
        build(spec, (80,), 60, 0, vocabulary=60)


@pytest.mark.parametrize("shape", [(60,), MNIST])
def test_numbers_are_not_text(shape: tuple[int, ...]) -> None:
    with pytest.raises(fk.BadInput, match="'lstm' takes text, but these data are numbers; use mlr, dnn or cnn"):
        build("lstm", shape, 10, 0)


class Own(nn.Module):
    def __init__(self, shape: tuple[int, ...], classes: int):
        super().__init__()
        self.layer = nn.Linear(shape[0], classes)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.layer(x)
        return found


class Fixed(nn.Module):
    def __init__(self, hidden: int = 4):
        super().__init__()
        self.first, self.last = nn.Linear(5, hidden), nn.Linear(hidden, 3)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.last(torch.relu(self.first(x)))
        return found


def test_a_module_by_import_path(untouched: None) -> None:
    here = __name__
    own = build(f"{here}:Own", (5,), 3, 0)
    assert type(own).__name__ == "Own"
    assert own.layer.weight.shape == (3, 5)  # type: ignore[union-attr]
    assert torch.equal(own.layer.weight, build(f"{here}:Own", (5,), 3, 0).layer.weight)  # type: ignore[union-attr, arg-type]
    assert type(build(f"{here}:Fixed", (5,), 3, 0)).__name__ == "Fixed"


# what engines refuse


class Functional(Fixed):
    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(super().forward(x), 0.5, self.training)


class Noisy(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.randn_like(x)


class Silent(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:, :3]


def frozen() -> nn.Module:
    return Fixed().requires_grad_(False)


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        (nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)), r"'1' \(BatchNorm1d\) takes statistics"),
        (
            nn.Sequential(nn.Linear(5, 4), nn.Sequential(nn.InstanceNorm1d(4, track_running_stats=True))),
            "InstanceNorm1d",
        ),
        (nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3, track_running_stats=False)), "use nn.GroupNorm"),
        (Functional(), "draws random numbers itself; use nn.Dropout layers"),
        (nn.Sequential(nn.Linear(5, 3), Noisy()), "draws random numbers itself"),
        (nn.Sequential(nn.Linear(5, 3), nn.AlphaDropout(0.5)), "AlphaDropout; only nn.Dropout has keyed masks"),
        (Silent(), "no trainable parameters"),
        (frozen(), "no trainable parameters"),
        (nn.Sequential(nn.Linear(6, 3)), r"does not take samples of shape \(5,\)"),
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(2, 3)), r"does not take samples of shape \(5,\)"),
    ],
    ids=[
        "batch norm",
        "instance norm",
        "batch",
        "F.dropout",
        "noise",
        "alpha dropout",
        "silent",
        "frozen",
        "shape",
        "image",
    ],
)
def test_a_module_that_cannot_be_federated_is_refused(module: nn.Module, sentence: str, untouched: None) -> None:
    with pytest.raises(fk.BadInput, match=sentence) as caught:
        Network(module, torch.zeros(5), 4)
    assert "\n" not in str(caught.value)


def test_normalisation_without_running_statistics_is_taken() -> None:
    module = nn.Sequential(nn.Linear(5, 4), nn.GroupNorm(2, 4), nn.InstanceNorm1d(4), nn.Linear(4, 3))
    Network(module, torch.zeros(5), 4)


def test_a_refusal_reaches_the_user(federate: Any) -> None:
    experiment = fk.Experiment(fk.methods.fedavg(), federate((3, 4)), nn.Sequential(nn.Linear(9, 3)), rounds=1)
    with pytest.raises(fk.BadInput, match="does not take samples"):
        fk.run(experiment)


def test_a_module_handed_in_stays_as_it_was(federate: Any) -> None:
    """Weights, type of numbers, mode and dropout of the user's own module."""
    module = nn.Sequential(nn.Linear(5, 4), nn.Dropout(0.5), nn.Linear(4, 3)).eval()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    for dtype in ("float32", "float64"):
        method = fk.methods.fedavg(count=2, steps=2)
        result = fk.run(fk.Experiment(method, federate((3, 4)), module, rounds=1, dtype=dtype))
        assert {str(value.dtype) for value in result.models["global"].values()} == {f"torch.{dtype}"}
        assert not torch.equal(result.models["global"]["0.weight"].float(), before["0.weight"])
    assert type(module[1]) is nn.Dropout
    assert not module.training
    assert all(value.requires_grad for value in module.parameters())
    for name, value in module.state_dict().items():
        assert value.dtype == before[name].dtype
        assert torch.equal(value, before[name])


def test_only_trainable_parameters_travel() -> None:
    module = Fixed()
    module.first.weight.requires_grad_(False)
    network = Network(module, torch.zeros(5), 4)
    assert list(network.model) == ["first.bias", "last.weight", "last.bias"]
    assert network.parameters == 4 + 12 + 3
    batch = {"x": torch.ones(2, 5), "y": torch.tensor([0, 2])}
    assert list(network.grad(network.model, batch)) == list(network.model)


class Twice(nn.Module):
    """One dropout layer, called twice."""

    def __init__(self, width: int):
        super().__init__()
        self.first, self.last, self.drop = nn.Linear(5, width), nn.Linear(width, 3), nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.drop(self.last(self.drop(self.first(x))))
        return found


def repeated() -> nn.Module:
    drop = nn.Dropout(0.5)
    return nn.Sequential(nn.Linear(5, 4), drop, nn.Linear(4, 4), drop, nn.Linear(4, 3))


@pytest.mark.parametrize("module", [repeated(), Twice(3), Twice(4)], ids=["listed twice", "one shape", "two shapes"])
def test_one_dropout_in_two_places_has_two_masks_or_is_refused(module: nn.Module) -> None:
    try:
        found = str(len(Network(module, torch.zeros(5), 4).masks))
    except fk.BadInput as refusal:
        found = str(refusal)
    assert found == "2" or "more than once" in found
