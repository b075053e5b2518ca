#!/bin/bash
# SPDX-License-Identifier: MIT
# A small pilot job: what a glidein does on a worker node, stage by stage, each a span below one of its own.
#   glidein_startup.sh -entry NAME -clientname NAME -traceid ID [-work SECONDS] [-diskdelay SECONDS]
# It tells only through weft-span; how it ends is not changed by whether anybody listens.
# The files that spans wait in (WEFT_SPAN_SPOOL) lie outside of the work directory, so that they are there when that is
# gone, and come home as the job's output.
set -u
entry=None client=None trace_id='' work=0.3 disk_delay=0
while [ $# -gt 1 ]; do
    case $1 in
    -entry) entry=$2 ;;
    -clientname) client=$2 ;;
    -traceid) trace_id=$2 ;;
    -work) work=$2 ;;
    -diskdelay) disk_delay=$2 ;;
    *) echo "glidein_startup.sh: unknown option $1" >&2; exit 2 ;;
    esac
    shift 2
done

# Without weft-span all goes on as it would, and nothing is told.
span=${WEFT_SPAN:-weft-span}
command -v "$span" >/dev/null || span=true
uuid=$(cat /proc/sys/kernel/random/uuid)
export OTEL_SERVICE_NAME=${OTEL_SERVICE_NAME:-glidein} WEFT_SPAN_SPOOL=${WEFT_SPAN_SPOOL:-$PWD/spans}
# The factory's context is the parent of this glidein's span, which is the parent of its stages. "None" is what a
# factory passes that has none.
[ "$trace_id" = None ] || export TRACE_ID=$trace_id
glidein=$("$span" start --name glidein --kind consumer --attribute UUID="$uuid" --attribute entry="$entry" \
    --attribute client="$client")
export TRACEPARENT=$glidein

stage=''
begin() { stage=$("$span" start --name "$1" --attribute span="$1" --attribute UUID="$uuid"); }
end() {
    [ -z "$stage" ] || "$span" end "$stage" "$@"
    stage=''
}
# as: what runs a command as stage $1: its status is the span's, also when a signal ends it.
stage_of_command() {
    as=()
    [ "$span" = true ] || as=("$span" run --name "$1" --attribute span="$1" --attribute UUID="$uuid" --)
}

# One way out, so that no end is forgotten: the running stage ends as what it was, cleanup is a stage, too.
glidein_exit() {
    local status=$1
    trap '' TERM INT
    if [ "$status" = 0 ]; then end; else end --status error --message "exit $status"; fi
    begin cleanup
    cd "$start_dir" && rm -rf "$work_dir"
    end
    if [ "$status" = 0 ]; then
        "$span" end "$glidein"
    else
        "$span" end "$glidein" --status error --message "exit $status"
    fi
    exit "$status"
}
child=''
on_signal() {
    [ -z "$child" ] || kill -s "$1" "$child" 2>/dev/null
    [ -z "$child" ] || wait "$child"
    glidein_exit $((128 + $(kill -l "$1")))
}
trap 'on_signal TERM' TERM
trap 'on_signal INT' INT

begin init
start_dir=$PWD
work_dir=$(mktemp -d "$start_dir/glide_XXXXXX") || glidein_exit 1
cd "$work_dir" || glidein_exit 1
end

begin pre_setup
printf 'entry %s\nclient %s\n' "$entry" "$client" >glidein_config || glidein_exit 1
end

# Writes what a glidein unpacks, a block at a time, as a disk lets it; a slow one holds up each block.
stage_of_command setup
# shellcheck disable=SC2016 # of the inner shell
"${as[@]}" bash -c 'for i in {1..8}; do
        dd if=/dev/zero of=block.$i bs=64k count=1 conv=fsync status=none || exit
        sleep "$0"
    done' "$disk_delay" || glidein_exit $?

# The jobs that it was sent for. In the background, so that a signal is passed on at once.
stage_of_command main
# shellcheck disable=SC2016
"${as[@]}" sh -c 'echo "jobs begin"; exec sleep "$0"' "$work" &
child=$!
wait "$child"
status=$?
child=''
glidein_exit $status
