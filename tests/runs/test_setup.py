"""What a run chooses by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from fedkin.runs.setup import default_threads


def test_a_run_takes_no_more_threads_than_torch_was_given() -> None:
    def network(parameters: int) -> Any:
        return SimpleNamespace(parameters=parameters)

    assert torch.get_num_threads() == 1
    assert default_threads(network(1_000_000)) == 1
    torch.set_num_threads(3)
    try:
        assert default_threads(network(1_000_000)) == 3
        assert default_threads(network(1_000)) == 1
        torch.set_num_threads(8)
        assert default_threads(network(1_000_000)) == 4
    finally:
        torch.set_num_threads(1)
