"""What everything else stands on: models as dictionaries of tensors, random streams, batches, slots."""

import os

# MKL reads this at its first product: the same factors give the same bits wherever they lie in memory, at no cost.
# Without it a client's last digits would depend on its place in a chunk.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
