#!/usr/bin/env python3
"""Tries tools/examples/fleet/Dockerfile where there is no Docker: every stage in a tree of debootstrap, by chroot.

Takes FROM a Debian image (debian:CODENAME...) or an earlier stage, ARG, ENV, RUN, COPY of the source and from a stage,
USER; pip trusts what this machine trusts. Needs root, debootstrap and a network, and takes minutes: runs only with
CBN_DOCKERFILE=1 in the environment. Then the last stage's root is mounted read-only, and prove runs in it once more as a
user who owns nothing.
"""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
SOURCE = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
FILE = os.path.join(SOURCE, "tools", "examples", "fleet", "Dockerfile")
LEFT_OUT = [".git", "build", "build-*"]  # as a .dockerignore would


def instructions():
    with open(FILE, encoding="utf-8") as file:
        text = "".join(line for line in file if not line.startswith("#")).replace("\\\n", " ")
    return [line.split(None, 1) for line in text.splitlines() if line.strip()]


class Stage:
    def __init__(self, root, image, made):
        self.root, self.environment, self.user = root, {}, "0"
        if os.path.isdir(made):
            subprocess.run(["cp", "-a", made, root], check=True)
            return
        codename = image.partition(":")[2].partition("-")[0]
        subprocess.run(["debootstrap", "--variant=minbase", codename, made], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cp", "-a", made, root], check=True)

    def run(self, command, code=0, before=""):
        mounts = ('mount --make-rprivate /; mount -t proc proc "$0/proc"; mount --bind /dev "$0/dev"; '
                  'cp -L /etc/resolv.conf "$0/etc/" 2>/dev/null || true; '
                  'cp -L /etc/ssl/certs/ca-certificates.crt "$0/etc/host.crt" 2>/dev/null || true; %s '
                  'exec chroot --userspec "$1" --groups= "$0" /bin/sh -c "$2"' % before)
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                       "DEBIAN_FRONTEND": "noninteractive", "PIP_CERT": "/etc/host.crt", **self.environment}
        for name in ("http_proxy", "https_proxy", "PIP_INDEX_URL", "PIP_TRUSTED_HOST"):
            if name in os.environ:
                environment.setdefault(name, os.environ[name])
        user = self.user if ":" in self.user else self.user + ":" + self.user
        done = subprocess.run(["unshare", "--mount", "bash", "-euc", mounts, self.root, user, command],
                              env=environment, stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == code, (command, done.returncode)

    def expand(self, words):
        for name, value in self.environment.items():
            words = words.replace("${%s}" % name, value)
        return words


def copy(stages, stage, words):
    names = shlex.split(words)
    source = stages[names.pop(0)[len("--from="):]].root if names[0].startswith("--from=") else None
    *sources, target = names
    for name in sources:
        into = stage.root + target
        if source:
            path = source + name
            path = os.path.realpath(path) if os.path.islink(path) else path
            if target.endswith("/"):
                os.makedirs(into, exist_ok=True)
                into = os.path.join(into, os.path.basename(name))
            if os.path.isdir(path):
                shutil.copytree(path, into, dirs_exist_ok=True)
            else:
                os.makedirs(os.path.dirname(into), exist_ok=True)
                shutil.copy(path, into)
        else:
            assert name == ".", name
            shutil.copytree(SOURCE, into, ignore=shutil.ignore_patterns(*LEFT_OUT))


def build(top):
    stages, stage, defaults = {}, None, {}
    for number, (word, rest) in enumerate(instructions()):
        print("== %s %s" % (word, rest[:100]), flush=True)
        if word == "ARG":
            name, _, value = rest.partition("=")
            (stage.environment if stage else defaults)[name] = value
        elif word == "FROM":
            image, *named = rest.split()
            for name, value in defaults.items():
                image = image.replace("${%s}" % name, value)
            stage = Stage(os.path.join(top, "stage-%d" % number), image, os.path.join(top, "image"))
            stages[named[1] if named else "last"] = stage
        elif word == "ENV":
            name, _, value = rest.partition("=")
            stage.environment[name] = value
        elif word == "USER":
            stage.user = rest
        elif word == "COPY":
            copy(stages, stage, rest)
        else:
            assert word == "RUN", word
            stage.run(rest)
    return stage


def main():
    if os.environ.get("CBN_DOCKERFILE") != "1":
        print("skipped: takes minutes and a network; CBN_DOCKERFILE=1 runs it")
        return SKIPPED
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        print("skipped: needs root and debootstrap")
        return SKIPPED
    top = tempfile.mkdtemp(prefix="cubinet-dockerfile-", dir="/var/tmp")
    try:
        last = build(top)
        assert last.user == "65534"
        print("== once more on a read-only root", flush=True)
        last.run("cubinet-prove /usr/share/cubinet && ! touch /tmp/there 2>/dev/null",
                 before='umount "$0/proc" "$0/dev"; rm -f "$0/etc/host.crt"; mount --bind "$0" "$0"; '
                        'mount -o remount,bind,ro "$0";')
    finally:
        subprocess.run(["rm", "-rf", top], check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
