#!/usr/bin/env python3
"""Warming two hundred kernels in 4 GiB: every build has a process of its own, which gives its memory back.

The largest process of all, times as many as run at once, must fit: with the stub 200 kernels with sixteen builds at
once; with the real NVRTC a few kernels (CBN_SWEEP=full: all of them, two at once) tell how large a build is.
"""
import json
import os
import re
import resource
import subprocess
import sys

from warm_processes import DEADLINE_S, SKIPPED, run_in_bench
from warm_ranks import ARCHES, MANIFEST

BOUND_KIB = 4 << 20
JOBS = 16
KERNELS = 200
PROFILES = ("bf16", "fp16", "fp32")


def warm(bench, environment, arches, in_type, jobs, manifest, *more):
    command = [bench.cubinet, "--cache", bench.cache, "warm", "--manifest", manifest, "--arch", arches, "--in", in_type,
               "-j", str(jobs), *more]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          timeout=60 * DEADLINE_S)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    summary = re.search(r"^requested \d+, already \d+, compiled (\d+), failed 0,", done.stdout, re.MULTILINE)
    return int(summary.group(1))


def write_manifest(bench):
    with open(bench.manifest, "w", encoding="utf-8") as file:
        json.dump(MANIFEST, file)
    return bench.manifest


def largest_kib():
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


def run(bench):
    manifest = write_manifest(bench)
    built = sum(warm(bench, bench.environment, ARCHES, profile, JOBS, manifest) for profile in PROFILES)
    stub_kib = largest_kib()
    print("stub: %d kernels, %d at once, the largest process %d MiB" % (built, JOBS, stub_kib >> 10))
    assert built >= KERNELS and bench.compiles() == built, (built, bench.compiles())
    assert (JOBS + 1) * stub_kib <= BOUND_KIB, stub_kib
    real = {name: value for name, value in bench.environment.items() if name != "CUBINET_NVRTC"}
    if "CUBINET_NVRTC" in os.environ:
        real["CUBINET_NVRTC"] = os.environ["CUBINET_NVRTC"]
    bench.cache += "-real"
    full = os.environ.get("CBN_SWEEP") == "full"
    if full:
        built = sum(warm(bench, real, ARCHES, profile, 2, manifest) for profile in PROFILES)
    else:
        built = warm(bench, real, "sm_90a", PROFILES[0], 1, manifest, "--ops", "fp8_gemm", "--max-m", "1")
    print("NVRTC: %d kernels, the largest process %d MiB, %d at once take %d MiB at most" %
          (built, largest_kib() >> 10, JOBS, (JOBS + 1) * largest_kib() >> 10))
    assert built >= (KERNELS if full else 1), built
    assert (JOBS + 1) * largest_kib() <= BOUND_KIB, largest_kib()


def main():
    if "ASAN_OPTIONS" in os.environ:
        print("skipped: the sanitizer's memory is not the tool's")
        return SKIPPED
    return run_in_bench(lambda bench, _: run(bench))


if __name__ == "__main__":
    sys.exit(main())
