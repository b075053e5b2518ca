# SPDX-License-Identifier: MIT
# A short front to Meson. `make` builds build/weft.
BUILD ?= build
# Options of `meson setup`, for instance -Dwerror=true.
MESON ?=
QUIET ?=

all: $(BUILD)/build.ninja
	ninja $(QUIET) -C $(BUILD)
program: $(BUILD)/build.ninja
	ninja $(QUIET) -C $(BUILD) weft weft-span
$(BUILD)/build.ninja:
	meson setup $(BUILD) $(MESON)
test: all
	meson test -C $(BUILD) --print-errorlogs
bench: all
	python3 bench/run.py --build $(BUILD)
check:
	python3 tools/check-layers
	tools/check-format
	tools/check-spdx
# The loop while editing: what finds most faults within a minute.
check-quick: all check
	meson test -C $(BUILD) --no-rebuild --quiet --print-errorlogs --suite unit
format:
	tools/check-format --fix
install: all
	meson install -C $(BUILD)
clean:
	rm -rf $(BUILD)

.PHONY: all program test bench check check-quick format install clean
