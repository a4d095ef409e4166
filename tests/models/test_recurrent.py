"""The LSTM is torch's own, whatever is padding, and knows tokens that are already embedded."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, vmap

import fedkin as fk
from fedkin.data.text import VOCABULARY, WORDS
from fedkin.models import build
from fedkin.models.recurrent import LSTM

TOKENS = 9


def small(layers: int = 2, hidden: int = 5, embedding: int = 3) -> Any:
    return build(f"lstm:{hidden},{layers},{embedding}", (7,), 4, 0, TOKENS).double()


def text(*shape: int, seed: int = 0) -> Tensor:
    """Without padding."""
    return torch.randint(1, TOKENS, shape, generator=torch.Generator().manual_seed(seed))


class Torch(nn.Module):
    """torch.nn.LSTM with the weights of ours; it keeps its gates in another order, and has two biases."""

    def __init__(self, ours: Any):
        super().__init__()
        hidden, layers = ours.head.in_features, len(ours.layers)
        self.embedding, self.head = ours.embedding, ours.head
        self.lstm = nn.LSTM(ours.embedding.embedding_dim, hidden, layers, batch_first=True).double()
        with torch.no_grad():
            for k, layer in enumerate(ours.layers):
                for name, value in (
                    ("weight_ih", layer.weight),
                    ("weight_hh", layer.recurrent),
                    ("bias_ih", layer.bias),
                ):
                    getattr(self.lstm, f"{name}_l{k}").copy_(reordered(value, hidden))
                getattr(self.lstm, f"bias_hh_l{k}").zero_()

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.head(self.lstm(self.embedding(x))[0][:, -1])
        return found


def reordered(value: Tensor, hidden: int) -> Tensor:
    """(input, forget, output, candidate) -> (input, forget, candidate, output)."""
    i, f, o, g = value.split(hidden)
    return torch.cat([i, f, g, o])


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_it_is_torchs_lstm(layers: int) -> None:
    ours, x, y = small(layers), text(6, 7), torch.arange(6) % 4
    theirs = Torch(ours)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-10, atol=1e-10)
    mine = dict(zip(dict(ours.named_parameters()), slopes(ours, x, y, list(ours.parameters())), strict=True))
    wanted = dict(zip(dict(theirs.named_parameters()), slopes(theirs, x, y, list(theirs.parameters())), strict=True))
    for k in range(layers):
        for name, other in (("weight", "weight_ih"), ("recurrent", "weight_hh"), ("bias", "bias_ih")):
            found = reordered(mine[f"layers.{k}.{name}"], 5)
            torch.testing.assert_close(found, wanted[f"lstm.{other}_l{k}"], rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(mine["embedding.weight"], wanted["embedding.weight"], rtol=1e-10, atol=1e-10)


def slopes(module: nn.Module, x: Tensor, y: Tensor, values: list[nn.Parameter]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(F.cross_entropy(module(x), y), values)


# padding


def test_padding_on_the_left_changes_nothing() -> None:
    module, x, y = small(), text(4, 7), torch.arange(4)
    padded = torch.cat([torch.zeros(4, 3, dtype=torch.int64), x], 1)
    torch.testing.assert_close(module(padded), module(x))
    values = list(module.parameters())
    torch.testing.assert_close(slopes(module, padded, y, values), slopes(module, x, y, values))


def test_samples_of_one_batch_begin_where_they_begin() -> None:
    module, x = small(), text(3, 7)
    ragged = x.clone()
    ragged[1, :2], ragged[2, :6] = 0, 0
    each = [module(row[row != 0][None]) for row in ragged]
    torch.testing.assert_close(module(ragged), torch.cat(each))


def test_an_unknown_token_in_the_middle_is_read() -> None:
    """Token 0 is also every character that is not listed."""
    module, x = small(), text(1, 7)
    other = x.clone()
    other[0, 3] = 0
    assert not torch.allclose(module(other), module(other[other != 0][None]))
    embedded = module.embedding(other)
    torch.testing.assert_close(module(other), module(embedded))


def test_nothing_but_padding_is_the_last_layers_bias() -> None:
    module = small()
    assert torch.equal(module(torch.zeros(2, 7, dtype=torch.int64)), module.head.bias.expand(2, -1))


# tokens and their embeddings


def test_embedded_tokens_skip_the_embedding() -> None:
    module, x = small(), text(4, 7)
    embedded = module.embedding(x).detach()
    assert tuple(embedded.shape[1:]) == module.embedded((7,)) == (7, 3)
    torch.testing.assert_close(module(embedded), module(x))
    assert not torch.allclose(module(embedded + 1), module(x))


@pytest.mark.parametrize("kind", [torch.uint8, torch.int16, torch.int32])
def test_tokens_of_any_whole_kind(kind: torch.dtype) -> None:
    module, x = small(), text(4, 7)
    assert torch.equal(module(x.to(kind)), module(x))


def test_embeddings_of_many_clients_learn_from_their_own_tokens() -> None:
    """Tokens repeat within a sample and between clients; padding, and a token that is not read, has no gradient."""
    module, clients = small(), 3
    x, y = text(clients, 4, 7, seed=1) % 4 + 1, torch.arange(12).reshape(clients, 4) % 4
    x[:, :, :2] = 0
    stacked = {
        name: torch.stack([value.detach() + 0.1 * client for client in range(clients)]).requires_grad_()
        for name, value in module.named_parameters()
    }
    out = vmap(lambda model, some: functional_call(module, model, (some,)))(stacked, x)
    found = torch.autograd.grad(F.cross_entropy(out.flatten(0, 1), y.flatten()), stacked["embedding.weight"])[0]
    for client in range(clients):
        own = {name: value[client].detach() for name, value in stacked.items()}
        table = own.pop("embedding.weight").requires_grad_()
        embedded = F.one_hot(x[client, :, 2:], TOKENS).double() @ table  # the same rows by a product
        logits = functional_call(module, own, (embedded,))
        wanted = torch.autograd.grad(F.cross_entropy(logits, y[client]) / clients, table)[0]
        torch.testing.assert_close(found[client], wanted)
        assert found[client].abs().sum(1).gt(0).tolist() == [False, True, True, True, True, *[False] * 4]


# sizes


def test_sizes_are_leafs_unless_said() -> None:
    characters, words = build("lstm", (80,), 81, 0, VOCABULARY), build("lstm", (30,), 2, 0, WORDS)
    assert described(characters) == (VOCABULARY, 8, [256, 256], 81)
    assert described(words) == (WORDS, 100, [100, 100], 2)
    assert described(build("lstm:64", (80,), 81, 0, VOCABULARY)) == (VOCABULARY, 8, [64, 64], 81)
    assert described(build("lstm:64,1", (30,), 2, 0, WORDS)) == (WORDS, 100, [64], 2)
    assert described(build("lstm:64,3,16", (80,), 81, 0, VOCABULARY)) == (VOCABULARY, 16, [64, 64, 64], 81)


def described(module: Any) -> tuple[int, int, list[int], int]:
    assert type(module) is LSTM
    hidden = [layer.recurrent.shape[1] for layer in module.layers]
    return module.embedding.num_embeddings, module.embedding.embedding_dim, hidden, module.head.out_features


def test_initialisation_is_that_of_torchs_lstm() -> None:
    module: Any = build("lstm:100", (80,), 81, 0, VOCABULARY)
    for layer in module.layers:
        for value in layer.parameters():
            assert value.abs().max() <= 0.1
            assert float(value.detach().std()) == pytest.approx(0.1 / 3**0.5, rel=0.1)


@pytest.mark.parametrize(
    ("spec", "shape", "sentence"),
    [
        ("lstm:64,2,8,1", (80,), "takes fewer numbers"),
        ("lstm:64,0", (80,), "sizes of a model are positive"),
        ("lstm:big", (80,), "sizes of a model are whole numbers"),
        ("lstm", (4, 80), r"takes lists of tokens, but a sample here has shape \(4, 80\)"),
    ],
)
def test_a_bad_lstm_is_one_sentence(spec: str, shape: tuple[int, ...], sentence: str, untouched: None) -> None:
    with pytest.raises(fk.BadInput, match=sentence) as caught:
        build(spec, shape, 10, 0, 60)
    assert "\n" not in str(caught.value)
