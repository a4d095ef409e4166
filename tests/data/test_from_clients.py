"""Federations from arrays and tensors that are handed over in Python."""

import numpy as np
import pytest
import torch

import fedkin as fk
from fedkin.data import from_clients
from fedkin.errors import BadInput


class TestFromClients:
    X = torch.arange(40, dtype=torch.float32).reshape(20, 2)
    Y = np.arange(20) % 2

    def test_pairs_are_split(self) -> None:
        federation = from_clients({"a": (self.X, self.Y), "b": (self.X[:8].numpy(), self.Y[:8])}, test=0.25, seed=1)
        assert federation.clients == ("a", "b")
        assert federation.train.sizes.tolist() == [15, 6]
        assert federation.test.sizes.tolist() == [5, 2]
        assert federation.validation is None
        assert federation.x.shape == (28, 2)
        assert federation.test[1].min() >= 20
        other = from_clients({"a": (self.X, self.Y)}, seed=2)
        assert not torch.equal(federation.train[0], other.train[0])

    def test_validation_is_held_out(self) -> None:
        federation = from_clients({"a": (self.X, self.Y)}, test=0.2, validation=0.1)
        assert federation.validation is not None
        assert (len(federation.train[0]), len(federation.validation[0]), len(federation.test[0])) == (14, 2, 4)

    def test_given_parts_stay(self) -> None:
        parts = {"train": (self.X[:12], self.Y[:12]), "test": (self.X[12:], self.Y[12:])}
        federation = from_clients({"a": parts, "b": (self.X, self.Y)})
        assert federation.train[0].tolist() == list(range(12))
        assert federation.test[0].tolist() == list(range(12, 20))

    def test_clients_without_samples_are_left_out(self) -> None:
        federation = from_clients(
            {"void": (self.X[:0], self.Y[:0]), "a": (self.X, self.Y), "t": {"test": (self.X, self.Y)}}
        )
        assert federation.clients == ("a",)
        assert federation.left_out == ("void", "t")

    def test_labels_are_numbered_over_all_clients(self) -> None:
        federation = from_clients({"a": (self.X[:2], ["b", "c"]), "z": (self.X[:2], ["a", "c"])})
        assert federation.source["labels"] == ["a", "b", "c"]
        assert federation.y.tolist() == [1, 2, 0, 2]

    def test_named_classes(self) -> None:
        federation = from_clients({"a": (self.X[:4], ["ill", "well", "ill", "well"])})
        assert federation.labels == ("ill", "well")
        assert from_clients({"a": (self.X, self.Y)}).labels == ()
        assert from_clients({"a": (self.X, self.Y + 1)}).labels == ("1", "2")

    def test_features_of_very_different_scale_are_told(self) -> None:
        x = np.random.default_rng(0).normal(size=(40, 3)) * [1, 2, 50]
        y = np.arange(40) % 2
        assert from_clients({"a": (x, y)}).notes == ()
        told = from_clients({"a": (x * [1, 1, 10], y)}).notes
        assert len(told) == 1
        assert "differ much in scale (standard deviations from" in told[0]
        assert "standardise them, each client by its own training rows" in told[0]
        heard: list[str] = []
        fk.run(
            fk.Experiment(fk.methods.fedavg(), from_clients({"a": (x * [1, 1, 10], y)}), rounds=1), warn=heard.append
        )
        assert heard == list(told)
        constant = np.concatenate([x[:, :2], np.full((40, 1), 1e9)], axis=1)  # says nothing, so it does not matter
        assert from_clients({"a": (constant, y)}).notes == ()
        assert from_clients({"a": (x.reshape(40, 3, 1, 1) * 1000, y)}).notes == ()  # pixels

    def test_only_training_rows_say_how_features_differ(self) -> None:
        x = np.random.default_rng(0).normal(size=(40, 2))
        wild = x * [1, 1000]
        parts = {"train": (x, np.arange(40) % 2), "test": (wild, np.arange(40) % 2)}
        assert from_clients({"a": parts}).notes == ()

    def test_large_values_to_predict_are_told(self) -> None:
        told = from_clients({"a": (self.X, np.linspace(0, 1e6, 20) + 0.5)}).notes
        assert "values to predict have a standard deviation of" in told[0]

    def test_tokens_stay_whole_numbers(self) -> None:
        tokens = torch.arange(12).reshape(6, 2)
        federation = from_clients({"a": (tokens, self.Y[:6])}, vocabulary=12)
        assert not federation.x.is_floating_point()
        assert federation.vocabulary == 12
        with pytest.raises(BadInput, match="token outside of 0 to 10"):
            from_clients({"a": (tokens, self.Y[:6])}, vocabulary=11)
        with pytest.raises(BadInput, match="not whole numbers"):
            from_clients({"a": (self.X, self.Y)}, vocabulary=100)

    @pytest.mark.parametrize(
        ("clients", "sentence"),
        [
            ({}, "at least one client"),
            ({"a": (X[:0], Y[:0])}, "No client has any samples"),
            ({"a": (X, Y[:3])}, "Client a has 20 samples but 3 labels"),
            ({"a": (X, Y), "b": (X[:, :1], Y)}, r"Client b has samples of shape \(1,\), others of \(2,\)"),
            ({"a": {"train": (X, Y), "tset": (X, Y)}}, "a part called tset"),
            ({"a": (X * torch.nan, Y)}, "Client a has a feature that is not a finite number"),
            ({"a": (np.array([["x"]]), [0])}, "features that are not numbers"),
            ({"a": (X, Y, Y)}, "needs a pair"),
            ({"a": X}, "needs a pair"),
            ({"a": (X, X)}, "y with a number a sample"),
        ],
    )
    def test_mistakes(self, clients: dict[str, object], sentence: str) -> None:
        with pytest.raises(BadInput, match=sentence):
            from_clients(clients)  # type: ignore[arg-type]
        with pytest.raises(BadInput, match="'test' must be a fraction"):
            from_clients({"a": (self.X, self.Y)}, test=2)
