"""Reads samples from a file, and makes a table of what the network says of them; with torch and pandas only.

An .npz file has an array `x` with a row for each sample; a .pt file has a tensor or a dictionary with `x`.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch

HERE = Path(__file__).resolve().parent
ABOUT = json.loads((HERE / "model.json").read_text(encoding="utf-8"))


def read(file: str) -> torch.Tensor:
    """The samples in a file."""
    if not Path(file).is_file():
        sys.exit(f"There is no file {file}.")
    try:
        found = torch.load(file) if file.endswith(".pt") else torch.from_numpy(np.load(file)["x"])
        x = found["x"] if isinstance(found, dict) else found
        shape = list(x.shape[1:])
    except Exception:  # torch, numpy and zip raise many kinds
        sys.exit(f"{file} cannot be read: give an .npz with an array x, or a .pt with a tensor x.")
    if shape != ABOUT["shape"]:
        sys.exit(f"The samples are of shape {shape}, but the network takes samples of shape {ABOUT['shape']}.")
    return x.long() if ABOUT["tokens"] else x.float()


def table(outputs: torch.Tensor) -> pd.DataFrame:
    """What the network says: the class and its probabilities, or the value."""
    out = outputs.double()
    number = pd.Series(range(1, len(out) + 1), name="row")
    if ABOUT["task"] == "regress":
        return pd.DataFrame({"row": number, "prediction": out[:, 0].numpy()})
    names = {"row": number, "prediction": [ABOUT["labels"][i] for i in out.argmax(1)]}
    chance = {f"probability {label}": out.softmax(1)[:, i].numpy() for i, label in enumerate(ABOUT["labels"])}
    return pd.DataFrame(names | chance)
