# On a fresh clone every target makes what it needs: `make test` alone is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install test browser check docs course notebooks demo torture bench dist onnxruntime clean

install: $(STAMP)
	$(BIN)/elmokit info en

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet -c constraints.txt --editable ".[chinese,languages,parquet,static,search,hub,onnx,plots,tensorboard,serve,pandas,dask,sklearn,spacy,sentence-transformers]" --group dev --group docs
	touch $(STAMP)

test: $(STAMP) browser
	$(BIN)/pytest -n 2 --dist worksteal

# Chromium and Chinese fonts for the tests of pages, where they are missing and can be had; else these tests are skipped.
browser:
	@command -v chromium > /dev/null || command -v google-chrome > /dev/null || [ "$$(id -u)" != 0 ] \
	|| ! command -v apt-get > /dev/null || { apt-get -qq update && DEBIAN_FRONTEND=noninteractive \
	apt-get -qq install -y --no-install-recommends chromium fonts-noto-cjk; } > /dev/null 2>&1 || true

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site, in build/site: it opens from the disk. Any warning is an error.
docs: $(STAMP)
	$(BIN)/python -m zensical build --strict --clean

# What the course prints and shows, anew from real runs: after a change of the bundled models.
course: $(STAMP)
	$(BIN)/python benchmarks/course.py outputs
	$(BIN)/python benchmarks/course_pictures.py

notebooks: $(STAMP)
	$(BIN)/python benchmarks/course.py notebooks

demo: $(STAMP)
	$(BIN)/elmokit demo

# Damaged files, kills, full disks and the like, for MINUTES; as root it mounts small disks of its own.
MINUTES ?= 10
torture: $(STAMP)
	cd tests && OMP_NUM_THREADS=1 ../$(BIN)/python -m torture --minutes $(MINUTES)

bench: $(STAMP)
	$(BIN)/python benchmarks/inference.py

# What is published: both files are checked as the package index would, and the wheel for what does not belong into it.
dist: $(STAMP)
	rm -rf dist
	$(BIN)/python -m hatchling build
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

# The files of onnxruntime-web that `elmokit export-page` puts into a page.
ONNXRUNTIME := src/elmokit/serve/onnxruntime
onnxruntime:
	npm pack --silent --pack-destination $(ONNXRUNTIME) onnxruntime-web@1.30.0
	for file in ort.wasm.bundle.min.mjs ort-wasm-simd-threaded.wasm; do \
	  tar -xzOf $(ONNXRUNTIME)/onnxruntime-web-*.tgz package/dist/$$file | xz -9e > $(ONNXRUNTIME)/$$file.xz; done
	rm $(ONNXRUNTIME)/onnxruntime-web-*.tgz

clean:
	rm -rf $(VENV) dist build .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
