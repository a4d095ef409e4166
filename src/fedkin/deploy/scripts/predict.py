"""Predicts the rows of a file, with torch and pandas only: python predict.py rows.csv [predictions.csv]"""

import sys

import torch
from rows import HERE, read, table

rows = read(sys.argv[1]) if len(sys.argv) > 1 else sys.exit(__doc__)
network = torch.export.load(HERE / "network.pt2").module()
with torch.no_grad():
    outputs = network(rows)
table(outputs).to_csv(sys.argv[2] if len(sys.argv) > 2 else sys.stdout, index=False)
