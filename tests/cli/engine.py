"""What the tests of containers, users and places share: engines and verbs as other users, and what they say.

Everything that is run is copied into a folder that every user can read; each test has one, and it goes away.
"""
import argparse
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile

DEADLINE_S = 500
SKIPPED = 77
KEYS = 12  # distinct specialisations of an engine's calls
SANITIZERS = ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS")
MANIFEST = {"schema": "cubinet.manifest/1", "shapes": [{"op": "fp8_quantize", "layer": "x", "n": 1, "k": 128}]}


def skip(why):
    print("skipped:", why)
    sys.exit(SKIPPED)


class Report:
    """What an engine printed: see engine.c."""

    def __init__(self, out):
        self.notices, self.damages, self.calls, self.settings, self.stats, self.created = [], [], [], {}, {}, None
        for line in out.splitlines():
            word, _, rest = line.partition(" ")
            if word == "notice":
                self.notices.append(rest)
            elif word == "damage":
                self.damages.append(rest)
            elif word == "call":
                self.calls.append(rest.strip())
            elif word == "create":
                self.created = rest.strip()
            elif word == "setting":
                name, origin, value = rest.split(" ", 2)
                self.settings[name] = (origin, value)
            elif word == "stat":
                name, value = rest.split()
                self.stats[name] = int(value)

    def expect(self, notices=(), **stats):
        """Every call is right, these words are said in this order, once each, and the counters are exactly these."""
        assert self.created == "0" and self.calls and set(self.calls) == {"0"}, (self.created, self.calls)
        assert not self.damages, self.damages
        assert len(self.notices) == len(notices), (self.notices, notices)
        for said, wanted in zip(self.notices, notices):
            assert wanted in said, (said, wanted)
        seen = {name: self.stats[name] for name in stats}
        assert seen == stats, (seen, stats)


class Place:
    def __init__(self, arguments):
        self.top = os.path.realpath(tempfile.mkdtemp(prefix="cubinet-place-"))
        os.chmod(self.top, 0o755)
        tools = self.path("tools")
        os.mkdir(tools)
        self.files = {}
        for name, source in (("cubinet", arguments.cubinet), ("engine", arguments.engine),
                             ("library", arguments.library),
                             ("nvrtc", os.path.join(arguments.fake, "libnvrtc_stub.so")),
                             ("cuda", os.path.join(arguments.fake, "libcuda.so.1")),
                             ("statfs", os.path.join(arguments.fake, "libfake_statfs.so"))):
            soname = "libcubinet.so.0" if name == "library" else os.path.basename(source)
            self.files[name] = shutil.copy(os.path.realpath(source), os.path.join(tools, soname))
            os.chmod(self.files[name], 0o755)
        self.count_file = self.path("count")
        with open(self.count_file, "wb"):
            os.chmod(self.count_file, 0o666)
        with open(self.path("manifest.json"), "w", encoding="utf-8") as file:
            json.dump(MANIFEST, file)
        self.environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": self.path("nobody"),
                            "LD_LIBRARY_PATH": tools, "FAKE_NVRTC_COUNT": self.count_file,
                            "CUBINET_NVRTC": self.files["nvrtc"]}
        self.environment.update({name: os.environ[name] for name in SANITIZERS if name in os.environ})

    def path(self, *names):
        return os.path.join(self.top, *names)

    def folder(self, name, mode, uid=0, gid=0):
        path = self.path(name)
        os.mkdir(path)
        os.chown(path, uid, gid)
        os.chmod(path, mode)
        return path

    def remove(self):
        subprocess.run(["chmod", "-R", "u+w", self.top], check=False)
        shutil.rmtree(self.top, ignore_errors=True)

    def compiles(self):
        """Since the last time it was asked."""
        count = os.path.getsize(self.count_file)
        os.truncate(self.count_file, 0)
        return count

    def engine(self, *options, calls=KEYS):
        return [self.files["engine"], "--cuda", self.files["cuda"], "--calls", str(calls), *options]

    def verb(self, *words):
        command = [self.files["cubinet"], *words]
        if words[0] in ("warm", "check"):
            command += ["--manifest", self.path("manifest.json"), "--arch", "sm_90a"]
        return command

    def run(self, command, uid=None, gid=None, groups=(), umask=None, code=0, **variables):
        """As uid with those groups only; None in variables takes one out of the environment."""
        if uid is not None:
            supplementary = ["--groups", ",".join(str(group) for group in groups)] if groups else ["--clear-groups"]
            command = ["setpriv", "--reuid", str(uid), "--regid", str(uid if gid is None else gid), *supplementary,
                       *command]
        environment = {name: value for name, value in {**self.environment, **variables}.items() if value is not None}
        done = subprocess.run(command, env=environment, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=False,
                              **({"umask": umask} if umask is not None else {}))
        assert done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
        return done

    def report(self, command, **how):
        return Report(self.run(command, **how).stdout)


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def listing(path):
    return sorted(os.listdir(path))


def need_root():
    become = ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups", "true"]
    if os.geteuid() != 0 or not shutil.which("setpriv") or subprocess.run(become, stderr=subprocess.DEVNULL,
                                                                          check=False).returncode:
        skip("becoming another user needs root and setpriv")


def main(cases):
    parser = argparse.ArgumentParser()
    for name in ("cubinet", "engine", "library", "fake"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("case", choices=cases)
    arguments = parser.parse_args()
    place = Place(arguments)
    try:
        cases[arguments.case](place)
    finally:
        place.remove()
    return 0
