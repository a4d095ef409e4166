# `make demo` and `make test` set up everything they need in .venv; the second time they are quick.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint quick bench clean
.DEFAULT_GOAL := demo

demo: .venv/demo
	rm -rf runs/demo
	OMP_NUM_THREADS=1 $(BIN)/fedkin compare fedavg fedprox --data synthetic --model mlr --rounds 200 --seeds 3 --out runs/demo

test: .venv/dev lint
	$(BIN)/python -m pytest

lint: .venv/dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/biome lint --error-on-warnings
	$(BIN)/mypy

bench: .venv/dev
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/speed.py

.venv/torch: constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet $$(grep '^torch==' constraints.txt)
	touch $@

.venv/demo: .venv/torch pyproject.toml
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[report]'
	touch $@

.venv/dev: .venv/demo
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,report]'
	touch $@

clean:
	rm -rf .venv runs build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
