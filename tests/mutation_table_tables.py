"""The wrong changes that `mutations.py` tries in what sites tell of their tables, and in what they agree on."""

from __future__ import annotations

from mutation_table import Mutation

SECRETS, AGREED, COLUMNS = "sites/test_secrets.py", "sites/test_table_agreement.py", "sites/test_table_columns.py"
SAME = "sites/test_site_tables.py"

TABLES = [
    Mutation(
        "rare-categories-told",
        '{"categories": frequent, "other": rare > 0}',
        '{"categories": sorted(set(known)), "other": False}',
        f"{SECRETS} {COLUMNS}",
    ),
    Mutation("free-text-told", "if several else ([], len(known))", "if True else ([], 0)", COLUMNS),
    Mutation(
        "raw-values-told",
        '{"varies": bool((known != known[0]).any())',
        '{"varies": bool((known != known[0]).any()), "first": float(known[0])',
        SECRETS,
    ),
    Mutation("a-refusal-quotes-values", "error.told if isinstance(error, Unreadable) else", "", SECRETS),
    Mutation("test-rows-told", "self.rows.frame.iloc[self.rows.parts[0]]", "self.rows.frame", SAME),
    Mutation(
        "union-in-another-order",
        'list(dict.fromkeys(column["name"] for one in told.values() for column in one["columns"]))',
        'sorted({column["name"] for one in told.values() for column in one["columns"]})',
        f"{COLUMNS} {SAME}",
    ),
    Mutation("categories-in-another-order", "return sorted(sites), other", "return sorted(sites)[::-1], other", SAME),
    Mutation(
        "categories-of-one-site",
        "for category in set(one.get(",
        "for category in set(next(iter(told.values())).get(",
        f"{AGREED} {SAME}",
    ),
    Mutation(
        "classes-by-the-site-alone",
        'enumerate(agreed["labels"])',
        "enumerate(sorted(set(map(str, rows.values))))",
        f"{AGREED} -k class",
    ),
    Mutation("class-numbers-as-names", "if labels[0] == 0 and", "if False and", f"{AGREED} -k classes"),
    Mutation("any-kind-fits", 'if one["kind"] != right:', "if False:", f"{AGREED} -k refused"),
    Mutation(
        "lacking-is-not-missing", '{"kind": "empty", "missing": True}\n', '{"kind": "empty", "missing": False}\n', SAME
    ),
    Mutation("division-of-the-seed-alone", "data.seed, name)", 'data.seed, "")', f"{SAME} -k division"),
]
