"""Predicts samples, with torch and pandas only: python predict.py x.npz [predictions.csv]

x.npz has an array `x` with a row for each sample; a .pt file has a tensor or a dictionary with `x`.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch

HERE = Path(__file__).resolve().parent
ABOUT = json.loads((HERE / "model.json").read_text(encoding="utf-8"))


def predictions(x: torch.Tensor) -> pd.DataFrame:
    """What the network says of these samples: the class and its probabilities, or the value."""
    network = torch.export.load(HERE / "network.pt2").module()
    with torch.no_grad():
        out = network(x.long() if ABOUT["tokens"] else x.float()).double()
    number = pd.Series(range(1, len(x) + 1), name="row")
    if ABOUT["task"] == "regress":
        return pd.DataFrame({"row": number, "prediction": out[:, 0].numpy()})
    names = {"row": number, "prediction": [ABOUT["labels"][i] for i in out.argmax(1)]}
    chance = {f"probability {label}": out.softmax(1)[:, i].numpy() for i, label in enumerate(ABOUT["labels"])}
    return pd.DataFrame(names | chance)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    found = torch.load(path) if path.suffix == ".pt" else torch.from_numpy(np.load(path)["x"])
    x = found["x"] if isinstance(found, dict) else found
    predictions(x).to_csv(sys.argv[2] if len(sys.argv) > 2 else sys.stdout, index=False)
