#!/bin/sh
# Builds weft and shows it on a small recorded cluster: three machines, one request that took 88 ms.
set -eu
cd "$(dirname "$0")"

# Request 1 of examples/three-tier/ground-truth.json: the client's t_send and t_recv plus the client's
# metadata_clock_offset_ns (1795225053682179496, true-sync.json). They are times of the client's clock, so that is the
# reference below. The other nine requests are in examples/README.md.
thread=client:204
begin=1795225077700165960
end=1795225077788660723
traces=examples/three-tier

step() { printf '\n== %s\n' "$*"; }
run() {
    printf '\n$ %s\n' "$*"
    "$@"
}

step 'Build'
tools/install-deps build
make program QUIET=--quiet

if [ ! -d "$traces" ]; then
    step 'Unpack the recorded cluster'
    xz -dc "$traces.tar.xz" | tar -xf - -C build
    mv build/three-tier "$traces"
fi

step 'One clock for three machines'
run build/weft sync "$traces"

step 'Which requests took long, and what differs in those?'
run build/weft requests "$traces" --limit 5

step 'Where did the 88 ms go?'
run build/weft critpath "$traces" --thread "$thread" --reference client --begin "$begin" --end "$end" \
    --svg build/path.svg

cat <<END

The picture is in build/path.svg (any browser shows it).

Try next:
  build/weft info $traces                     what was recorded
  build/weft threads $traces                  threads, and what they wait for
  build/weft events $traces --names 'net_*'   packets, as text
  build/weft critpath $traces --thread $thread --reference client --begin 1795225078293742990 --end 1795225078379306775
      request 10: both servers compute and sleep
END
