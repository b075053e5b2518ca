#!/bin/sh
# Builds weft and runs all its tests. The last line is "N passed, N failed, N skipped"; the exit status is 0 only when none failed.
# WEFT_DATA names the recorded traces (default ../shared/data); tests that need them skip when they are absent.
set -u
cd "$(dirname "$0")" || exit 1
WEFT_DATA=${WEFT_DATA:-$(cd .. && pwd)/shared/data}
export WEFT_DATA

stop() {
    echo "test.sh: $1" >&2
    echo '0 passed, 1 failed, 0 skipped'
    exit 1
}
tools/install-deps || stop 'cannot install what the tests need'
make || stop 'the build failed'
[ -d "$WEFT_DATA" ] || echo "test.sh: no recorded traces at $WEFT_DATA: tests that need them will be skipped" >&2

rm -f build/meson-logs/testlog.json
meson test -C build --no-rebuild --print-errorlogs
status=$?
tools/count-tests build || status=1
exit $status
