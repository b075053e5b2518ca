#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds weft and shows it on a small recorded cluster: three machines, one request that took 88 ms.
# Beside an installed program (its package has this file among its examples) it shows that one.
set -eu
cd "$(dirname "$0")"

# Request 1 of examples/three-tier/ground-truth.json: the client's t_send and t_recv plus the client's
# metadata_clock_offset_ns (1795225053682179496, true-sync.json). They are times of the client's clock, so that is the
# reference below. The other nine requests are in examples/README.md.
thread=client:204
begin=1795225077700165960
end=1795225077788660723
if [ -e meson.build ]; then
    weft=build/weft traces=examples/three-tier packed=$PWD/examples picture=build/path.svg
else
    packed=$PWD
    cd "$(mktemp -d)"
    weft=weft traces=$PWD/three-tier picture=$PWD/path.svg
fi

step() { printf '\n== %s\n' "$*"; }
run() {
    printf '\n$ %s\n' "$*"
    "$@"
}

if [ "$weft" = build/weft ]; then
    step 'Build'
    tools/install-deps build
    make program QUIET=--quiet
fi

if [ ! -d "$traces" ]; then
    step 'Unpack the recorded cluster'
    # All of it or nothing: what is unpacked gets its name at the end.
    unpacked=$(mktemp -d "$traces.XXXXXX")
    xz -dc "$packed/three-tier.tar.xz" | tar -xf - -C "$unpacked"
    mv "$unpacked/three-tier" "$traces"
    rmdir "$unpacked"
fi

step 'One clock for three machines'
run "$weft" sync "$traces"

step 'Which requests took long, and what differs in those?'
run "$weft" requests "$traces" --limit 5

step 'Where did the 88 ms go?'
run "$weft" critpath "$traces" --thread "$thread" --reference client --begin "$begin" --end "$end" \
    --svg "$picture"

cat <<END

The picture is in $picture (any browser shows it).

Try next:
  $weft info $traces                     what was recorded
  $weft threads $traces                  threads, and what they wait for
  $weft events $traces --names 'net_*'   packets, as text
  $weft critpath $traces --thread $thread --reference client --begin 1795225078293742990 --end 1795225078379306775
      request 10: both servers compute and sleep
END
