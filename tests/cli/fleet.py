#!/usr/bin/env python3
"""The fleet tier from the command line, with a redis-server of its own.

push:   the nightly job: a warm cache is pushed, another machine pulls all of it and compiles nothing; stats, doctor and
        config tell of the server, and nothing that is printed ever holds its password.
share:  two machines that warm one list at once share the builds out.
gone:   the server is gone: a warm builds and exits 0, a push exits 1, stats and doctor say so.
model:  everything that DeepSeek-V3 needs, pulled in less than a second. CBN_SWEEP=full takes the real NVRTC.
off:    a library built without the tier refuses every verb that names a server, with what to do.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PASSWORD = "gehe im"
PULL_MS = 1000
SHARE_MS = 80  # of a build
DEADLINE_S = 60
ARCHES = "sm_90a,sm_120a"


class Bench:
    def __init__(self, arguments, top):
        self.arguments, self.top, self.server, self.said = arguments, top, None, ""
        self.socket = os.path.join(top, "s")
        full = os.environ.get("CBN_SWEEP") == "full" and arguments.case == "model"
        self.environment = {"PATH": os.environ["PATH"], "HOME": top, "LC_ALL": "C",
                            "CUBINET_CUDA": "/nonexistent/libcuda.so.1",
                            "CUBINET_FLEET": "unix://:%s@%s" % (PASSWORD.replace(" ", "%20"), self.socket)}
        if not full:
            self.environment["CUBINET_NVRTC"] = os.path.join(arguments.fake, "libnvrtc_stub.so")
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS"):
            if name in os.environ:
                self.environment[name] = os.environ[name]

    def start_server(self):
        self.server = subprocess.Popen([self.arguments.server, "--port", "0", "--unixsocket", self.socket, "--save", "",
                                        "--dir", self.top, "--requirepass", PASSWORD], stdout=subprocess.DEVNULL)
        end = time.monotonic() + DEADLINE_S
        while not self.fleet_check()["ok"]:
            assert time.monotonic() < end, "the server does not answer"

    def fleet_check(self):
        return [check for check in self.json("doctor", code=None)["checks"] if check["name"] == "fleet"][0]

    def stop_server(self):
        if self.server:
            self.server.send_signal(signal.SIGKILL)
            self.server.wait()
        self.server = None

    def run(self, *words, code=0, cache="a", **changes):
        environment = {name: value for name, value in dict(self.environment, **changes).items() if value is not None}
        done = subprocess.run([self.arguments.cubinet, "--cache", os.path.join(self.top, cache), *words],
                              env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=DEADLINE_S, check=False)
        self.said += done.stdout + done.stderr
        assert code is None or done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout, done.stderr

    def json(self, *words, **more):
        return json.loads(self.run("--json", *words, **more)[0])

    def warm(self, *words, **more):
        return self.json("warm", "--all", "--arch", ARCHES, *words, **more)


def layer_of(stats):
    return stats["layers"][0]


def push(bench):
    before = bench.warm(CUBINET_FLEET=None)
    count = before["compiled"]
    assert count == before["requested"] > 20, before
    bench.start_server()
    pushed = bench.warm("--push")
    assert pushed["pushed"] == count and pushed["not_taken"] == 0 and pushed["compiled"] == 0, pushed
    assert "pushed %d, not taken 0\n" % count in bench.run("warm", "--all", "--arch", ARCHES, "--push")[0]
    pulled = bench.warm(cache="b")
    assert pulled["compiled"] == 0 and pulled["already"] == count and not pulled["failed"], pulled
    assert bench.json("check", "--all", "--arch", ARCHES, cache="b", CUBINET_FLEET=None)["present"] == count
    stats = bench.json("stats", cache="b")
    assert layer_of(stats)["fleet_hits"] == layer_of(stats)["entries"] == count, stats
    assert layer_of(stats)["fleet_pushes"] == layer_of(stats)["fleet_refused"] == 0, stats
    fleet = stats["fleet"]
    assert fleet["keys"] == count and fleet["error"] is None and fleet["server"].startswith(("redis ", "valkey ")), fleet
    assert fleet["url"] == "unix://:***@%s?db=0" % bench.socket, fleet
    assert "cubinet_fleet_up{url=\"%s\"} 1\n" % fleet["url"] in bench.run("stats", "--prometheus")[0]
    assert "  fleet_pushes " in bench.run("stats")[0] and "\nfleet: " + fleet["url"] in bench.run("stats")[0]
    assert bench.fleet_check()["ok"]
    settings = {s["name"]: s for s in bench.json("config")["settings"]}
    assert settings["fleet"]["value"] == fleet["url"] and settings["fleet"]["origin"] == "CUBINET_FLEET", settings
    # A kernel that goes with a `prune` comes back from the server.
    bench.run("prune", "--all", cache="b")
    assert bench.warm(cache="b")["compiled"] == 0
    # An option stands above the environment, and is refused where it is no URL.
    wrong = bench.run("config", "--fleet", "redis://:%s" % PASSWORD.replace(" ", "%20"), code=2)
    assert "fleet: it names no host" in wrong[1], wrong


def share(bench):
    count = bench.json("check", "--all", "--arch", ARCHES, code=3, CUBINET_FLEET=None)["requested"]
    bench.start_server()
    environment = dict(bench.environment, FAKE_NVRTC_DELAY_MS=str(SHARE_MS))
    started = time.monotonic()
    machines = [subprocess.Popen([bench.arguments.cubinet, "--json", "--quiet", "--cache", os.path.join(bench.top, name),
                                  "warm", "--all", "--arch", ARCHES, "-j", "1"], env=environment, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, text=True) for name in ("a", "b")]
    results = [json.loads(machine.communicate(timeout=DEADLINE_S)[0]) for machine in machines]
    took, alone = time.monotonic() - started, count * SHARE_MS / 1000
    shares = [result["compiled"] for result in results]
    print("%d kernels, built by %s, %.1f s; one machine alone takes %.1f s at least" % (count, shares, took, alone))
    assert sum(shares) == count and min(shares) >= count // 4, results
    assert all(r["compiled"] + r["already"] == count and not r["failed"] for r in results), results


def gone(bench):
    out, err = bench.run("warm", "--all", "--arch", ARCHES)
    assert ", failed 0, " in out and err.count("is left alone for a while") == 1, (out, err)
    out, err = bench.run("warm", "--all", "--arch", ARCHES, "--push", code=1)
    assert "\npushed 0, not taken " in out and "cannot connect to the fleet's server" in err, (out, err)
    assert "cannot connect" in bench.json("stats")["fleet"]["error"]
    assert "cubinet_fleet_up{" in bench.run("stats", "--prometheus")[0]
    check = bench.fleet_check()
    assert not check["ok"] and "cannot connect" in check["detail"] and "CUBINET_FLEET" in check["mend"], check
    err = bench.run("warm", "--all", "--arch", ARCHES, "--push", code=2, CUBINET_FLEET=None)[1]
    assert "--push: no server is named" in err, err


def model(bench):
    request = ["--model", os.path.join(bench.arguments.models, "DeepSeek-V3.json"), "--tp", "8", "--arch", "sm_90a",
               "--ops", "fp8_gemm,fp8_quantize"]
    bench.start_server()
    built = bench.json("warm", *request, "--push")
    assert built["compiled"] == built["requested"] > 0 and built["pushed"] == built["requested"], built
    start = time.monotonic()
    pulled = bench.json("warm", *request, cache="b")
    ms = (time.monotonic() - start) * 1000
    assert pulled["compiled"] == 0 and pulled["already"] == built["requested"], pulled
    stats = bench.json("stats", cache="b")
    print("%d kernels of DeepSeek-V3 (%d bytes of pages) pulled in %.0f ms, process start to end" %
          (pulled["already"], layer_of(stats)["used_bytes"], ms))
    assert layer_of(stats)["fleet_hits"] == built["requested"], stats
    assert ms < PULL_MS, ms
    bench.json("check", *request, cache="b", CUBINET_FLEET=None)


def off(bench):
    for words in (["config"], ["doctor"], ["warm", "--all", "--arch", "sm_90a"]):
        out, err = bench.run(*words, code=1)
        assert not out and "built without a fleet tier" in err and "-DCUBINET_FLEET=ON" in err, (words, out, err)
    assert "is not a number" in bench.run("config", "--fleet", "redis://h:x", code=2)[1]
    assert "fleet" in bench.run("config", CUBINET_FLEET=None)[0]


def main():
    parser = argparse.ArgumentParser()
    for name in ("cubinet", "fake", "server", "models"):
        parser.add_argument("--" + name)
    parser.add_argument("case", choices=("push", "share", "gone", "model", "off"))
    arguments = parser.parse_args()
    top = tempfile.mkdtemp(prefix="cubinet-fleet-")
    bench = Bench(arguments, top)
    try:
        globals()[arguments.case](bench)
        assert "gehe" not in bench.said, "the password was printed"
    finally:
        bench.stop_server()
        shutil.rmtree(top, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
