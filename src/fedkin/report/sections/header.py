"""The top of the page: the answer, what must be known to judge it, and what was run."""

from __future__ import annotations

from html import escape
from typing import Any

from fedkin.answers.sentences import headline as sites_headline
from fedkin.report.formats import repeated
from fedkin.report.html import Section
from fedkin.report.study import Study
from fedkin.report.words import cautions, headline, lede
from fedkin.runs.facts import scored_words


def header(study: Study) -> Section:
    """The answer of the sites where there is one; what is to be said of the methods then stands above their table."""
    first = sites_headline(study.sites) if study.sites else headline(study)
    said = "" if study.sites else "".join(f"<p>{escape(text)}</p>" for text in lede(study))
    tuned = "".join(f"<p>{escape(text)}</p>" for text in study.tuned)
    warned = "".join(f'<p class="caution">{escape(text)}</p>' for text in cautions(study))
    facts = "".join(
        f"<div><dt>{escape(k)}</dt><dd>{escape(v)}<small>{escape(more)}</small></dd></div>"
        for k, (v, more) in what_was_run(study).items()
    )
    return Section(
        f'<header><p class="name">fedkin report · {escape(study.name)}</p><h1>{escape(first)}</h1>'
        f'<div class="lede">{said}{tuned}</div>{warned}<dl class="facts">{facts}</dl></header>\n'
    )


def what_was_run(study: Study) -> dict[str, tuple[str, str]]:
    """What was run: a word or a number, and a little more in small print."""
    about, resolved = study.experiment, study.experiment["resolved"]
    data = about["data"]
    partition = data.get("partition") or resolved.get("source", {}).get("partition")
    small = [
        f"{word}: {said}" for word, said in (("partition", partition), ("irrelevant", data.get("irrelevant"))) if said
    ]
    sizes = study.clients.get("train") or [0]
    size = f"{min(sizes):,} to {max(sizes):,}" if min(sizes) < max(sizes) else f"{max(sizes):,}"
    seeds = list(dict.fromkeys(run.seed for run in study.runs))
    every = resolved["evaluate_every"]
    return {
        "Data": (str(data.get("name", data.get("given"))), "; ".join(small)),
        "Clients": (f"{resolved['clients']:,}", f"{size} training samples each" if any(sizes) else ""),
        **({"Scores": (f"{resolved['scored_clients']:,} clients", said)} if (said := scored_words(resolved)) else {}),
        "Model": (str(about["model"]), f"{resolved['parameters']:,} parameters"),
        "Rounds": (f"{max(run.asked for run in study.runs):,}", ""),
        "Seeds": (how_often(study), ", ".join(map(str, seeds))),
        "Scored": (
            "every round" if every == 1 else f"every {every} rounds",
            "" if every == 1 else "and after the last",
        ),
    }


def how_often(study: Study) -> str:
    """How many runs each method has: '3', '3 x 10 splits' or '5 data seeds'."""
    said: dict[str, Any] = {"runs": max(len(entry.runs) for entry in study.entries.values())}
    for word in ("seed", "split", "data_seed"):
        said[f"{word}s"] = list({getattr(run, word) for run in study.begun})
    text = repeated(said)
    return text if "data" in text else text.replace(" seeds", "").replace(" seed", "")
