"""The model card: what an exported model is, where it comes from, how good it was, what it is for."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import numpy as np

from fedkin import metrics
from fedkin.imports import named_in
from fedkin.runs.part_json import from_json
from fedkin.runs.run import Run
from fedkin.runs.verdict import is_local

KINDS = {"post": "this client's model", "global": "the common model"}  # that the card has scores of


def facts(run: Run, client: str | None) -> dict[str, Any]:
    """Return where a model comes from and how good it was, as JSON."""
    stored, about = run.experiment, run.about_clients
    data = stored["data"]
    with named_in(run.folder):
        method = from_json(stored["method"])
    parts = {verb: repr(getattr(method, verb)) for verb in ("select", "train", "keep", "collaborate")}
    mine = None if client is None else run.number(client)
    rows = {
        word: int(about[word][mine] if mine is not None else sum(about[word]))
        for word in ("train", "test")
        if word in about
    }
    return {
        "data": data.get("given") or PurePath(data["name"]).name,  # where the file lies is nobody's business
        "clients": run.n,
        "rows": rows,
        "method": run.method,
        "parts": parts,
        "judged": run.judged if client is not None else "global",
        "finetuned": client is not None and method.finetunes,
        "network": stored["model"],
        "parameters": stored["resolved"]["parameters"],
        "rounds": run.reached,
        "seed": run.seed,
        "data_seed": data.get("seed"),
        "split": run.split,
        "metrics": scores(run, mine),
    }


def scores(run: Run, client: int | None) -> dict[str, dict[str, float]]:
    """Return the last scores by metric and kind: of one client or, without one, the mean over clients."""
    found: dict[str, dict[str, float]] = {}
    for metric, kinds in run.measured.items():
        for kind in [kind for kind in KINDS if kind in kinds and (client is not None or kind == "global")]:
            value = float(kinds[kind][client]) if client is not None else mean(kinds[kind])
            if np.isfinite(value):
                found.setdefault(metric, {})[kind] = value
    return found


def mean(values: np.ndarray) -> float:
    """Return the mean over clients that have a score; nan where none has."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def card(about: dict[str, Any], prepared: dict[str, Any] | None) -> str:
    """Return the model card in Markdown."""
    client, method = about["client"], about["method"]
    how = "training alone beside the others of" if is_local(method) else "a method of federated learning, among"
    whose = f"Model for {client}" if client else "Common model of all clients"
    tuned = ", fine-tuned on this client's own training rows" if about["finetuned"] else ""
    if client and about["judged"] == "global":
        tuned = "; it is the common model, since with this method a client's own model never sees the others"
    return "\n".join(
        [
            f"# {whose}",
            "",
            f"Made by {method} ({about['network']}, {about['parameters']:,} numbers), {how} {about['clients']} "
            f"clients{tuned}. Exported by fedkin on {about['date']}.",
            "",
            *use_lines(prepared),
            "## Data",
            f"- Data: {about['data']}; seed of the data {about['data_seed']}, split {about['split']}.",
            f"- {rows_line(about)}",
            f"- {task_line(about)}",
            *column_lines(prepared),
            "",
            "## Method",
            *[f"- {verb}: `{part}`" for verb, part in about["parts"].items()],
            f"- {about['rounds']:,} rounds, seed {about['seed']}.",
            "",
            *score_lines(about),
            "## Intended use and limits",
            *limit_lines(about, prepared),
            "",
            "## Versions",
            "- " + ", ".join(f"{name} {version}" for name, version in about["versions"].items()),
            "",
        ]
    )


def use_lines(prepared: dict[str, Any] | None) -> list[str]:
    file = "x.npz" if prepared is None else "rows.csv"
    return [
        f"    python predict.py {file} predictions.csv    # needs torch and pandas, not fedkin",
        "",
        "`network.pt2` is the network (`torch.export.load`), `model.safetensors` its numbers, `model.json` what stands "
        "here for programs" + ("." if prepared is None else ", `preparation.json` how a row becomes a sample."),
        "",
    ]


def rows_line(about: dict[str, Any]) -> str:
    rows = about["rows"]
    whose = "Rows of this client" if about["client"] else "Rows of all clients"
    said = ", ".join(f"{count:,} to {word}" for word, count in rows.items())
    return f"{whose}: {said or 'not written down'}."


def task_line(about: dict[str, Any]) -> str:
    target = f"`{about['target']}`" if about["target"] else "the target"
    if about["task"] == "regress":
        return f"Predicts the value of {target}, in its own unit."
    return f"Predicts {target}, one of {len(about['labels'])} classes: {', '.join(about['labels'])}."


def column_lines(prepared: dict[str, Any] | None) -> list[str]:
    if prepared is None:
        return []
    used = dict.fromkeys(feature["column"] for feature in prepared["features"])
    kinds = {column["name"]: column["kind"] for column in prepared["columns"]}
    named = ", ".join(f"{name} ({kinds.get(name, 'number')})" for name in used)
    how = {
        "none": "as they are",
        "site": "standardised by this site's training rows",
        "all": "standardised by all sites",
    }
    return [f"- Columns: {named}. Numbers are {how.get(prepared['standardise'], prepared['standardise'])}."]


def score_lines(about: dict[str, Any]) -> list[str]:
    """Return the table of scores, with the number of test rows that they stand on."""
    kinds = [kind for kind in KINDS if any(kind in values for values in about["metrics"].values())]
    count = about["rows"].get("test")
    head = f"## Scores on {count:,} test rows" if count is not None else "## Scores"
    if not kinds:
        return [head, "There were no test rows, so nothing is known of how good this model is.", ""]
    lines = [head, f"| metric | {' | '.join(KINDS[kind] for kind in kinds)} |", f"|---{'|---' * len(kinds)}|"]
    for metric, values in about["metrics"].items():
        cells = [f"{values[kind]:.4f}" if kind in values else "" for kind in kinds]
        lines.append(f"| {metrics.METRICS[metric].label} | {' | '.join(cells)} |")
    return [*lines, "" if about["client"] else "Means over clients.", ""]


def limit_lines(about: dict[str, Any], prepared: dict[str, Any] | None) -> list[str]:
    where = f"for new rows of {about['client']}" if about["client"] else "for rows of clients like those that took part"
    lines = [
        f"- Meant {where}, measured and coded as the training rows were. It was not tried on any other.",
        "- The scores are of one division into training and test rows; few test rows mean wide intervals. Check the "
        "model on new rows before a decision depends on it, and again when practice or population changes.",
        "- Where several methods were compared, the method may have been chosen by these very test rows; then the "
        "scores are a little too good.",
        "- Probabilities are the network's own and may be over-confident.",
    ]
    if prepared is not None:
        lines.append(
            "- A value that is missing is filled in; a category that training did not see counts as other or none."
        )
    return lines
