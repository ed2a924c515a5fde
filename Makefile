# On a fresh clone every target makes what it needs: `make test` alone is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install test check demo torture bench wheel clean

install: $(STAMP)
	$(BIN)/elmokit info en

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet -c constraints.txt --editable ".[chinese,languages,parquet,static,search,hub,onnx,plots,tensorboard,serve,pandas,sklearn,spacy,sentence-transformers]" --group dev
	touch $(STAMP)

test: $(STAMP)
	$(BIN)/pytest -n 2 --dist worksteal

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

demo: $(STAMP)
	$(BIN)/elmokit demo

# Damaged files, kills, full disks and the like, for MINUTES; as root it mounts small disks of its own.
MINUTES ?= 10
torture: $(STAMP)
	cd tests && OMP_NUM_THREADS=1 ../$(BIN)/python -m torture --minutes $(MINUTES)

bench: $(STAMP)
	$(BIN)/python benchmarks/inference.py

wheel: $(STAMP)
	$(BIN)/python -m hatchling build -t wheel

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
