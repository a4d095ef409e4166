"""The filter of docs/papers/robust.md by scalars and loops."""

from __future__ import annotations

from math import sqrt

from pfedre_transcribed import Vector, median

LOW, HIGH, LARGE = 0.3, 2.0, 4.0


def length(row: Vector) -> float:
    return sqrt(sum(x * x for x in row))


def straight(first: Vector, sent: Vector, clipped: dict[int, Vector], trusted: set[int]) -> dict[int, float]:
    """Step 3 of the box: the cosine of each update with the way of the others."""
    found = {}
    for i, row in clipped.items():
        others = [clipped[j] for j in clipped if j in trusted and j != i]
        way = []
        for k in range(len(sent)):
            mean = sum(other[k] for other in others) / len(others) if others else 0.0
            way.append(sent[k] - first[k] + mean)
        found[i] = sum(x * y for x, y in zip(row, way, strict=True)) / max(length(row) * length(way), 1e-12)
    return found


def above(scores: dict[int, float], most: int) -> set[int]:
    """Who is above 1; of too many, those with the largest scores."""
    order = sorted(scores, key=lambda i: (-scores[i], i))
    return {i for i in order[:most] if scores[i] > 1.0}


class Filter:
    """The server's memory, and its steps 1 to 5 for one round."""

    def __init__(self) -> None:
        self.cosines: dict[int, Vector] = {}
        self.usual: dict[int, Vector] = {}
        self.lengths: dict[int, Vector] = {}
        self.out: set[int] = set()
        self.scores: dict[int, float] = {}

    def judge(
        self, first: Vector, sent: Vector, models: dict[int, Vector], reach: dict[int, float], classes: int
    ) -> list[int]:
        """Return who counts. `reach` is each client's learning rate times the number of its steps."""
        updates = {i: [x - w for x, w in zip(model, sent, strict=True)] for i, model in models.items()}
        each = {i: length(row) / reach[i] for i, row in updates.items()}
        for i in updates:
            self.lengths[i] = [*self.lengths.get(i, []), each[i] / median(list(each.values()))]
        limit = median([length(row) for row in updates.values()])
        clipped = {i: [x * min(1.0, limit / length(row)) for x in row] for i, row in updates.items()}
        long = {i: sum(values) / len(values) for i, values in self.lengths.items()}
        most = len(long) // 2 if len(long) >= 4 else 0
        out = above({i: float("inf") if i in self.out else long[i] / LARGE for i in sorted(long)}, most)
        for _ in range(3):
            found = straight(first, sent, clipped, set(long) - out)
            common = median([value for i, value in found.items() if i not in out] or list(found.values()))
            strayed = {}
            for i in sorted(long):
                cosines = [*self.cosines.get(i, []), *([found[i]] if i in found else [])]
                usual = [*self.usual.get(i, []), *([common] if i in found else [])]
                s = sum(cosines) / sum(usual) if sum(usual) > 0 else 1.0
                strayed[i] = max((1.0 - s) / (1.0 - LOW), s / HIGH)
            self.scores = {i: max(strayed[i], long[i] / LARGE) for i in strayed}
            out = above(self.scores, most)
        if classes == 2 or sum(score > 1.0 for score in strayed.values()) > most:
            self.scores = {i: long[i] / LARGE for i in strayed}
            out = above(self.scores, most)
        for i, value in found.items():
            self.cosines[i] = [*self.cosines.get(i, []), value]
            self.usual[i] = [*self.usual.get(i, []), common]
        self.out = out
        return [i for i in updates if i not in out]
