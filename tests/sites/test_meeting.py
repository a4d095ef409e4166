"""Who takes part, what sites agree on, and what the server learns of their samples."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from federation import NAMES, Party, experiment, short

import fedkin as fk
from fedkin import sites
from fedkin.errors import Unfinished
from fedkin.sites import Answer, Arrays, Here, Request, Site, meet
from fedkin.sites.own_secret import DIGEST, PROOF


def test_sites_are_known_by_their_names_in_natural_order(party: Party) -> None:
    met = party.met()
    assert met.names == NAMES
    found = met.federation()
    assert found.train.sizes.tolist() == [12, 3, 40, 9]
    assert found.test.sizes.tolist() == [5, 2, 6, 3]
    assert (found.shape, found.classes, found.elsewhere, len(found.x)) == ((6,), 3, True, 1)
    assert not found.x.any()


def test_nothing_of_the_samples_is_told(party: Party) -> None:
    said = party.site("c").answer(Request("1", "introduce"))
    assert not said.tensors
    told = dict(said.facts["data"])
    assert told.pop("digest") != told
    assert set(told) == {"kind", "sizes", "task", "shape", "classes", "vocabulary"}


def test_a_check_sum_says_nothing_without_its_key_and_changes_with_the_samples(party: Party) -> None:
    one = party.site("c").introduce({})["data"]["digest"]
    assert one == party.site("c").introduce({})["data"]["digest"]
    (party.folder / "c" / DIGEST).unlink()
    assert one != party.site("c").introduce({})["data"]["digest"]
    two = party.site("c").introduce({})["data"]["digest"]
    party.federation.y[party.federation.train[3][0]] += 1
    assert two != party.site("c").introduce({})["data"]["digest"]


def test_a_server_cannot_try_guesses_of_the_samples(party: Party, tmp_path: Path) -> None:
    """It knows all that the site ever says, and the samples; still it cannot make the check sum of them."""
    site, heard = party.site("c"), list[str]()

    class Overheard(Here):
        def answer(self, name: str, request: Request) -> Any:
            answer = super().answer(name, request)
            heard.append(json.dumps(answer.facts) if isinstance(answer, Answer) and name == "c" else "")
            return answer

    sites.run(party.met(party.here(Overheard)), experiment(short(fk.methods.fedavg())), tmp_path / "run")
    told = json.loads(next(one for one in heard if "proof" in one))
    words = [b"", *(str(leaf).encode() for leaf in (*told.values(), *told["data"].values()))]
    words += [bytes.fromhex(told["proof"]), bytes.fromhex(told["data"]["digest"])]
    for word in words:
        for guess in (word, blake2b(word, digest_size=32).digest()):
            assert site.samples.digest(guess[:64]) != told["data"]["digest"]
    path = party.folder / "c" / DIGEST
    assert path.stat().st_mode & 0o777 == 0o600
    assert site.samples.digest(path.read_bytes()) == told["data"]["digest"]
    assert path.read_bytes().hex() not in "".join(heard)


def test_a_folder_that_has_told_its_only_secret_gets_another_one(party: Party) -> None:
    """Sites of before keyed the check sum by what they told; they are still who they were."""
    (party.folder / "c").mkdir(parents=True)
    (party.folder / "c" / PROOF).write_bytes(b"k" * 16)
    told = party.site("c").introduce({})
    assert told["proof"] == (b"k" * 16).hex()
    assert told["data"]["digest"] != party.site("c").samples.digest(b"k" * 16)


def odd(party: Party, name: str, x: Any, y: Any, **more: Any) -> Site:
    return Site(name, party.folder / name, Arrays(name, lambda: (x, y), **more), warn=party.heard.append)


X, Y = np.random.default_rng(0).normal(size=(8, 6)), np.arange(8) % 3
ODD: dict[str, tuple[Any, Any, str]] = {
    "shape": (X[:, :5], Y, "the shape [5], those of others [6]"),
    "task": (X, X[:, 0], "to regress, those of others to classify"),
    "labels": (X, np.array(["sick", "well"] * 4), "class numbers from 0 on"),
    "below zero": (X, Y - 1, "class numbers from 0 on"),
}


@pytest.mark.parametrize("case", ODD)
def test_a_site_that_does_not_fit_is_told_and_left_out(party: Party, case: str) -> None:
    x, y, words = ODD[case]
    transport = party.here()
    transport.make["b11"] = lambda: odd(party, "b11", x, y)
    met = party.met(transport)
    assert met.names == NAMES
    assert any("b11 was not taken" in note and words in note for note in met.federation().notes)
    assert any("does not take site b11" in heard and words in heard for heard in party.heard)


def test_another_version_of_fedkin_is_not_taken(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    class Older(Here):
        def answer(self, name: str, request: Request) -> Any:
            answer = super().answer(name, request)
            assert isinstance(answer, Answer)
            return replace(answer, facts=answer.facts | {"fedkin": "0.0.1"}) if name == "b2" else answer

    with pytest.raises(Unfinished, match=r"3 sites are here \(a, b10, c\), and 1 more .* It runs fedkin 0\.0\.1"):
        party.met(party.here(Older), wait=0.0)


def test_only_named_sites_are_taken(party: Party) -> None:
    met = meet(party.here(), ["a", "c"], warn=party.said.append)
    assert met.names == ("a", "c")
    assert any("not among the sites of this run" in heard for heard in party.heard)
    with pytest.raises(Unfinished, match=r"1 sites are here \(a\), and 1 more are waited for"):
        meet(party.here(), ["a", "z"], wait=0.0, warn=party.said.append)


def test_sites_are_waited_for(party: Party) -> None:
    transport, heard = party.here(), list[str]()
    late = transport.make.pop("c")

    def warn(sentence: str) -> None:
        heard.append(sentence)
        transport.make["c"] = late

    assert party.met(transport, warn=warn).names == NAMES
    assert heard == ["3 sites are here (a, b2, b10), and 1 more are waited for."]


def test_two_sites_of_one_name(party: Party) -> None:
    class Twice(Here):
        def gather(self, request: Request, timeout: float) -> list[Answer]:
            found = super().gather(request, timeout)
            return [*found, replace(found[0], facts=found[0].facts | {"proof": "11" * 16})]

    with pytest.raises(fk.BadInput, match="Two sites say that they are 'c'"):
        party.met(party.here(Twice))


def test_classes_that_a_site_lacks(party: Party, tmp_path: Path) -> None:
    """Sites have the classes 1 and 2, and 0 and 3; together they have four."""
    gen = np.random.default_rng(1)
    labels = {"a": np.array([1, 2] * 10), "b": np.array([0, 3] * 10)}

    def site(name: str) -> Site:
        return odd(party, name, gen.normal(size=(20, 4)), labels[name])

    fixed = {name: site(name) for name in labels}
    transport = Here({name: (lambda name=name: fixed[name]) for name in labels})
    met = meet(transport, 2, warn=party.said.append)
    assert met.agreed["classes"] == 4
    run = sites.run(met, replace(experiment(short(fk.methods.fedavg())), model="mlr"), tmp_path / "run")
    assert all(value.shape[0] == 4 for value in run.models["global"].values())
    written = json.loads((tmp_path / "run" / "clients.json").read_text())
    assert written["names"] == ["a", "b"]
    assert "labels" not in written
