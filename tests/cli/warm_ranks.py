#!/usr/bin/env python3
"""Ranks of one job that warm one list: as many compiles as keys, shared out over the ranks, nobody idle.

Every build takes 100 ms; one rank alone, with one build at a time, takes the sum.
"""
import json
import os
import subprocess
import sys
import time

from warm_processes import run_in_bench

RANKS = 4
KEYS = 50
MANIFEST = {"schema": "cubinet.manifest/1", "shapes": [{"op": "fp8_gemm", "layer": "up", "n": 4096, "k": 7168},
                                                       {"op": "fp8_gemm", "layer": "odd", "n": 33, "k": 130}]}
ARCHES = "sm_80,sm_86,sm_87,sm_89,sm_90a,sm_100a,sm_103a,sm_110a,sm_120a,sm_121a"
DELAY_MS = 100


def verb(bench, name):
    with open(bench.manifest, "w", encoding="utf-8") as file:
        json.dump(MANIFEST, file)
    return [bench.cubinet, "--json", "--cache", bench.cache, name, "--manifest", bench.manifest, "--arch", ARCHES]


def run(bench):
    before = bench.result(bench.start(verb(bench, "check"), 0), wanted_code=3)
    assert before["requested"] == len(before["missing"]) >= KEYS and not before["uncovered"], before
    command = verb(bench, "warm") + ["-j", "1"]
    barrier = ["bash", "-c", 'echo ready; read -r _; exec "$@"', "barrier"]
    ranks = [bench.start(barrier + command, DELAY_MS, stdin=subprocess.PIPE) for _ in range(RANKS)]
    for rank in ranks:
        assert rank.stdout.readline() == "ready\n"
    started = time.monotonic()
    for rank in ranks:
        rank.stdin.write("go\n")
        rank.stdin.flush()
    results = [bench.result(rank) for rank in ranks]
    took = time.monotonic() - started
    shares = sorted(result["compiled"] for result in results)
    print("%d compiles by %s, %.2f s; one rank alone takes %.2f s at least" %
          (bench.compiles(), shares, took, before["requested"] * DELAY_MS / 1000))
    assert bench.compiles() == before["requested"], bench.compiles()
    assert sum(shares) == before["requested"], results
    assert all(r["compiled"] + r["already"] == before["requested"] and not r["failed"] for r in results), results
    assert shares[0] * RANKS * 2 >= before["requested"], "a rank did less than half of its share: %s" % shares
    assert bench.result(bench.start(verb(bench, "check"), 0))["present"] == before["requested"]


def main():
    return run_in_bench(lambda bench, _: run(bench))


if __name__ == "__main__":
    sys.exit(main())
