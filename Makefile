# Most people need only `make demo` and `make test`. `make help` lists all commands.
# Everything runs in a separate environment (VENV, default .venv), built from pyproject.toml and constraints.txt.

VENV ?= .venv
PYTHON ?=
PY := $(VENV)/bin/python
INPUTS := pyproject.toml constraints.txt tools/environment.sh
unexport PYTHONDONTWRITEBYTECODE # some containers set it, which makes every process compile every module again
DEMO_FLAGS ?=
EXTRAS ?=
PYTEST_FLAGS ?=
DATA ?=
ADVISORIES ?=
# Number of test processes: one more than two cores, since tests of browsers and servers mostly wait.
WORKERS ?= 3
SUMMARY ?=
# Every worker and server of the tests is a process, and without compiled modules on disk each would compile them again.
unexport PYTHONDONTWRITEBYTECODE
PARALLEL = -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help demo serve test test-fast test-core test-dspy test-local test-servers test-tools test-deploy soak coverage docs lint format typecheck vulnerabilities sbom benchmark screenshots browser clean

help: ## List the commands
	@grep -E '^[a-z -]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

demo: $(VENV)/.installed-run ## Load the demo cases and open the workbench on 127.0.0.1:8501 (or the next free port)
	@$(VENV)/bin/masis demo $(DEMO_FLAGS)

serve: $(VENV)/.installed-run ## Open the workbench on your own database
	@$(VENV)/bin/masis serve $(DEMO_FLAGS)

test: $(VENV)/.installed-test $(VENV)/.browser ## Run every test (those of DSPy in a separate environment)
	@$(PY) tools/every_test.py --venv "$(VENV)" --python "$(PYTHON)" --workers "$(WORKERS)" $(if $(SUMMARY),--summary "$(SUMMARY)") -- $(PYTEST_FLAGS)

test-fast: $(VENV)/.installed-test ## Run the tests that are fast and need no browser or page (under 60 s)
	@$(PY) -m pytest $(PARALLEL) --ignore=tests/browser --ignore-glob='*/with_*' -m "not browser and not apptest and not slow and not soak" $(PYTEST_FLAGS)

test-core: $(VENV)/.installed-test $(VENV)/.browser ## Run every test except those of DSPy
	@$(PY) -m pytest $(PARALLEL) $(PYTEST_FLAGS)

test-dspy test-local: test-%: $(VENV)/.installed-test ## Run the tests of DSPy, or of verifier models in PyTorch, in a separate environment
	@$(PY) tools/every_test.py --venv "$(VENV)" --python "$(PYTHON)" --without-core --extra $* -- $(PYTEST_FLAGS)

test-servers: $(VENV)/.installed-test ## Run audits through llama.cpp's, llama-cpp-python's and LiteLLM's servers (installs them)
	@$(PY) tools/model_servers.py $(VENV)-servers
	@MASIS_SERVERS=$(VENV)-servers $(PY) -m pytest tests/servers $(if $(DATA),--data "$(DATA)") $(PYTEST_FLAGS)

test-tools: $(VENV)/.installed-test ## Read files that other tools' libraries write, and load exports with their loaders (installs them)
	@$(PY) -m venv $(VENV)-tools && $(VENV)-tools/bin/python -m pip install -q -r tests/tools_lane/requirements.txt -r constraints/release.txt
	@$(VENV)-tools/bin/python -m pip install -q --no-deps -r tests/tools_lane/requirements-alone.txt
	@MASIS_TOOLS=$(abspath $(VENV)-tools)/bin/python $(PY) -m pytest tests/tools_lane $(PYTEST_FLAGS)

test-deploy: $(VENV)/.installed-test $(VENV)/.browser ## Test the setup in deploy/ behind the real nginx (downloads Debian's packages of nginx and Caddy)
	@mkdir -p $(VENV)-deploy && cd $(VENV)-deploy && apt-get download -q nginx caddy && for each in *.deb; do dpkg -x "$$each" . || exit 1; done
	@MASIS_DEPLOY=$(abspath $(VENV)-deploy) $(PY) -m pytest tests/deploy $(PYTEST_FLAGS)

soak: $(VENV)/.installed-test $(VENV)/.browser ## Run the long trials at their full length (hours; DATA=FOLDER adds public data)
	@$(PY) -m pytest -m soak --soak $(if $(DATA),--data "$(DATA)") $(PYTEST_FLAGS)

coverage: $(VENV)/.installed-dev $(VENV)/.browser ## Measure test coverage: prints a table and writes pages to htmlcov/
	@$(PY) -m pytest $(PARALLEL) --cov --cov-report=term:skip-covered --cov-report=html $(PYTEST_FLAGS)

docs: $(VENV)/.installed-dev ## Build the docs as a site in build/docs; warnings are errors
	@$(PY) -m sphinx -W --keep-going -q docs build/docs
	@echo "build/docs/index.html"

lint: $(VENV)/.installed-dev ## Check the style of Python and JavaScript
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) tools/lint_javascript.py
	@$(PY) tools/plain_english.py

format: $(VENV)/.installed-dev ## Fix the style
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .
	@$(VENV)/bin/oxfmt masis/ui/components

typecheck: $(VENV)/.installed-dev ## Check types in strict mode
	@$(PY) -m mypy

vulnerabilities: $(VENV)-release/.installed ## Check the pinned versions for known vulnerabilities (needs a network; ADVISORIES=URL names a mirror of OSV)
	@$(VENV)-release/bin/python tools/vulnerabilities.py $(if $(ADVISORIES),--advisories "$(ADVISORIES)")

sbom: $(VENV)-release/.installed ## Write the list of what a release contains (CycloneDX) to build/sbom.json
	@sh tools/environment.sh "$(VENV)-sbom" "." "$(PYTHON)"
	@mkdir -p build
	@$(VENV)-release/bin/cyclonedx-py environment $(VENV)-sbom --pyproject pyproject.toml --output-reproducible -o build/sbom.json
	@echo "build/sbom.json"

benchmark: $(VENV)/.installed-dev ## Measure: startup, throughput, citation engine, store
	@for script in benchmarks/*.py; do echo "== $$script"; $(PY) "$$script" || exit 1; done

screenshots: $(VENV)/.installed-test $(VENV)/.browser ## Save every page, light and dark, 1440 and 900 pixels wide, to screenshots/
	@$(PY) tools/screenshots.py

browser: $(VENV)/.installed-test ## Search for a browser again (after installing one)
	@rm -f $(VENV)/.browser && $(MAKE) --no-print-directory $(VENV)/.browser

clean: ## Remove the environment and temporary files of tools
	rm -rf $(VENV) $(VENV)-extras $(VENV)-servers $(VENV)-deploy $(VENV)-release $(VENV)-sbom build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* htmlcov

$(VENV)-release/.installed: constraints/release.txt | $(VENV)/.installed-run
	@$(PY) -m venv $(VENV)-release
	@$(VENV)-release/bin/python -m pip install -q -r constraints/release.txt && touch $@

$(VENV)/.installed-run: $(INPUTS)
	@sh tools/environment.sh "$(VENV)" "." "$(PYTHON)" && touch $@

$(VENV)/.installed-test: $(INPUTS)
	@sh tools/environment.sh "$(VENV)" ".[test]" "$(PYTHON)" && touch $@ $(VENV)/.installed-run

$(VENV)/.installed-dev: $(INPUTS)
	@sh tools/environment.sh "$(VENV)" ".[dev]" "$(PYTHON)" && touch $@ $(VENV)/.installed-run $(VENV)/.installed-test

$(VENV)/.browser: | $(VENV)/.installed-test
	@$(PY) tools/browser.py && touch $@
