#!/usr/bin/env python3
"""The progress of `cubinet warm` on a terminal of its own, and without one.

bar:      a bar is redrawn in place up to the last build and wiped; stdout stays data.
narrow:   a bar never fills the line of a narrow terminal.
failure:  an error is told on a line of its own, after the bar.
silent:   --quiet draws nothing; a pipe gets lines and no control codes.
verify:   verify draws its count in the same way, and nothing on a pipe.
"""
import argparse
import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios

DEADLINE_S = 60
WIPE = "\r\x1b[K"
BUILDS = 11
MANIFEST = {"schema": "cubinet.manifest/1", "shapes": [{"op": "fp8_gemm", "layer": "o_proj", "n": 7168, "k": 2048}]}


class Bench:
    def __init__(self, arguments, top):
        self.cubinet = arguments.cubinet
        self.manifest = os.path.join(top, "manifest.json")
        with open(self.manifest, "w", encoding="utf-8") as file:
            json.dump(MANIFEST, file)
        self.environment = {"PATH": os.environ["PATH"], "HOME": top, "LC_ALL": "C",
                            "CUBINET_NVRTC": os.path.join(arguments.fake, "libnvrtc_stub.so"),
                            "CUBINET_CUDA": "/nonexistent/libcuda.so.1"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                self.environment[name] = os.environ[name]

    def command(self, *more):
        return [self.cubinet, "--json", "warm", "--manifest", self.manifest, "--arch", "sm_90a", "--policy",
                "reference", "-j", "1", *more]

    def on_terminal(self, *more, columns=80, wanted_code=0, **environment):
        """What a warm writes: stdout, and the terminal that is its stderr."""
        master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        with tempfile.TemporaryFile() as out:
            process = subprocess.Popen(self.command(*more), env=dict(self.environment, **environment), stdout=out,
                                       stderr=terminal, stdin=subprocess.DEVNULL)
            os.close(terminal)
            drawn = b""
            try:
                while True:
                    piece = os.read(master, 65536)
                    if not piece:
                        break
                    drawn += piece
            except OSError:  # EIO: the last holder of the terminal is gone
                pass
            os.close(master)
            code = process.wait(timeout=DEADLINE_S)
            out.seek(0)
            assert code == wanted_code, (code, drawn)
            return json.loads(out.read()), drawn.decode("utf-8")


def bars(drawn):
    return re.findall(re.escape(WIPE) + r"\[([#.]{30})\] (\d+)/(\d+) (\S+)", drawn)


def bar(bench):
    result, drawn = bench.on_terminal()
    assert result["compiled"] == BUILDS, result
    seen = bars(drawn)
    assert [(int(done), int(total)) for _, done, total, _ in seen] == [(i + 1, BUILDS) for i in range(BUILDS)], drawn
    assert [cells.count("#") for cells, _, _, _ in seen] == [30 * (i + 1) // BUILDS for i in range(BUILDS)], drawn
    assert {name for _, _, _, name in seen} == {"fp8_gemm/swap_ab", "fp8_gemm/wgmma", "fp8_quantize/vector"}, drawn
    assert drawn.endswith(WIPE), drawn
    assert "\n" not in drawn and "compiled" not in drawn, drawn


def narrow(bench):
    for columns in (1, 20, 40):
        _, drawn = bench.on_terminal(columns=columns)
        lines = [line for line in drawn.split(WIPE) if line]
        assert all(len(line) < columns for line in lines), (columns, drawn)
        assert lines or columns == 1, (columns, drawn)


def failure(bench):
    result, drawn = bench.on_terminal(wanted_code=1, FAKE_NVRTC_FAIL="1")
    assert result["failed"] == BUILDS, result
    assert len(bars(drawn)) == BUILDS, drawn
    told = drawn[drawn.rindex(WIPE) + len(WIPE):].replace("\r\n", "\n")
    assert told.startswith("cubinet: warm: fp8_gemm/") and "\x1b" not in told, drawn
    assert told.count("told to fail") == BUILDS, told


def silent(bench):
    result, drawn = bench.on_terminal("--quiet")
    assert result["compiled"] == BUILDS and drawn == "", drawn
    done = subprocess.run(bench.command("--cache", os.path.join(os.path.dirname(bench.manifest), "other")), check=True,
                          env=bench.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=DEADLINE_S)
    assert "\x1b" not in done.stderr and "\r" not in done.stderr, done.stderr
    assert [line.split("]")[0] for line in done.stderr.splitlines()] == [
        "cubinet: [%d/%d" % (i + 1, BUILDS) for i in range(BUILDS)], done.stderr


def verify(bench):
    subprocess.run(bench.command("--quiet"), check=True, env=bench.environment, stdout=subprocess.DEVNULL,
                   timeout=DEADLINE_S)
    bench.command = lambda *more: [bench.cubinet, "--json", "verify", *more]
    result, drawn = bench.on_terminal()
    assert result["checked"] == BUILDS and result["damaged"] == [], result
    seen = bars(drawn)
    assert [(int(done), int(total), name) for _, done, total, name in seen] == [
        (i + 1, BUILDS, "verified") for i in range(BUILDS)], drawn
    assert drawn.endswith(WIPE) and "\n" not in drawn, drawn
    assert bench.on_terminal("--quiet")[1] == ""
    done = subprocess.run(bench.command(), check=True, env=bench.environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S)
    assert done.stderr == "" and json.loads(done.stdout)["checked"] == BUILDS, done


CASES = {"bar": bar, "narrow": narrow, "failure": failure, "silent": silent, "verify": verify}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cubinet", required=True)
    parser.add_argument("--fake", required=True)
    parser.add_argument("case", choices=CASES)
    arguments = parser.parse_args()
    top = tempfile.mkdtemp(prefix="cubinet-cli-")
    try:
        CASES[arguments.case](Bench(arguments, top))
    finally:
        shutil.rmtree(top, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
