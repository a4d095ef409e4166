"""The ClientApp of a site."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from torch import nn

from fedkin.data.federation import Task
from fedkin.errors import require
from fedkin.flower.records import answer_record, as_request
from fedkin.sites.samples import Arrays, Given, Samples
from fedkin.sites.site import Site

Load = Callable[[], Given] | Callable[[Context], Given]


def client(
    make_model: Callable[[], nn.Module] | None = None,
    load_data: Load | None = None,
    *,
    samples: Callable[[str, Context], Samples] | None = None,
    folder: Path | str | None = None,
    modules: Sequence[str] = (),
    dp: str | None = None,
    classes: int | None = None,
    task: Task | None = None,
    test: float = 0.25,
    validation: float = 0.0,
    seed: int = 0,
    threads: int = 1,
) -> ClientApp:
    """Return the ClientApp of a site that takes part in runs of fedkin.

    `make_model` makes the network; without it the server can ask for fedkin's named ones only. `load_data` returns this
    site's samples, as `sites.Arrays` takes them; it may take Flower's context. `samples` gives, for the site's name and
    Flower's context, samples of another kind in its place. `modules` are those whose parts the server may ask for.
    `dp` is what the site demands of every run, as "noise=0.8,epsilon=8" (`sites.Site`).

    A site's own configuration (`flower-supernode --node-config`) says its `name`, the `folder` in which it keeps its
    models, further `modules`, separated by commas, and its own `dp`. Without a name it is 'site-' and its partition;
    without a folder it has one in ~/.fedkin/sites.
    """
    require((load_data is None) != (samples is None), "A site has either load_data or samples; give one of them.")
    require(make_model is None or callable(make_model), "make_model is a function that returns a torch module.")
    app = ClientApp()

    def site(context: Context) -> Site:
        config = context.node_config
        name = name_of(config)
        if samples is not None:
            mine = samples(name, context)
        else:
            mine = Arrays(name, lambda: loaded(load_data, context), classes, task, test, validation, seed)
        parent = Path.home() / ".fedkin" / "sites" if folder is None else Path(folder)
        place = Path(str(config["folder"])) if "folder" in config else parent / name
        least = str(config["dp"]) if "dp" in config else dp
        more = [word.strip() for word in str(config.get("modules", "")).split(",") if word.strip()]
        return Site(name, place, mine, model=make_model, modules=[*modules, *more], dp=least)

    def answered(message: Message, context: Context) -> Message:
        torch.set_num_threads(threads)
        answer = site(context).answer(as_request(message.content))
        return Message(answer_record(answer), reply_to=message)

    for register in (app.query, app.train, app.evaluate):
        register()(answered)
    return app


def name_of(config: Any) -> str:
    """Return the name of a site: as its configuration says, or by its partition."""
    found = str(config.get("name", f"site-{config['partition-id']}" if "partition-id" in config else ""))
    require(found, "A site needs a name; start its SuperNode with --node-config 'name=\"...\"'.")
    return found


def loaded(load: Any, context: Context) -> Given:
    """Return what the user's function returns, called with Flower's context if it takes an argument."""
    found: Given = load(context) if signature(load).parameters else load()
    return found
