# What a person wants to do with nodectl, one target each. `make demo` and `make test` do all the set-up themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LAB := .nodectl/lab
# SkyPilot and the schemas of Kubernetes, which the tests of the handoff ask: too many dependencies to share an environment with.
CONSUMERS := .nodectl/consumers

# Debian packages the lab needs on this machine, and those that only the tests need. The one place where they are listed.
DEMO_PACKAGES := python3-venv debootstrap systemd-container openssh-client iproute2 util-linux e2fsprogs xfsprogs fuse3 debian-archive-keyring ca-certificates
TEST_PACKAGES := $(DEMO_PACKAGES) git openssh-server sudo fio busybox zsh tcsh fish chromium slurmctld slurmd slurm-client munge openmpi-bin rsync
# A kubectl from elsewhere does as well, and Debian's could not be installed beside it.
TEST_PACKAGES += $(if $(shell command -v kubectl),,kubernetes-client)

# What guests need beside that.
GUEST_PACKAGES := $(DEMO_PACKAGES) qemu-system-x86 qemu-utils kmod

# The torch to rehearse with: a CPU build that installs in a minute. A range resolves to a CUDA build of several GB.
TORCH := torch==2.13.0 numpy

# Tests look for ansible and rclone where a person would: on the PATH.
WITH_TOOLS := PATH="$(CURDIR)/$(BIN):$$PATH"

.PHONY: help demo test test-again test-fast test-guests lint docs clean prepare-demo prepare-test prepare-guests

help:
	@echo "make demo       start a lab of three hosts, bootstrap them, train on what was handed off (root)"
	@echo "make test       the whole suite, lab included (root)"
	@echo "make test-again only what failed last"
	@echo "make test-fast  the tests that need no lab and no servers, in under a minute"
	@echo "make test-guests  what needs a kernel, disks and an HCA of its own: qemu guests (root; the first time builds their image, 2 to 4 minutes)"
	@echo "make lint       ruff and mypy"
	@echo "make docs       write the generated pages under docs/modules"
	@echo "make clean      stop the lab; remove its caches, the virtual environment and all caches of tools"

demo: prepare-demo
	@.ci/demo "$(BIN)" "$(LAB)"

# Two workers, each with a lab of its own: lab tests mostly wait. Those that measure have the machine to themselves (mark `alone`).
# In the order of the folders, because the files with the fewest tests are not the shortest ones.
test: prepare-test
	$(WITH_TOOLS) $(BIN)/python -m pytest -m "not guest" -n 2 --dist loadfile --no-loadscope-reorder

test-guests: prepare-guests
	$(WITH_TOOLS) $(BIN)/python -m pytest -m guest

test-again: $(VENV)/.test
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none

test-fast: $(VENV)/.test
	$(WITH_TOOLS) $(BIN)/python -m pytest -m "not lab and not servers and not guest" -n auto --dist loadfile

lint: $(VENV)/.test
	$(BIN)/python -m ruff check nodectl tests
	$(BIN)/python -m mypy

docs: $(VENV)/.test
	$(BIN)/nodectl doc --all --out docs/modules

prepare-demo:
	@PYTHON="$(PYTHON)" .ci/prepare $(DEMO_PACKAGES)
	@$(MAKE) --no-print-directory $(VENV)/.demo

prepare-test:
	@PYTHON="$(PYTHON)" .ci/prepare $(TEST_PACKAGES)
	@$(MAKE) --no-print-directory $(VENV)/.test $(CONSUMERS)/.made

prepare-guests:
	@PYTHON="$(PYTHON)" .ci/prepare $(GUEST_PACKAGES)
	@$(MAKE) --no-print-directory $(VENV)/.test

$(CONSUMERS)/.made: tests/handoff/consumers.txt
	$(PYTHON) -m venv $(CONSUMERS)
	$(CONSUMERS)/bin/python -m pip install -q --disable-pip-version-check -r tests/handoff/consumers.txt
	@touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check $(TORCH) -e ".[torch,lab]"
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check $(TORCH) -e ".[torch,lab,test]"
	@touch $@ $(VENV)/.demo

clean:
	@.ci/clean "$(BIN)" "$(LAB)"
