"""Predicts the rows of a file, with torch and pandas only: python predict.py rows.csv [predictions.csv]"""

import sys

import torch
from rows import HERE, read, table

network = torch.export.load(HERE / "network.pt2").module()
with torch.no_grad():
    outputs = network(read(sys.argv[1]))
table(outputs).to_csv(sys.argv[2] if len(sys.argv) > 2 else sys.stdout, index=False)
