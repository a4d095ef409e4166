"""A short version of benchmarks/calibration.py: one number of an independent calibration, reached in seconds."""

import fedkin as fk


def test_attention_at_sigma_30_reaches_the_calibrated_level() -> None:
    """FedAvg+MCSA on synthetic, MLR, T=300, sigma 30: 0.922 micro, the level of training alone, because the weight of a
    client's own model is 1."""
    experiment = fk.Experiment(fk.methods.fedavg_mcsa(sigma=30), rounds=300, evaluate_every=300)
    result = fk.run(experiment)
    assert abs(result.summary["accuracy"]["post"]["micro"]["best"] - 0.922) <= 0.01
    assert result.lines[-1]["collaborate"]["self_weight"] > 0.99
