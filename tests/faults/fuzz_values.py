"""What the fuzzer says for an option: words that fit it, and odd ones that fit nothing."""

from __future__ import annotations

from fedkin.methods import METHODS
from fedkin.metrics import METRICS

Words = tuple[str, ...]

FITTING: dict[str, Words] = {  # by the option; a command of these plays a run that takes a moment
    "--partition": ("iid", "dirichlet:0.5", "classes:2", "shards:2", "natural", "pfedme"),
    "--clients": ("1", "2", "3", "5"),
    "--samples": ("1", "4", "20"),
    "--holdout": ("split", "official"),
    "--test": ("0.25", "0.5"),
    "--validation": ("0", "0.2"),
    "--server-validation": ("0", "5"),
    "--irrelevant": ("flip:0.3", "flip:0.1,0.2", "ood:0.3", "ood:0.3,noise", "odd_even"),
    "--data-seed": ("0", "1"),
    "--client-column": ("client", "x0"),
    "--target-column": ("label", "x1"),
    "--features": ("x0,x1", "x0", "x0,client"),
    "--drop": ("x0", "x0,x1", "label"),
    "--standardise": ("site", "all", "none"),
    "--task": ("classify", "regress"),
    "--rounds": ("1", "2", "3"),
    "--seeds": ("1", "2", "0,5"),
    "--jobs": ("1", "auto"),
    "--out": ("out", "./deep/er/out", "[/x]", "ä ö", "pipe/x", "folder", "file.txt"),
    "--track": ("tensorboard", "mlflow,tensorboard", "wandb"),
    "--export": ("t.csv", "t.tex", "t.md", "t.csv,u.md", "[/x].csv", "no/where/t.csv"),
    "--export-clients": ("c.csv", "c.tex"),
    "--export-pairs": ("p.csv", "p.md"),
    "--data": ("synthetic", "digits", "heart", "./table.csv", "./table.npz", "./table.parquet", "./sites"),
    "--model": ("mlr", "dnn:5", "mlp:4,3", "nets:Good", "nets:Counts"),
    "--engine": ("stacked", "plain"),
    "--evaluate-every": ("1", "2"),
    "--target": ("0.5", "fedavg+0.01", "post:0.9"),
    "--score-clients": ("1", "2"),
    "--splits": ("1", "2"),
    "--data-seeds": ("1", "2"),
    "--score": ("global,test", "post", "recv"),
    "--metric": tuple(METRICS),
    "--class-weights": ("balanced",),
    "--dp": ("clip=1.0,noise=0.8", "clip=1.0,noise=0.8,delta=1e-5", "clip=1,noise=1,losses=true"),
    "--threads": ("1", "2"),
    "--chunk": ("1", "2"),
    "--memory": ("1KB", "2GB", "0"),
    "--device": ("cpu", "cuda"),
    "--save": ("saved.toml", "saved.json", "folder/saved.toml"),
    "--space": ("eta=0.1,0.2", "train.steps=1..3", "train.eta=0.01..0.1:log"),
    "--trials": ("1", "2"),
    "--average": ("macro", "micro"),
    "--search-seed": ("0", "3"),
    "--client": ("0", "1", "north", "client 1"),
    "--method": ("fedavg", "local"),
    "--seed": ("0", "1"),
    "--name": ("new", "[/x]", ".."),
    "--port": ("0", "8422", "65535"),
    "--without": ("0", "client 1", "north"),
    "--scale": ("small", "full"),
    "--only": ("*", "Syn*", "["),
    "--results": ("results",),
    "--sites": ("a,b", "berlin,paris,rome"),
    "--address": ("127.0.0.1:9443", "example.org:1", "[::1]:9443"),
    "--set": (
        "eta=0.05",
        "train.steps=2",
        "batch=3",
        "select.count=2",
        "keep=Relevance",
        "train=Scaffold",
        "train=Prox",
        "collaborate=Control",
        "collaborate=Median",
        "select=Uniform",
        "keep=Krum",
        "name=mine",
        "train.epochs=1",
    ),
}
COUNTS = ("0", "-1", "1.5", "1e3", "abc", "nan", "7", " 3 ", "3_0", "0x10", "３", "-0", "1" * 5000)
COUNTS += tuple(str(many) for many in (10**8, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, 10**20, 10**400))
SHARES = ("nan", "inf", "-inf", "1e308", "1e-320", "-0.0", "1", "1.0000001", "-0.5", "0.999999999", "2", "1e400", "x")
SCRIPT = "<script>alert(1)</script>"
TEXTS = ("", " ", "..", ".", "-", "[/x]", "[bold red]x[/]", "a\0b", "\ud800", "\udcff\udcfe", "\u202eevil", "x" * 300)
TEXTS += (
    "x" * 10_000,
    "\n",
    "a\nb",
    "{}",
    "{0.__class__}",
    "%s%n",
    "$HOME",
    SCRIPT,
    ":",
    "::",
    "a:b:c",
    "@",
    "a@",
    "=",
)
TEXTS += ("a=b=c", ",", ",,", "0,", "🦊", "\x1b[31mred", "None", "null", "[]", "[" * 5000, '{"a":' * 500, "9" * 400)
TEXTS += ("*" * 50, "((((", "[!a]", "**/*", "nan", "1e400", "True", "é", "ﬁ", "0", "-1", "dirichlet:nan", "dirichlet:0")
TEXTS += ("dirichlet:-1", "dirichlet:1e-300", "classes:0", "classes:99", "shards:99999", "flip:2", "flip:nan", "flip:")
TEXTS += ("ood:1", "clip=0,noise=1", "clip=nan,noise=1", "clip=1", "noise=1e308,clip=1e308", "clip=1,clip=2", "1TB")
TEXTS += ("-1GB", "1e30GB", "cuda:99", "meta", "mps", "post:nan", "fedavg+", "local+1e400", "global,global", "dnn:0")
TEXTS += ("dnn:99999999999999", "mlp:9999999999,9999999999", "dnn:5,5", "dnn:x", "cnn", "lstm", "vgg11", "lenet:9")
PLACES = ("~nouser", "~nouser/x.csv", "/dev/zero", "/proc/x", "/proc/self/mem", "./pipe", "./pipe.csv", "./pipe.json")
PLACES += ("./folder", "./folder.csv", "./empty.csv", "./empty.npz", "./empty.json", "./nothing.csv", "file.txt/x")
PLACES += (
    "./" + "x" * 300 + ".csv",
    "./" + "d/" * 3000,
    "./loop.csv",
    "./sites/../../outside/kept.csv",
    "file:///x.csv",
)
PLACES += ("http://127.0.0.1:1/x.csv", "hf://x/y", "s3://x", "./deep.json", "./deep.toml", "./\udcff.csv", "./[/x].csv")
MODULES = ("raises:A", "exits:A", "syntax:A", "nets:Lazy", "nets:Raises", "nets:Exits", "nets:Branches", "nets:Nan")
MODULES += (
    "nets:Texts",
    "nets:Wrong",
    "nets:",
    "nets:Nope",
    ":Class",
    ".m:Good",
    "builtins:dict",
    "os:abort",
    "os:_exit",
)
MODULES += ("nets:five", "torch.nn:Linear", "deeper.nets:A", "raises:f", "nets:method", "nets:Huge", "nets:Deep")
SETTINGS = ("batch=1e30", f"batch={10**20}", f"steps={10**20}", "eta=1e308", "eta=nan", f"eta={10**400}", "epochs=1e11")
SETTINGS += ("eta=[1]", 'eta={"a":1}', "eta=" + "[" * 5000, "=1", "", "name=..", "name=a/b", "name=summary.json", "eta")
SETTINGS += (
    "train=Nope",
    "train=raises:A",
    "train=nets:Part",
    "keep=Mean",
    "select.count=0",
    "select.count=999999999999",
)
SETTINGS += (
    "train.nope=1",
    "a.b.c.d=1",
    "eta=-1",
    "lam=1e38",
    "momentum=2",
    "name=" + "x" * 10_000,
    "name=con",
    "eta=true",
)
SPACES = ("eta", "eta=", "eta=a..b", "eta=0..1:log", "eta=1..1e30", "x=1,2", "eta=nan,1", "eta=1..0", "eta=0.1..nan")
METHOD_WORDS = (*METHODS, "fedavg@eta=0.1", "fedprox@train.lam=0.1,1", "fedavg@batch=3@steps=2", "experiment.json")
ODD_METHODS = ("fedavg@", "fedavg@x", "fedavg@eta=1,nan", "fedavg@@", "@eta=1", "x.json", "fedavg@name=..", "FedAvg")
ODD_METHODS += (
    "experiment.toml",
    "odd.json",
    "odd.toml",
    "deep.json",
    "deep.toml",
    "pipe.json",
    "folder.json",
    "nets:method",
)
ODD_METHODS += ("fedavg@eta=" + ",".join(["0.1"] * 3000), "fedprox@lam=1,1", "latin.toml")


def pools_of(option: str, kind: str) -> list[Words]:
    """Return words that hardly fit an option which takes values of this kind, in groups that are drawn alike."""
    if option == "--rounds":  # a run of many rounds is a long one, and no mistake
        return [tuple(text for text in COUNTS if len(text) < 5 or len(text) > 19)]
    of_kind = {"integer": [COUNTS], "float": [SHARES]}.get(kind, [TEXTS])
    mine = {
        "--data": [PLACES],
        "--model": [MODULES, TEXTS],
        "--set": [SETTINGS, tuple(f"train.{text}" for text in SETTINGS)],
        "--seeds": [(*COUNTS, f"0,{10**25}", "1,1")],
        "--jobs": [COUNTS],
        "--memory": [SHARES, TEXTS],
        "--target": [SHARES, TEXTS],
        "--space": [SPACES],
    }
    return mine.get(option, of_kind)
