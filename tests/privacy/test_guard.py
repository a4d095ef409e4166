"""What leaves a client is clipped and noised, and nothing else leaves it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from scipy import stats
from small import tiny

import fedkin as fk
from fedkin.core import tree
from fedkin.engines import Plain, Stacked
from fedkin.parts import Method
from fedkin.privacy import Guard, Privacy, guard, protected

PRIVACY = Privacy(clip=0.5, noise=0.8)
GUARD = Guard(PRIVACY, b"3")
EVERYONE = torch.arange(6)


def messages(m: int, d: int, scale: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """What m clients would upload, a model and the change of a control variate, and the model that they were sent."""
    gen = torch.Generator().manual_seed(1)
    sent = {"model": {"w": torch.randn(m, d, 2, generator=gen), "b": torch.randn(m, 3, generator=gen)}}
    moved = tree.mapped(lambda x: x + scale * torch.randn(x.shape, generator=gen), sent["model"])
    return {"model": moved, "control": {"w": scale * torch.randn(m, d, 2, generator=gen)}}, sent


def change(upload: dict[str, Any], sent: dict[str, Any]) -> torch.Tensor:
    """The updates as vectors, one row a client."""
    model = tree.mapped(lambda a, b: (a.double() - b.double()).flatten(1), upload["model"], sent["model"])
    return torch.cat([*model.values(), upload["control"]["w"].double().flatten(1)], dim=1)


def noiseless(key: bytes, count: int) -> torch.Tensor:
    return torch.zeros(count, dtype=torch.float64)


@pytest.mark.parametrize(("scale", "clips"), [(1.0, True), (0.01, False)])
def test_an_update_is_at_most_as_long_as_the_clip(monkeypatch: pytest.MonkeyPatch, scale: float, clips: bool) -> None:
    monkeypatch.setattr(guard, "normal", noiseless)
    upload, sent = messages(4, 5, scale)
    before, after = change(upload, sent), change(GUARD.released(upload, sent, 1, range(4)), sent)
    assert bool((before.norm(dim=1) > PRIVACY.clip).all()) == clips
    assert (after.norm(dim=1) <= PRIVACY.clip * (1 + 1e-5)).all()
    if clips:  # all tensors of all models together have that length, and the direction stays
        torch.testing.assert_close(
            after.norm(dim=1), torch.full((4,), PRIVACY.clip, dtype=torch.float64), rtol=1e-5, atol=0
        )
        torch.testing.assert_close(
            after, before * (PRIVACY.clip / before.norm(dim=1, keepdim=True)), rtol=1e-3, atol=1e-6
        )
    else:
        torch.testing.assert_close(after, before, rtol=1e-3, atol=1e-6)


def test_every_upload_is_measured_from_what_was_sent_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second model counts as far as it has moved, and a change of what was sent by the same name by itself."""
    monkeypatch.setattr(guard, "normal", noiseless)
    upload, sent = messages(4, 5, 0.1)
    for each, start in ((upload, 5.0), (sent, 5.0)):
        each["shadow"] = {"w": torch.full((4, 3), start), "lead": torch.full((4,), start)}
    upload["shadow"]["w"] += 0.01
    sent["control"] = {"w": torch.full((4, 5, 2), 7.0)}
    found = GUARD.released(upload, sent, 1, range(4), ("control",))
    before, after = change(upload, sent), change(found, sent)
    long = (before.norm(dim=1, keepdim=True) ** 2 + 3 * 0.01**2).sqrt()
    torch.testing.assert_close(after, before * (PRIVACY.clip / long).clamp(max=1.0), rtol=1e-3, atol=1e-6)
    assert found["shadow"]["lead"].shape == (4,)
    torch.testing.assert_close(found["shadow"]["lead"], upload["shadow"]["lead"])
    assert fk.methods.scaffold().train.changes == ("control",)


def test_the_noise_is_normal_with_the_deviation_that_was_asked_for() -> None:
    upload, sent = messages(3, 20_000, 0.0)  # clients that learned nothing
    noise = change(GUARD.released(upload, sent, 1, range(3)), sent) / (PRIVACY.noise * PRIVACY.clip)
    assert noise.std(dim=1).sub(1).abs().max() < 0.02
    assert noise.mean(dim=1).abs().max() < 0.02
    assert stats.kstest(noise[0, ::7].numpy(), "norm").pvalue > 1e-3
    assert torch.corrcoef(noise).triu(1).abs().max() < 0.03
    later = change(GUARD.released(upload, sent, 2, range(3)), sent)
    assert torch.corrcoef(torch.stack([noise[0], later[0]]))[0, 1].abs() < 0.03


def test_noise_depends_on_seed_round_and_client_only() -> None:
    upload, sent = messages(3, 5, 1.0)
    whole = GUARD.released(upload, sent, 7, [4, 5, 9])
    pick = lambda message: tree.each(lambda model: tree.rows(model, slice(1, 2)), message)  # noqa: E731
    one = GUARD.released(pick(upload), pick(sent), 7, [5])
    assert tree.flat(one).keys() == tree.flat(whole).keys()
    for name, value in tree.flat(one).items():
        assert torch.equal(value[0], tree.flat(whole)[name][1]), name
    for other in (
        Guard(PRIVACY, b"4").released(upload, sent, 7, [4, 5, 9]),
        GUARD.released(upload, sent, 8, [4, 5, 9]),
    ):
        assert not torch.equal(other["model"]["w"], whole["model"]["w"])


METHODS = {
    "fedavg": tiny(fk.methods.fedavg(), 4),
    "scaffold": tiny(fk.methods.scaffold(), 4),
    "ditto": tiny(fk.methods.ditto(), 4),
    "fedmcsa": tiny(fk.methods.fedmcsa(), 4),
    "fedacs": tiny(fk.methods.fedacs(), 4),
    "fedamp": tiny(fk.methods.fedamp(), 4),
    "kin": tiny(fk.methods.kin(), 4),
}


@pytest.mark.parametrize("name", METHODS)
def test_what_a_client_keeps_is_not_noised(begin: Any, name: str) -> None:
    method = protected(METHODS[name], PRIVACY)
    plain, noised = begin(method), begin(method, guard=GUARD)
    replies = [run.reply(EVERYONE) for run in (plain, noised)]
    for slot, model in plain.engine.slots.read(EVERYONE).items():
        for key, value in model.items():
            assert torch.equal(value, noised.engine.slots.read(EVERYONE)[slot][key]), (slot, key)
    for upload, model in replies[0].upload.items():
        for key, value in model.items():
            assert not torch.equal(value, replies[1].upload[upload][key]), (upload, key)
    assert {name: value.tolist() for name, value in replies[0].report.items()} == {
        name: value.tolist() for name, value in replies[1].report.items()
    }


def test_a_model_that_is_tuned_to_be_scored_stays_with_its_client_and_is_not_noised(begin: Any) -> None:
    replies = [begin(METHODS["fedavg"], guard=chosen).reply(EVERYONE, keep=False) for chosen in (None, GUARD)]
    for key, value in replies[0].upload["model"].items():
        assert torch.equal(value, replies[1].upload["model"][key]), key


@pytest.mark.parametrize("name", METHODS)
def test_engines_agree(begin: Any, name: str) -> None:
    method = protected(METHODS[name], PRIVACY)
    runs = [begin(method, kind, guard=GUARD, chunk=chunk) for kind, chunk in ((Plain, 1), (Stacked, 4), (Stacked, 2))]
    for _ in range(3):
        logs = [run.round() for run in runs]
        assert len({tuple(log.selected.tolist()) for log in logs}) == 1
    first = tree.flat({"server": runs[0].state.collaborate, "clients": runs[0].engine.private()})
    for run in runs[1:]:
        for key, value in tree.flat({"server": run.state.collaborate, "clients": run.engine.private()}).items():
            torch.testing.assert_close(value, first[key], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["fedmcsa", "fedacs", "fedamp"])
def test_the_server_sees_uploads_in_place_of_current_models(
    begin: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    method = protected(METHODS[name], PRIVACY)
    run = begin(method, guard=GUARD)
    monkeypatch.setattr(run.engine, "current", lambda *asked: pytest.fail("a client was asked for its model"))
    seen = {key: value.clone() for key, value in run.state.collaborate["uploaded"].items()}
    for _ in range(3):
        log = run.round()
        assert log.reply is not None
        for key, value in seen.items():
            value[log.reply.ids] = log.reply.upload["model"][key]
            assert torch.equal(run.state.collaborate["uploaded"][key], value)


def test_last_uploads_mix_as_their_base_mixes_current_models(begin: Any) -> None:
    method: Method = tiny(fk.methods.fedmcsa(), 6, steps=1)
    plain, last = begin(method), begin(protected(method, PRIVACY))  # everyone uploads in every round, and no noise
    for _ in range(3):
        one, other = plain.round().sent, last.round().sent
        for key, value in one.own["model"].items():
            torch.testing.assert_close(other.own["model"][key], value)
        assert one.kin.weights.keys() == other.kin.weights.keys()
