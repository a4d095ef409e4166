"""Requests and answers as Flower's records, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from torch import Tensor

from fedkin.errors import BadInput, require
from fedkin.sites.letters import Answer, Request

FACTS, TENSORS = "fedkin", "fedkin-tensors"  # the records of a letter


def request_record(request: Request) -> RecordDict:
    """Return a request as records."""
    return written({"id": request.id, "do": request.do}, request.facts, request.tensors)


def answer_record(answer: Answer) -> RecordDict:
    """Return an answer as records."""
    return written({"site": answer.site, "to": answer.to}, answer.facts, answer.tensors)


def as_request(record: RecordDict) -> Request:
    """Return the request that these records are; refuses others."""
    return Request(*read(record, "id", "do"))


def as_answer(record: RecordDict) -> Answer:
    """Return the answer that these records are; refuses others."""
    return Answer(*read(record, "site", "to"))


def written(words: dict[str, str], facts: dict[str, Any], tensors: Mapping[str, Tensor]) -> RecordDict:
    """Return a letter as records."""
    config = ConfigRecord({**words, "facts": json.dumps(facts)})
    return RecordDict({FACTS: config, TENSORS: arrays(tensors)})


def read(record: RecordDict, first: str, second: str) -> tuple[str, str, dict[str, Any], dict[str, Tensor]]:
    """Return the two words, the facts and the tensors of a letter."""
    try:
        config = record.config_records[FACTS]
        words, facts = (str(config[first]), str(config[second])), json.loads(str(config["facts"]))
        found = tensors(record.array_records[TENSORS])
    except (KeyError, ValueError, TypeError) as error:
        raise BadInput(f"This message is none of fedkin's ({type(error).__name__}: {error}).") from error
    require(isinstance(facts, dict), "This message is none of fedkin's: its facts are no dictionary.")
    return *words, facts, found


def arrays(tensors: Mapping[str, Tensor], more: Mapping[str, Array] | None = None) -> ArrayRecord:
    """Return tensors as Flower's arrays, with these arrays beside them."""
    found = {name: Array(value.detach().cpu().numpy()) for name, value in tensors.items()}
    return ArrayRecord(found | dict(more or {}))


def tensors(record: ArrayRecord) -> dict[str, Tensor]:
    """Return Flower's arrays as tensors."""
    return {name: torch.from_numpy(array.numpy().copy()) for name, array in record.items()}
