"""The wrong changes that `mutations.py` tries in what many clients need: rows in files, samples, sites at once."""

from __future__ import annotations

from mutation_table import Mutation

STORE, ROWS = "core/test_store.py", "runs/test_segments.py"
SETUP, MARKS = "runs/test_setup.py", "engines/test_handing_over.py"
SAMPLE, SITES = "runs/test_score_clients.py", "data/test_many_clients.py"

SCALE = [
    Mutation("rows-beyond-the-budget", "self.room = min(n, budget // self.bytes)", "self.room = n", STORE),
    Mutation("row-twice", "new = who[self.place[who] < 0]", "new = who", STORE),
    Mutation("rows-read-together-that-are-apart", "| (np.diff(at) != 1)", "", f"{STORE} {ROWS}"),
    Mutation("row-not-checked", "if not self.sealed.trusted[client]:", "if False:", f"{ROWS} -k refused"),
    Mutation("new-rows-not-checked", 'if one["file"] not in older:', "if False:", f"{ROWS} -k falls"),
    Mutation("head-not-checked", 'if head != about["checksum"] or', "if", f"{ROWS} -k falls"),
    Mutation("segment-gone-too-early", "if path.name not in needed:", "if True:", f"{ROWS} -k falls or resumed"),
    Mutation("segments-for-ever", "if path.name not in needed:", "if False:", f"{ROWS} -k nobody"),
    Mutation(
        "worn-rows-lost", "kept = np.isin(gone, stay)", "kept = gone >= len(segments)", f"{ROWS} -k nobody or resumed"
    ),
    Mutation("everything-is-written", "return np.flatnonzero(self.place >= 0)", "return np.arange(self.n)", ROWS),
    Mutation("large-format-unsaid", "write_format(self.path, SEGMENTED)", "write_format(self.path)", ROWS),
    Mutation("pieces-at-the-wrong-place", "places[name] + done *", "places[name] + 0 *", f"{ROWS} -k pieces"),
    Mutation("too-little-memory", "given == 0 or given >= need", "True", "runs/test_memory.py"),
    Mutation("sample-by-nothing", 'generator(seed, "score clients")', 'generator(0, "score clients")', SAMPLE),
    Mutation(
        "others-have-a-score",
        "torch.full((n,), torch.nan, dtype=torch.float64) for name in values",
        "torch.zeros(n, dtype=torch.float64) for name in values",
        SAMPLE,
    ),
    Mutation("sample-unsaid", '"scored": said} if', '"scored": said} if False and', SAMPLE),
    Mutation("chunk-measured-anew", 'chunk=experiment.chunk or then.get("chunk")', "chunk=experiment.chunk", SETUP),
    Mutation("cadence-by-measured-chunk", "task, kinds, usual, tested", "task, kinds, chunk, tested", SETUP),
    Mutation("marks-for-all", "isinstance(leaf, Mark) for leaf in leaves(found)", "True for _ in leaves(found)", MARKS),
    Mutation("lent-memory-kept", "if not lent and torch.equal", "if torch.equal", "engines/test_crew.py"),
    Mutation("short-batches-unseen", "if work.full[number] < last or", "if", "equivalence/test_engines_agree.py"),
    Mutation("gradient-of-a-sum", "scale *= share(batch)", "scale *= 1.0", "engines/test_fused.py"),
    Mutation("second-measurement-wins", "answer = remembered(file) or answer", "pass", "engines/test_measured.py"),
    Mutation(
        "times-of-all-clients",
        "(perf_counter() - start) / clients",
        "perf_counter() - start",
        "engines/test_measured.py",
    ),
    Mutation("rounding-uncorrected", "(apart.sum(2) - rounding**2 / k) / k", "apart.sum(2) / k", SITES),
    Mutation("empty-site-unfilled", "numbers[empty] = np.broadcast_to", "numbers[:0] = np.broadcast_to", SITES),
]
