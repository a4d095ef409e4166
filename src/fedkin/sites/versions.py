"""What a site keeps to itself in a run, on its own disk: its private slots after each round in which it trained."""

from __future__ import annotations

from pathlib import Path

from fedkin.core import tree
from fedkin.core.tree import Message
from fedkin.errors import BadInput, require
from fedkin.runs import files

NAME = "round-{:06d}.safetensors"


class Versions:
    """The private slots of one run, a file for each round; a file is whole or not there.

    Which version is right is the server's to say: it may go back to its last checkpoint, and a site may have trained in
    a round whose answer never arrived. So older versions are kept until the server says that it needs them no more.
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def rounds(self) -> list[int]:
        """Return the rounds whose slots are there, ascending."""
        return sorted(int(path.stem.rpartition("-")[2]) for path in self.folder.glob("round-*.safetensors"))

    def check(self, round: int) -> None:
        """Refuse to go on from a round whose slots are not there."""
        sentence = f"Nothing is left of round {round} of this run; bring back the site's folder, or start the run anew."
        require(round == 0 or round in self.rounds(), sentence)

    def read(self, round: int, first: Message) -> Message:
        """Return the slots after this round; `first` are those before round 1."""
        if round == 0 or not first:
            return first
        self.check(round)
        try:
            found = files.read_tensors(self.folder / NAME.format(round))
            return {slot: {name: found[f"{slot}/{name}"] for name in model} for slot, model in first.items()}
        except (files.Damaged, KeyError) as error:
            raise BadInput(f"What is left of round {round} of this run is damaged: {error}.") from error

    def write(self, round: int, slots: Message) -> None:
        """Write the slots after this round."""
        files.make_folder(self.folder)
        files.write_tensors(self.folder / NAME.format(round), tree.flat(slots))

    def forget(self, before: int) -> None:
        """Remove the versions of earlier rounds."""
        for round in self.rounds():
            if round < before:
                (self.folder / NAME.format(round)).unlink(missing_ok=True)

    def go_back(self, to: int) -> None:
        """Remove the versions of later rounds, which will be played again."""
        for round in self.rounds():
            if round > to:
                (self.folder / NAME.format(round)).unlink(missing_ok=True)
