"""The server's app: it plays what pyproject.toml asks for on the sites, one method after another."""

from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

import fedkin as fk
from fedkin import flower
from fedkin.federation.texts import methods_of, noted, words_of
from fedkin.runs.folder import RunFolder

app = ServerApp()


@app.main()  # type: ignore[untyped-decorator]  # flwr has no types where it is not installed
def main(grid: Grid, context: Context) -> None:
    """Play each method, and keep its run in a folder of its own."""
    config, runs = context.run_config, Path(str(context.run_config["folder"]))
    for method in methods_of(config["method"], config["set"]):
        experiment = fk.Experiment(
            method,
            model=str(config["model"]),
            rounds=int(config["rounds"]),
            seed=int(config["seed"]),
            evaluate_every=1,
        )
        folder = runs / method.name / f"seed-{experiment.seed}"
        flower.run(
            grid,
            experiment,
            folder,
            sites=words_of(config["sites"]),
            resume=bool(config["resume"]) and RunFolder(folder).begun,
            timeout=float(config["timeout"]),
            patience=float(config["patience"]),
            warn=noted(runs),
        )
