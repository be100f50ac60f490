# `make help` lists what can be done. Everything runs in .venv, which is made on first use.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP_INSTALL := -m pip install -qq --disable-pip-version-check
# Each process that tests imports torch (0.3 GB), so a large machine gets no more than four of them.
PYTEST := $(BIN)/python -m pytest -q -n auto --maxprocesses 4

.DEFAULT_GOAL := help
.PHONY: help demo test slow fuzz torture docs lint format bench pins clean

help: ## List the targets
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r name what; do \
		printf '%-14s%s\n' "$$name" "$$what"; done

demo: $(READY) ## Translate a sentence and look at what the model attended to
	@$(BIN)/regard translate "The black cat ate the mouse." --to fr --show --out black-cat.png
	@echo
	@echo 'Look at black-cat.png. Then try, with $(BIN)/regard:'
	@echo '  regard translate "The black cat ate the mouse." --to hi --show      (fr it de es zh hi mr gu kn ta)'
	@echo '  regard fill "When he saw his owner, the dog was ____ , so he wagged his tail" --show'
	@echo '  regard classify "The food was not good at all."'
	@echo '  regard walk "This is a cat" --score additive                        (every number of an attention)'
	@echo '  regard lookup examples/gpa.csv --key gpa --value salary --query 3.5 --score gaussian:0.1'
	@echo '  regard serve                                                        (all of it, as a page)'

# Test processes run side by side: with one thread each they do not fight over the cores.
test slow fuzz torture: export OMP_NUM_THREADS = 1

test: lint ## Lint, then all tests and docstring examples but the slow ones
	@$(PYTEST)

slow: $(READY) ## The slow tests
	@$(PYTEST) -m slow

fuzz: $(READY) ## The property tests, with many more examples
	@HYPOTHESIS_PROFILE=fuzz $(PYTEST) -m fuzz

torture: $(READY) ## Measure every promise of SECURITY.md, or one: make torture ROW=crash
	@$(BIN)/python -m torture $(ROW)

docs: $(READY) ## Build the gallery, a static site that works offline
	@$(BIN)/python -m docs.build

lint: $(READY) ## Check style, format and types
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/basedpyright

format: $(READY) ## Rewrite the code as `make lint` wants it
	@$(BIN)/ruff check --fix --quiet
	@$(BIN)/ruff format --quiet

bench: $(READY) ## Measure every figure that the README claims
	@if [ -e benchmarks/__main__.py ]; then $(BIN)/python -m benchmarks; else echo 'no benchmarks yet'; fi

# The stamp is written last: an installation that was broken off is taken up again.
# PIP_CONSTRAINT also reaches the environment in which pip builds this package.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("regard needs Python 3.11 or later, this is %d.%d: make PYTHON=python3.11" % sys.version_info[:2])'
	@echo 'installing into $(VENV) (about a minute the first time)'
	@$(PYTHON) -m venv $(VENV)
	@PIP_CONSTRAINT=constraints.txt $(BIN)/python $(PIP_INSTALL) -e '.[dev]'
	@touch $@

# torch and triton are chosen by hand (a free torch would fetch gigabytes of CUDA); the rest is resolved anew.
pins: ## Rewrite constraints.txt with the newest versions that fit
	@$(PYTHON) -m venv --clear build/pins
	@sed '/^#/b; /^torch==/b; /^triton==/b; d' constraints.txt > build/pins/chosen.txt
	@build/pins/bin/python $(PIP_INSTALL) -c build/pins/chosen.txt -e '.[all,dev,triton]' hatchling editables
	@build/pins/bin/python -m pip freeze --all --exclude pip --exclude regard --exclude torch --exclude triton \
		> build/pins/resolved.txt
	@cat build/pins/chosen.txt build/pins/resolved.txt > constraints.txt
	@rm -rf build/pins

clean: ## Remove everything that make made, .venv too
	@rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
	@find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
