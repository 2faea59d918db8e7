# Each target is one or two commands that a person could type.
# `make test PYTHON=python3.13` chooses the interpreter; it gets an environment of its own.

# Only what is said to make counts, not what the environment calls so: `clean` removes the folders.
PYTHON = python3
VENV = $(if $(filter-out python3,$(PYTHON)),.venv-$(notdir $(PYTHON)),.venv)
BIN := $(VENV)/bin
BUILD = build
SEALED := SPEAD_TUTORIAL_SITE=$(BUILD)/site $(BIN)/python .ci/sealed.py
# One worker more than there are cores, for many tests wait.
JOBS ?= $(shell echo $$(($$(nproc) + 1)))
# With the environment's tools, for commands that call each other by their names.
WITH := PATH="$(abspath $(BIN)):$$PATH"
WORKERS = -n $(JOBS) --maxprocesses 8

SOURCES := pyproject.toml meson.build meson.options $(shell find csrc spead_tutorial -type f \
	-not -name '*.pyc')

.PHONY: help setup tour tour-notebooks tour-site test thorough alone test-c test-python test-pytest test-notebooks notebooks notebooks-refresh docs test-docs packages test-packages test-oldest screenshots figures runs peer bench bench-quick check lint sanitize sanitize-addresses fuzz clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(BIN)/.installed ## make the environment, and build and install into it

$(BIN)/.installed: $(SOURCES)
	@command -v $(PYTHON) >/dev/null || { echo >&2 \
	  "$(PYTHON) is missing: install it, or say make $(MAKECMDGOALS) PYTHON=python3.11 (or newer)"; exit 1; }
	@$(PYTHON) .ci/prerequisites.py $(MAKECMDGOALS)
	$(PYTHON) -m venv $(VENV)
	@echo "Building and installing: a minute or two the first time."
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check '.[test]'
	@# By all cores, which pip does not do, and without what packages have to test themselves. What
	@# this Python cannot compile, nothing imports.
	@$(BIN)/python -m compileall -qq -j 0 -x /tests/ $(VENV)/lib || true
	@touch $@

tour: setup ## every chapter that sends, in Python and in C, in a lab; a table and a page, the notebooks, the site
	$(BIN)/spead-tutorial tour
	@$(MAKE) --jobs=2 tour-notebooks tour-site
	@$(BIN)/spead-tutorial tour --from-record >/dev/null # the page has links to both now

tour-notebooks: setup
	@$(BIN)/python .ci/notebooks.py html results/tour/notebooks

tour-site: setup
	@$(BIN)/sphinx-build -q -j auto -b html -d $(BUILD)/tour-doctrees docs results/tour/site
	@rm -rf results/tour/jupyter_execute # what myst-nb leaves beside a site
	@echo "The site, with the reference machine's records: results/tour/site/index.html"

test: $(BIN)/.browser ## all tests but those that take long: every part is run, also after one has failed
	@trap 'exit 130' INT; failed=0; \
	$(MAKE) --keep-going --jobs=$(JOBS) test-c docs test-notebooks || failed=1; \
	$(MAKE) test-pytest || failed=1; \
	exit $$failed

test-pytest: setup
	$(SEALED) $(BIN)/pytest $(WORKERS) --dist worksteal

notebooks: setup ## open the notebooks in JupyterLab
	$(BIN)/spead-tutorial notebook

notebooks-refresh: setup ## run the notebooks as their sources are, store that, show what changed
	$(BIN)/python .ci/notebooks.py refresh

docs: setup ## build the site, into build/site
	@echo "Building the site: a minute or two."
	rm -rf $(BUILD)/site
	$(BIN)/sphinx-build -E -a -n -W --keep-going -q -j auto -b html -d $(BUILD)/doctrees docs $(BUILD)/site

figures: setup ## draw the committed pictures again from the committed records
	$(BIN)/python -m bench plot -i bench/results -o docs/figures

runs: setup ## run again what the first screens of pages show, and store what it prints
	@for file in docs/examples/runs/*.txt; do read -r _ command <$$file; \
	  { echo "$$ $$command"; $$command 2>/dev/null; } >$$file.new && mv $$file.new $$file || exit 1; done

peer: setup ## build spead2 from its source, to be measured beside the one that pip installs
	rm -rf $(BUILD)/peer && mkdir -p $(BUILD)
	@echo "Building spead2, its Python package and its C++ library: some minutes."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-binary spead2 \
	  --target $(BUILD)/peer "$$($(BIN)/python -m pip freeze | grep ^spead2==)" >$(BUILD)/peer.log 2>&1 \
	  && $(BIN)/python .ci/peer_library.py "$$($(BIN)/python -m pip freeze | sed -n s/^spead2==//p)" $(BUILD)/peer \
	  >>$(BUILD)/peer.log 2>&1 || { echo >&2 \
	  "spead2 could not be built (see $(BUILD)/peer.log): apt install g++ pkg-config libboost-dev libdivide-dev, or the like"; exit 1; }

bench: setup ## measure all sweeps on this machine, and draw them: more than an hour; Ctrl-C and make bench go on
	$(BIN)/python -m bench run --full --plot

bench-quick: setup ## measure chapters 8 to 16 beside spead2 and bare system calls, and draw them: minutes
	$(BIN)/python -m bench run heap-sizes --quick --plot

ASAN := -Db_sanitize=address,undefined -Db_lundef=false # by its name, for it has a comma

# The core by itself, built into a folder with options, and tested; what was skipped says so. Make's
# jobs are not passed on: what is sealed gets none of its descriptors.
define meson-test
$(WITH) meson setup --werror $(if $(wildcard $(1)/build.ninja),--reconfigure) $(2) $(1)
MAKEFLAGS= $(WITH) $(SEALED) meson test -C $(1) --print-errorlogs
@grep -E '^skipped: |# SKIP ' $(1)/meson-logs/testlog.txt || true
endef

test-c: setup
	$(call meson-test,$(BUILD)/c)

test-python: setup
	$(SEALED) $(BIN)/pytest $(WORKERS) --dist worksteal --ignore tests/site/browser

thorough: $(BIN)/.browser ## the tests that make test leaves out: every program in every language, and what takes long
	$(SEALED) $(BIN)/pytest $(WORKERS) --dist worksteal -m thorough

alone: setup ## what why says of senders and receivers that run, and what mending gains: half an hour, on a quiet machine
	$(SEALED) $(BIN)/pytest -m alone

test-notebooks: setup ## the notebooks alone, in quick mode
	$(SEALED) $(BIN)/pytest $(WORKERS) --dist loadfile --nbval --nbval-current-env \
	  --nbval-sanitize-with notebooks/sanitize.cfg notebooks

test-packages: setup ## what pip would get: packed, built, and tried without a compiler
	$(SEALED) $(BIN)/pytest -m "" tests/project/test_packages.py

packages: setup ## the source package and this machine's wheel, into build/packages
	rm -rf $(BUILD)/packages
	$(BIN)/python -P -m build --outdir $(BUILD)/packages

test-oldest: packages ## the wheel beside the oldest of what it asks for: from the network, for Python 3.11 and 3.12
	$(BIN)/python -m venv --clear $(BUILD)/oldest
	$(BUILD)/oldest/bin/pip install --quiet --disable-pip-version-check $(BUILD)/packages/*.whl \
	  $$(sed -n '/^dependencies/,/^]/s/.*"\([^>]*\)>=\([^;"]*\).*",/\1==\2/p' pyproject.toml)
	$(BUILD)/oldest/bin/spead-tutorial run 3
	$(BUILD)/oldest/bin/spead-tutorial tour --tiny --output $(BUILD)/oldest/tour

$(BIN)/.browser: $(BIN)/.installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'spead-tutorial[browser]' && touch $@ \
	  || { echo >&2 "The site is not tried in a browser: Playwright could not be installed."; \
	  test "$$SPEAD_TUTORIAL_BROWSER" != required; }

test-docs: $(BIN)/.browser docs ## the site alone, in a browser
	$(SEALED) $(BIN)/pytest $(WORKERS) --dist worksteal tests/site/browser

screenshots: $(BIN)/.browser ## the README's, of what make tour has left in results/tour
	$(BIN)/python .ci/screenshots.py results/tour docs/screenshots

check: lint sanitize fuzz thorough ## linters, types, sanitizers, fuzzing, the tests that take long

$(BIN)/.checkers: $(BIN)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'spead-tutorial[check]'
	@touch $@

CHECKS := mypy stubtest ruff ruff-format imports clang-format clang-tidy cython-lint codespell workflows readthedocs
CHECKED_C = $(shell find csrc tests/support/senders tests/support/planted_receivers -name '*.[ch]' -o -name '*.[ch]pp')

TIDY_C = -I$(CURDIR)/csrc/include -I$(CURDIR)/csrc/chapters -D_GNU_SOURCE

lint: $(BIN)/.checkers
	@$(WITH) $(MAKE) --keep-going --output-sync --jobs=$$(nproc) $(CHECKS:%=lint-%)

lint-mypy:
	mypy
lint-stubtest: # the only stub, and from elsewhere: not the source folder, but what is installed is checked
	cd $(BIN) && stubtest spead_tutorial._core --mypy-config-file $(CURDIR)/pyproject.toml --allowlist $(CURDIR)/.ci/stubtest_allowlist
lint-ruff:
	ruff check .
lint-ruff-format:
	ruff format --check .
lint-imports: # what may import what: pyproject.toml
	lint-imports
lint-clang-format:
	@clang-format --dry-run --Werror $(CHECKED_C)
lint-clang-tidy: # it comes with the compiler, if at all; .clang-tidy says what it looks for
	@command -v clang-tidy >/dev/null || echo "skipped: clang-tidy is missing: apt install clang-tidy"
	! command -v clang-tidy >/dev/null || clang-tidy --quiet $$(find csrc -name '*.cpp') -- -std=c++20 $(TIDY_C)
	! command -v clang-tidy >/dev/null || clang-tidy --quiet --checks='-*,readability-function-cognitive-complexity' \
	  $$(find csrc -name '*.c') -- -std=c11 -I$(CURDIR)/csrc/src $(TIDY_C)
lint-cython-lint:
	cython-lint --max-line-length 100 $(wildcard spead_tutorial/*.pyx spead_tutorial/*.pxd spead_tutorial/*.pxi)
lint-codespell:
	codespell
lint-workflows:
	check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
lint-readthedocs:
	check-jsonschema --builtin-schema vendor.readthedocs .readthedocs.yaml

sanitize-addresses: setup
	$(call meson-test,$(BUILD)/asan,$(ASAN))

sanitize: sanitize-addresses
	$(call meson-test,$(BUILD)/tsan,-Db_sanitize=thread -Db_lundef=false)
	@echo "A minute of stress under both."
	$(BUILD)/asan/csrc/tests/test_stress 60 & $(BUILD)/tsan/csrc/tests/test_stress 60 && wait $$!

fuzz: $(BIN)/.checkers # from the inputs of csrc/fuzz/corpus on
	$(BIN)/python .ci/fuzz.py $(BUILD)/fuzz 30

clean: ## remove what was built, and the environment
	rm -rf "$(BUILD)" "$(VENV)" docs/notebooks
