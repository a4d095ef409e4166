"""The 1,797 images of digits that come with scikit-learn, which need no network."""

from __future__ import annotations

import numpy as np
import torch

from fedkin.data.samples import Samples


def digits() -> Samples:
    """All images, each pixel standardised."""
    from sklearn.datasets import load_digits  # here: importing it takes longer than most runs' first round

    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 1, 8, 8) / 16
    images = (images - images.mean(0)) / (images.std(0) + 0.001)
    return Samples(
        x=torch.from_numpy(images.astype(np.float32)),
        y=torch.from_numpy(labels.astype(np.int64)),
        classes=10,
        source={"kind": "package", "id": "sklearn.datasets.load_digits", "rows": {"train": len(labels)}},
    )
