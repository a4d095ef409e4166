"""Which tensors of a model are its head, the last layer, and which are its body, all others."""

from __future__ import annotations

from collections.abc import Iterable

from fedkin.errors import require, unknown


def layers(names: Iterable[str]) -> dict[str, list[str]]:
    """The names of the tensors of each layer, in order: those that differ only behind the last dot."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(name.rpartition(".")[0] or name, []).append(name)
    return found


def chosen(names: Iterable[str], share: str) -> list[str]:
    """The tensors that `share` means: 'body', 'head', or layers by name with commas between them, as 'conv1,conv2'."""
    by_layer = layers(names)
    *body, head = by_layer
    wanted = {"body": body, "head": [head]}.get(share) or [word.strip() for word in share.split(",")]
    if share == "body":
        require(body, "This model has one layer, which is its head, so it has no body; choose one with hidden layers.")
    for word in wanted:
        if word not in by_layer:
            raise unknown("layer", word, by_layer)
    return [name for layer, each in by_layer.items() if layer in wanted for name in each]
