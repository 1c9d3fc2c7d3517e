#!/usr/bin/env python3
"""Runs one golden file of the command line: tests/cli/NAME.t.

A golden file is prose with indented transcripts:

      $ a command for bash
      > its continuation
      a line of stdout
      ! a line of stderr
      [3]                      the exit status, when it is not 0

Every file gets a HOME and a working folder of its own; the commands of a file share them and run in order, each in a
new bash. What differs from run to run (folders, hashes, times, sizes, compiler) is replaced by a name, hashes by one
numbered in the order of appearance, so that equal ones stay equal. A line "#collapse" in the prose says that columns
are as wide as such values make them: runs of blanks count as two from there on.

--update rewrites the file with what was seen. Read the difference before committing it.
"""
import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile

INDENT = "  "
KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUBINET_NVRTC", "VIRTUAL_ENV", "CONDA_PREFIX",
                  "PYENV_ROOT", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")
COMMAND_TIMEOUT_S = 240

VARIABLE_PATTERNS = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<TIME>"),
    (re.compile(r"\b\d+\.\d s\b"), "<S> s"),
    (re.compile(r'("seconds": )[0-9.e-]+'), r"\1<S>"),
    (re.compile(r'("(?:(?:size|shared|spill|used|file|max|freed)_bytes|compile_ms\w*|registers)": )\d+'), r"\1<N>"),
    (re.compile(r"^(cubinet_layer_\w+(?:_bytes|_ms_)\w*\{.*\}) \d+$"), r"\1 <N>"),
    (re.compile(r"^((?:shared memory|spills) +)\d+ bytes"), r"\1<N> bytes"),
    (re.compile(r'("compiler": )"\d+\.\d+"'), r'\1"<NVRTC>"'),
    (re.compile(r"\b\d+(\.\d)? (B|KiB|MiB)\b"), "<SIZE>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<SHA256>"),
    (re.compile(r"\bbytes \d+\b"), "bytes <N>"),
    (re.compile(r'("bytes": )\d+'), r"\1<N>"),
    (re.compile(r"\b\d+ ms\b"), "<MS>"),
    (re.compile(r"\b\d+ bytes$"), "<N> bytes"),
    (re.compile(r"exists, \w+, mode (\d+), owner \d+,"), r"exists, <FILESYSTEM>, mode \1, owner <UID>,"),
    (re.compile(r"\.damaged-\d+-\d+"), ".damaged-<TIME>-<PID>"),
)
HASH = re.compile(r"\b[0-9a-f]{32}\b")
TEXT_COMPILER = re.compile(r"(<MS> +)1[23]\.\d\b")


class Normaliser:
    def __init__(self, folders):
        self.folders = sorted(folders, key=lambda item: -len(item[0]))
        self.hashes = {}
        self.collapse = False

    def hash_name(self, match):
        return "<HASH%d>" % self.hashes.setdefault(match.group(0), len(self.hashes) + 1)

    def line(self, line):
        for folder, name in self.folders:
            line = line.replace(folder, name)
        for pattern, replacement in VARIABLE_PATTERNS:
            line = pattern.sub(replacement, line)
        line = TEXT_COMPILER.sub(r"\1<NVRTC>", line)
        line = HASH.sub(self.hash_name, line)
        if self.collapse:
            head = len(line) - len(line.lstrip(" "))
            line = line[:head] + re.sub(r" {2,}", "  ", line[head:])
        return line

    def lines(self, text):
        return [self.line(line) for line in text.split("\n")[:-1]] + (
            [self.line(text.rsplit("\n", 1)[-1]) + " (no newline)"] if text and not text.endswith("\n") else [])


def run_command(command, environment, folder):
    done = subprocess.run(["bash", "-c", command], env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=COMMAND_TIMEOUT_S, check=False)
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def transcript(command_lines, environment, folder, normaliser):
    code, out, err = run_command("\n".join(command_lines), environment, folder)
    lines = [INDENT + ("$ " if i == 0 else "> ") + line for i, line in enumerate(command_lines)]
    lines += [(INDENT + line).rstrip() for line in normaliser.lines(out)]
    lines += [(INDENT + "! " + line).rstrip() for line in normaliser.lines(err)]
    if code:
        lines.append("%s[%d]" % (INDENT, code))
    return lines


def replay(golden, environment, folder, normaliser):
    """The file as it would read if every command did what it did now."""
    seen, at = [], 0
    while at < len(golden):
        line = golden[at]
        at += 1
        if line.startswith("#collapse"):
            normaliser.collapse = True
        if not line.startswith(INDENT + "$ "):
            if not line.startswith(INDENT):
                seen.append(line)
            continue
        command = [line[len(INDENT) + 2:]]
        while at < len(golden) and golden[at].startswith(INDENT + "> "):
            command.append(golden[at][len(INDENT) + 2:])
            at += 1
        # A blank line of output is written as an empty line: it belongs to the output when more of it follows.
        while at < len(golden) and (golden[at].startswith(INDENT) and not golden[at].startswith(INDENT + "$ ") or
                                    golden[at] == "" and continues(golden, at)):
            at += 1
        seen += transcript(command, environment, folder, normaliser)
    return seen


def continues(golden, at):
    while at < len(golden) and golden[at] == "":
        at += 1
    return at < len(golden) and golden[at].startswith(INDENT) and not golden[at].startswith(INDENT + "$ ")


def make_environment(arguments, home):
    environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    environment["PATH"] = os.path.dirname(arguments.cubinet) + ":" + environment.get("PATH", "/usr/bin:/bin")
    environment.update(HOME=home, TMPDIR=home, LC_ALL="C", MODELS=arguments.models, FAKE=arguments.fake,
                       TOOLS=arguments.tools, HERE=os.path.dirname(os.path.abspath(__file__)),
                       CUBINET_CUDA="/nonexistent/libcuda.so.1")
    return environment


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cubinet", required=True, help="the binary")
    parser.add_argument("--models", required=True, help="folder of model configs")
    parser.add_argument("--fake", required=True, help="folder of libnvrtc_stub.so")
    parser.add_argument("--tools", required=True, help="the source folder tools/")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("golden")
    arguments = parser.parse_args()
    with open(arguments.golden, encoding="utf-8") as file:
        golden = file.read().split("\n")[:-1]
    top = os.path.realpath(tempfile.mkdtemp(prefix="cubinet-cli-"))
    home, folder = os.path.join(top, "home"), os.path.join(top, "work")
    try:
        os.mkdir(home)
        os.mkdir(folder)
        normaliser = Normaliser([(folder, "<WORK>"), (home, "<HOME>"), (arguments.models, "<MODELS>"),
                                 (arguments.fake, "<FAKE>")])
        seen = replay(golden, make_environment(arguments, home), folder, normaliser)
    finally:
        subprocess.run(["chmod", "-R", "u+w", top], check=False)
        shutil.rmtree(top, ignore_errors=True)
    if seen == golden:
        return 0
    if arguments.update:
        with open(arguments.golden, "w", encoding="utf-8") as file:
            file.write("\n".join(seen) + "\n")
        print("updated", arguments.golden)
        return 0
    print("\n".join(difflib.unified_diff(golden, seen, "golden", "seen", lineterm="")))
    return 1


if __name__ == "__main__":
    sys.exit(main())
