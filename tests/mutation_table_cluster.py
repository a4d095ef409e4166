"""The wrong changes that `mutations.py` tries in the engine `ray`, in runs on Ray, and in what faults are told by."""

from __future__ import annotations

from mutation_table import Mutation

ACTORS, AGREES = "engines/test_actors.py", "equivalence/test_ray_agrees.py"
FAILURES, CONNECTION, JOBS = "engines/test_failures.py", "engines/test_connection.py", "comparison/test_on_ray.py"
SHORT, LIFTING = "engines/test_short_of_memory.py", "engines/test_lifting.py"

CLUSTER = [
    # whose clients, and what travels
    Mutation("smallest-first", "np.argsort(-costs, kind", "np.argsort(costs, kind", f"{ACTORS} -k divided"),
    Mutation("batches-by-place", "numbers=ids if self.numbers is None", "numbers=None if self.numbers is None", AGREES),
    Mutation("sums-of-other-clients", "shares = share[self.order.argsort()]", "shares = share", f"{AGREES} -k mean"),
    Mutation("uploads-in-the-actors-order", "order = every.argsort()", "order = torch.arange(len(every))", AGREES),
    Mutation("all-uploads-move", 'if "upload" in self.__dict__:', "if self.upload:", f"{AGREES} -k mean"),
    Mutation(
        "no-tensor-without-axes", "value.detach().cpu().contiguous().numpy()", "np.ascontiguousarray(value)", ACTORS
    ),
    Mutation("letters-to-everybody", "at = (self.owner[sent.ids] == member)", "at = (sent.ids >= 0)", AGREES),
    Mutation("another-way-of-convolving", "self.engine = Share(", "self.engine = Stacked(", f"{ACTORS} -k convolves"),
    # what becomes of an actor that ended
    Mutation(
        "slots-forgotten", "member.begun.append(actor.restore.remote(*member.changes))", "pass", f"{ACTORS} -k middle"
    ),
    Mutation(
        "older-slots-forgotten", "member.changes.append(change)", "member.changes = [change]", f"{ACTORS} -k some"
    ),
    Mutation("slots-kept-for-ever", "if member.changed > 2 * len(member.ids):", "if False:", f"{ACTORS} -k some"),
    Mutation("pool-forgotten", "member.begun.append(actor.take_pool.remote(*self.pool))", "pass", f"{ACTORS} -k pool"),
    Mutation("chunk-not-halved", "= at_once // 2, True", "= at_once, True", f"{ACTORS} -k twice"),
    Mutation("killed-for-memory-is-unknown", ", ray.exceptions.OutOfMemoryError", "", FAILURES),
    Mutation("lost-machine-untold", "isinstance(cause, errors.ObjectLostError)", "False", FAILURES),
    Mutation("input-taken-for-memory", "and not isinstance(cause, BadInput)", "", FAILURES),
    Mutation("memory-of-helpers", "if not isinstance(error, Lost) and not short_of_memory(error):", "if error:", SHORT),
    Mutation("memory-beside-helpers", "self.chunk = max(1, len(chunk) // 2)", "self.chunk = len(chunk)", SHORT),
    # the connection
    Mutation("a-connection-a-run", "stack = KEPT[-1] if KEPT else own", "stack = own", f"{CONNECTION} -k several"),
    Mutation("here-is-elsewhere", 'os.environ.pop("RAY_ADDRESS", None)', 'os.environ.get("RAY_ADDRESS")', CONNECTION),
    Mutation("open-door", "with only_here(ray) if here else nullcontext():", "with nullcontext():", CONNECTION),
    Mutation("client-address", '"/" not in host and', "", f"{CONNECTION} -k cluster"),
    Mutation("closed-door-untold", '"Unauthenticated" in said or', "", f"{CONNECTION} -k lets"),
    Mutation(
        "no-ray-is-an-error", "except ImportError as error:", "except KeyError as error:", f"{CONNECTION} -k without"
    ),
    # runs on Ray
    Mutation(
        "word-to-stop-unheard", "self.stopped = self.stopped or stop return said", "return said", f"{JOBS} -k stop"
    ),
    Mutation("folder-of-another-machine", "if not around.is_dir():", "if False:", f"{JOBS} -k folder"),
    Mutation(
        "killed-run-unnoticed",
        'self.killed.append(f"The process of {one.name}',
        '[].append(f"The process of {one.name}',
        f"{JOBS} -k killed",
    ),
    # one sentence
    Mutation("lifted-all-the-same", "vmap(f) if self.unlifted is None else looped(f)", "vmap(f)", LIFTING),
    Mutation("layer-around-the-layer", "return inside[-1] if inside", "return inside[0] if inside", LIFTING),
    Mutation(
        "sample-unsaid-in-csv", "assign(scored=scored) if scored", "assign() if scored", "runs/test_score_clients.py"
    ),
    Mutation("device-beyond-the-last", "there = (device.index or 0) < number", "there = True", "runs/test_device.py"),
    Mutation(
        "start-of-actors-twice", "self.seconds[NETWORK] - startup", "self.seconds[NETWORK]", "runs/test_profile.py"
    ),
]
