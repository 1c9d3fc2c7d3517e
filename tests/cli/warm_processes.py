#!/usr/bin/env python3
"""Processes of `cubinet warm` that share one cache, with a compiler that counts and takes its time.

one_build:   sixteen behind a barrier want one specialisation: exactly one compile, everybody exits 0.
interrupt:   a warm is interrupted while it builds: the cache verifies, the next warm finishes.
full_disk:   the disk has no room for another entry, or for any: the summary tells what is stored, and why not all is.
             Needs to mount a small tmpfs; exits 77 where it may not.
killed:      the process that builds is killed by SIGKILL: the next builds at once and the cache is whole.
"""
import argparse
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PROCESSES = 16
DEADLINE_S = 60
SKIPPED = 77
# N and K that only the generic candidate takes, and M in 0..1: one specialisation.
MANIFEST = {"schema": "cubinet.manifest/1", "shapes": [{"op": "fp8_gemm", "layer": "odd", "n": 33, "k": 130}]}


class Bench:
    def __init__(self, arguments, top):
        self.cubinet, self.top = arguments.cubinet, top
        self.cache, self.count_file = os.path.join(top, "cache"), os.path.join(top, "count")
        self.manifest = os.path.join(top, "manifest.json")
        with open(self.manifest, "w", encoding="utf-8") as file:
            json.dump(MANIFEST, file)
        self.environment = {"PATH": os.environ["PATH"], "HOME": top, "LC_ALL": "C", "FAKE_NVRTC_COUNT": self.count_file,
                            "CUBINET_NVRTC": os.path.join(arguments.fake, "libnvrtc_stub.so"),
                            "CUBINET_CUDA": "/nonexistent/libcuda.so.1"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                self.environment[name] = os.environ[name]

    def verb(self, name, max_m=1):
        command = [self.cubinet, "--json", "--cache", self.cache, name]
        if name in ("warm", "check"):
            command += ["--manifest", self.manifest, "--ops", "fp8_gemm", "--arch", "sm_90a", "--max-m", str(max_m)]
        return command

    def compiles(self):
        return os.path.getsize(self.count_file) if os.path.exists(self.count_file) else 0

    def start(self, command, delay_ms, **more):
        environment = dict(self.environment, FAKE_NVRTC_DELAY_MS=str(delay_ms))
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)

    def result(self, process, wanted_code=0):
        out, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == wanted_code, (process.returncode, out, err)
        return json.loads(out)

    def wait_for_compiles(self, wanted):
        end = time.monotonic() + DEADLINE_S
        while self.compiles() < wanted:
            assert time.monotonic() < end, "no compile began"
            time.sleep(0.005)


def one_build(bench):
    before = bench.result(bench.start(bench.verb("check"), 0), wanted_code=3)
    assert before["requested"] == 1 and len(before["missing"]) == 1, before
    barrier = ["bash", "-c", 'echo ready; read -r _; exec "$@"', "barrier"]
    processes = [bench.start(barrier + bench.verb("warm"), 2000, stdin=subprocess.PIPE) for _ in range(PROCESSES)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    results = [bench.result(process) for process in processes]
    assert bench.compiles() == 1, "%d compiles" % bench.compiles()
    assert sum(result["compiled"] for result in results) == 1, results
    assert all(result["compiled"] + result["already"] == 1 and not result["failed"] for result in results), results
    assert bench.result(bench.start(bench.verb("check"), 0))["present"] == 1


def finish_after(bench):
    verified = bench.result(bench.start(bench.verb("verify"), 0))
    assert not verified["damaged"], verified
    before = bench.compiles()
    started = time.monotonic()
    again = bench.result(bench.start(bench.verb("warm"), 0))
    assert again["compiled"] == 1 and not again["failed"], again
    assert bench.compiles() == before + 1
    assert time.monotonic() - started < 10, "waited for a holder that is gone"
    assert bench.result(bench.start(bench.verb("check"), 0))["present"] == 1


def interrupt(bench):
    process = bench.start(bench.verb("warm"), 600000, start_new_session=True)
    bench.wait_for_compiles(1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the tool and its build children
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode in (-signal.SIGINT, 130), process.returncode
    finish_after(bench)


def killed(bench):
    process = bench.start(bench.verb("warm"), 600000)
    bench.wait_for_compiles(1)
    process.kill()
    # communicate ends when the build child, which holds the pipes too, is gone: it must not outlive its parent.
    process.communicate(timeout=DEADLINE_S)
    finish_after(bench)


def warm_arches(bench, arches, *options):
    command = [bench.cubinet, "--cache", bench.cache, "warm", "--manifest", bench.manifest, "--arch", arches, "-j", "1",
               *options]
    return subprocess.run(command, env=bench.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=DEADLINE_S, check=False)


def fill_disk(path):
    with open(path, "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError as error:
            assert error.errno == errno.ENOSPC, error


def check_full(done, counts, wanted_code):
    requested, already, compiled, failed = counts
    assert done.returncode == wanted_code, (done, counts)
    assert requested == already + compiled + failed and failed > 0, counts
    assert (already + compiled > 0) == (wanted_code == 4), counts
    lines = done.stderr.splitlines()
    told = [line for line in lines if "] failed: " in line]
    assert len(told) == failed and all("cannot write the cache" in line for line in told), done.stderr
    assert lines[-1].startswith("cubinet: warm: ") and "No space left on device" in lines[-1], done.stderr


def warm_full(bench, disk, before, wanted_code):
    bench.cache = os.path.join(disk, "cache")
    assert warm_arches(bench, "sm_90a", *before).returncode == 0
    fill_disk(os.path.join(disk, "filler"))
    done = warm_arches(bench, "sm_80,sm_89,sm_90a")
    summary = re.search(r"^requested (\d+), already (\d+), compiled (\d+), failed (\d+), uncovered 0, ", done.stdout,
                        re.MULTILINE)
    check_full(done, [int(text) for text in summary.groups()], wanted_code)
    done = warm_arches(bench, "sm_80,sm_89,sm_90a", "--json")
    result = json.loads(done.stdout)
    assert len(result["failures"]) == result["failed"] and all(item["message"] for item in result["failures"]), result
    check_full(done, [result[name] for name in ("requested", "already", "compiled", "failed")], wanted_code)


def full_disk(bench):
    disk = os.path.join(bench.top, "disk")
    os.mkdir(disk)
    for before, wanted_code in (([], 4), (["--max-m", "0"], 1)):
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], stderr=subprocess.DEVNULL,
                          check=False).returncode:
            print("skipped: a tmpfs cannot be mounted here")
            sys.exit(SKIPPED)
        try:
            warm_full(bench, disk, before, wanted_code)
        finally:
            subprocess.run(["umount", disk], check=True)


CASES = {"one_build": one_build, "interrupt": interrupt, "killed": killed, "full_disk": full_disk}


def run_in_bench(run, parser=None):
    """run(bench, arguments) in a folder of its own, which goes when it is done."""
    parser = parser or argparse.ArgumentParser()
    parser.add_argument("--cubinet", required=True)
    parser.add_argument("--fake", required=True)
    arguments = parser.parse_args()
    top = tempfile.mkdtemp(prefix="cubinet-cli-")
    try:
        run(Bench(arguments, top), arguments)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=CASES)
    return run_in_bench(lambda bench, arguments: CASES[arguments.case](bench), parser)


if __name__ == "__main__":
    sys.exit(main())
