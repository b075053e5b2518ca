#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds weft and runs all its tests. The last line is "N passed, N failed, N skipped"; the exit status is 0 only when
# none failed.
# WEFT_DATA names the recorded traces (default ../shared/data); tests that need them skip when they are absent, and fail
# where WEFT_REQUIRE_DATA is set. BUILD: the build directory (default build); MESON: options to set it up with.
set -u
cd "$(dirname "$0")" || exit 1
WEFT_DATA=${WEFT_DATA:-$(cd .. && pwd)/shared/data}
BUILD=${BUILD:-build}
# What this machine's users have set is not what is tested.
WEFT_CONFIG=/dev/null
export WEFT_DATA BUILD WEFT_CONFIG

stop() {
    echo "test.sh: $1" >&2
    echo '0 passed, 1 failed, 0 skipped'
    exit 1
}
tools/install-deps || stop 'cannot install what the tests need'
make || stop 'the build failed'
if ! [ -d "$WEFT_DATA" ]; then
    echo "test.sh: no recorded traces at $WEFT_DATA: tests that need them skip, or fail (WEFT_REQUIRE_DATA)" >&2
fi

exec tools/run-tests "$BUILD"
