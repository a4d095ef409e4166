# `make demo` and `make test` set up everything they need in .venv; the second time they are quick.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint quick bench picture pages figures speed fuzz soak reliability lock audit dist clean clean-logs
.DEFAULT_GOAL := demo

# Two federations in which joining pays for most: four real hospitals with fifteen patients each to learn from, and twelve
# writers of digits of whom two have wrong labels.
METHODS := fedavg fedmcsa fedacs adafl pfedre
BUDGET := --rounds 20 --set eta=0.05 --set train.steps=5 --set batch=10 --jobs auto
HOSPITALS := --data heart --drop slope,ca,thal --samples 15 --test 0.5 --splits 10 --metric auc --set collaborate.p=0.25
WRITERS := --data digits --clients 12 --partition dirichlet:5 --samples 40 --irrelevant flip:0.17 --splits 5 --set collaborate.p=0.75

demo: .venv/demo
	rm -rf runs/demo
	OMP_NUM_THREADS=1 $(BIN)/fedkin compare $(METHODS) $(HOSPITALS) $(BUDGET) --out runs/demo/hospitals
	OMP_NUM_THREADS=1 $(BIN)/fedkin compare $(METHODS) $(WRITERS) $(BUDGET) --out runs/demo/writers

# the README's picture: the first screen of the hospitals' report
picture: .venv/dev demo
	$(BIN)/python docs/picture.py runs/demo/hospitals/report.html docs/report.png

# the results of the papers' tables and figures in docs/papers, from docs/results
pages: .venv/demo
	$(BIN)/python -m fedkin.reproduce.pages

# the measurements of speed in docs/speed.md and their picture, from docs/results/speed
speed: .venv/demo
	$(BIN)/python docs/speed_page.py

# pictures of the figures among these results, in Chromium
figures: .venv/dev
	$(BIN)/python docs/figures.py

test: .venv/dev lint
	$(BIN)/python -m pytest

lint: .venv/dev
	$(BIN)/ruff check src tests benchmarks docs examples
	$(BIN)/ruff format --check src tests benchmarks docs examples
	$(BIN)/biome lint --error-on-warnings
	$(BIN)/mypy

bench: .venv/dev
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/speed.py

# what `make test` plays a part of: odd commands (half an hour) and kills, damage, full disks and long runs (an hour and a half).
# A log that is there is gone on with; `make clean-logs` begins anew.
LOGS := docs/results/reliability
FAULTS := OMP_NUM_THREADS=1 $(BIN)/python tests/faults

fuzz: .venv/dev
	$(FAULTS)/fuzz.py --cases 5000 --seed 15 --log $(LOGS)/fuzz.jsonl

soak: .venv/dev
	$(FAULTS)/kills.py --kills 200 --others 24 --log $(LOGS)/kills.jsonl
	$(FAULTS)/damage.py --log $(LOGS)/damage.jsonl
	$(FAULTS)/full_disk.py --log $(LOGS)/full-disk.jsonl
	$(FAULTS)/long_run.py --log $(LOGS)/long.jsonl

clean-logs:
	rm -rf $(LOGS)

# docs/reliability.md from these logs
reliability: .venv/demo
	$(BIN)/python docs/reliability_page.py

.venv/torch: constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet $$(grep '^torch==' constraints.txt)
	touch $@

.venv/demo: .venv/torch pyproject.toml
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[report]'
	touch $@

# Everything that tests need, each file checked against requirements.lock, but for torch: which build of it is right
# depends on the machine (with CUDA or without), and so does its check sum.
.venv/dev: .venv/torch pyproject.toml requirements.lock
	$(BIN)/pip install --quiet --no-deps --require-hashes --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch .venv/demo $@

# requirements.lock, after a change of constraints.txt or pyproject.toml
lock: .venv/dev
	echo "torch ; python_version < '3'" | $(BIN)/uv pip compile pyproject.toml --quiet --extra dev --extra report \
	  --constraint constraints.txt --override /dev/stdin --universal --python-version 3.11 --generate-hashes \
	  --no-annotate --custom-compile-command 'make lock' --output-file requirements.lock

# known weaknesses of what is locked; needs a network
audit: .venv/dev
	$(BIN)/python .ci/audit.py

# what a release has, built from what is locked
dist: .venv/dev
	rm -rf dist
	$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist

clean:
	rm -rf .venv runs build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
