#!/usr/bin/env bash
# A process whose kernels are all in the cache opens no NVRTC: by strace, on the fake driver. The cold run before it
# must open one, or this test would prove nothing.
# usage: warm_start_opens_no_nvrtc.sh HOST_BENCH LIBCUDA
set -euo pipefail
host_bench=$1
libcuda=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! strace -f -o "$work/probe" true 2>/dev/null; then
    echo "SKIP: strace is missing or may not trace here; install strace"
    exit 77
fi

# LeakSanitizer cannot run under a tracer.
export ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS:-}"
trace() { # NAME: the files that a start on the cache opens
    strace -f -e trace=open,openat,openat2 -o "$work/$1" \
        "$host_bench" --cuda "$libcuda" --cache "$work/cache" --runs 1 --calls 10 >"$work/$1.json"
}

trace cold
trace warm
opened() { grep -E 'libnvrtc' "$work/$1" | grep -cv ENOENT || true; }
echo "opened libnvrtc: cold $(opened cold), warm $(opened warm)"
[ "$(opened cold)" -gt 0 ] || { echo "FAIL: the cold start opened no NVRTC"; exit 1; }
[ "$(opened warm)" -eq 0 ] || { echo "FAIL: the warm start opened NVRTC"; grep libnvrtc "$work/warm"; exit 1; }
