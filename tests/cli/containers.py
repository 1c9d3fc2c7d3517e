#!/usr/bin/env python3
"""Containers: each with a pid namespace and a /proc of its own, where every engine is process 1, on one folder.

two, ten:  all begin cold at once: one build a key. Then readers and writers together while another prunes all of it.
mounted:   half of them have the folder mounted read-only: they read beside those that write, and lock what they can.
nowhere:   every filesystem read-only, an uid that owns nothing or root: bases serve, misses compile to memory.
"""
import os
import subprocess
import sys

from engine import DEADLINE_S, KEYS, Report, listing, main, need_root, skip

USER = 54321
PRUNES = 1000 if os.environ.get("CBN_SWEEP") == "full" else 25
CONTAINER = ["unshare", "--pid", "--mount-proc", "--fork", "--kill-child"]
# Says which process it is and how many /proc has, and becomes the command on a word.
BARRIER = ["bash", "-c", 'echo "$$ $(ls /proc | grep -c "^[0-9]")"; read -r _; exec "$@"', "barrier"]


class Containers:
    def __init__(self, place, commands, **environment):
        self.processes = []
        for command in commands:
            self.processes.append(subprocess.Popen(
                CONTAINER + BARRIER + command, env={**place.environment, **environment}, cwd="/", text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        for process in self.processes:
            pid, others = process.stdout.readline().split()
            assert pid == "1" and int(others) <= 4, (pid, others)

    def go(self):
        for process in self.processes:
            process.stdin.write("go\n")
            process.stdin.flush()

    def outputs(self):
        outputs = []
        for process in self.processes:
            out, err = process.communicate(timeout=DEADLINE_S)
            assert process.returncode == 0, (process.args, process.returncode, out, err)
            outputs.append(out)
        return outputs

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def need_containers():
    need_root()
    if subprocess.run(CONTAINER + ["true"], stderr=subprocess.DEVNULL, check=False).returncode:
        skip("no pid namespace can be made here")


def begin_cold(place, count, cache):
    containers = Containers(place, [place.engine()] * count, CUBINET_CACHE=cache, FAKE_NVRTC_DELAY_MS="20")
    try:
        containers.go()
        reports = [Report(out) for out in containers.outputs()]
    finally:
        containers.end()
    for report in reports:
        report.expect()
        assert report.stats["compiles"] + report.stats["overlay_hits"] == KEYS, report.stats
        assert report.stats["misses_busy"] + report.stats["misses_io"] + report.stats["puts_dropped"] == 0, report.stats
    assert sum(report.stats["compiles"] for report in reports) == KEYS
    assert place.compiles() == KEYS


def pruner(place, cache, stop):
    prunes = 'for i in $(seq "$1"); do "$2" --cache "$3" --quiet prune --all >/dev/null || exit 1; done; : > "$4"'
    return ["bash", "-c", prunes, "prune", str(PRUNES), place.files["cubinet"], cache, stop]


def prune_beside(place, count, cache):
    stop = place.path("stop")
    containers = Containers(place, [place.engine("--until", stop)] * (count - 1) + [pruner(place, cache, stop)],
                            CUBINET_CACHE=cache)
    try:
        containers.go()
        outputs = containers.outputs()
    finally:
        containers.end()
    for out in outputs[:-1]:
        word, rounds = out.split()  # nothing else: no notice, no damage, no call that went wrong
        assert word == "rounds" and int(rounds) > 0, out
    compiles = place.compiles()
    assert compiles > 0
    print("%d containers: %d rounds of %d calls, %d compiles, %d prunes" % (
        count, sum(int(out.split()[1]) for out in outputs[:-1]), KEYS, compiles, PRUNES))


MOUNTED = ["bash", "-c", 'mount --make-rprivate / && mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 77'
           '; shift; exec "$@"', "mounted"]


def mounted(place):
    need_containers()
    cache, stop, half = place.folder("cache", 0o700), place.path("stop"), 3
    place.report(place.engine(), CUBINET_CACHE=cache).expect(puts=KEYS)
    engine = place.engine("--until", stop)
    containers = Containers(place, [MOUNTED + [cache] + engine] * half + [engine] * half +
                            [pruner(place, cache, stop)], CUBINET_CACHE=cache)
    try:
        containers.go()
        outputs = containers.outputs()
    finally:
        containers.end()
    said = ("notice the cache folder %s cannot be written by this user: it is read only, new kernels are not kept" %
            cache)
    for number, out in enumerate(outputs[:-1]):
        lines = out.splitlines()
        rounds = int(lines[-1].split()[1])
        assert rounds > 0 and lines[:-1] == [said] * rounds * (number < half), lines
    out = place.run(place.verb("verify"), CUBINET_CACHE=cache).stdout
    assert out.endswith("damaged 0, repaired 0\n"), out
    assert listing(cache) == ["data.mdb", "lock"]


def together(place, count):
    need_containers()
    cache = place.folder("cache", 0o700)
    begin_cold(place, count, cache)
    prune_beside(place, count, cache)
    place.report(place.engine(), CUBINET_CACHE=cache).expect()
    out = place.run(place.verb("verify"), CUBINET_CACHE=cache).stdout
    assert out == "checked %d, damaged 0, repaired 0\n" % KEYS, out
    assert listing(cache) == ["data.mdb", "lock"]


SEALED = '''set -e
mount --make-rprivate /
findmnt -rno TARGET | while read -r target; do mount -o remount,bind,ro "$target" 2>/dev/null || true; done
for place in / /tmp /var/tmp /dev/shm "$HOME" "$1"; do
  [ ! -d "$place" ] || ! (: > "$place/cubinet-probe") 2>/dev/null || { rm -f "$place/cubinet-probe"; exit 77; }
done
shift; exec "$@"'''


def inspect(place, prefix, how, base, count):
    """Every verb that inspects exits 0; doctor finds nothing wrong with a base for not being writable."""
    said = "cubinet: no cache folder is named by CUBINET_CACHE, XDG_CACHE_HOME or HOME: kernels stay in memory only\n"
    for words, out, err in (("verify", "checked %d, damaged 0, repaired 0\n" % count, said),
                            ("ls", None, said + "cubinet: %d entries, " % count), ("stats", None, said),
                            ("config", None, ""),
                            ("explain --op fp8_gemm --m 0 --n 1 --k 1 --arch sm_90a", None, said)):
        done = place.run(prefix + place.verb(*words.split()), **how)
        assert (out is None or done.stdout == out) and done.stderr.startswith(err), (words, done)
    lines = place.run(prefix + place.verb("doctor"), **how).stdout.splitlines()
    assert not [line for line in lines if line.startswith("failed")], lines
    bases = [line for line in lines if "base-folder: " in line]
    assert len(bases) == 1 and bases[0].startswith("ok ") and "not writable" in bases[0], lines
    assert "layer: 0: %s, read-only base, %d entries" % (base, count) in "\n".join(lines), lines


def nowhere(place):
    need_root()
    base, warm = place.folder("base", 0o755), KEYS // 2
    place.report(place.engine(calls=warm), CUBINET_CACHE=base)
    os.unlink(os.path.join(base, "lock"))
    os.chmod(os.path.join(base, "data.mdb"), 0o444)
    counts = {"base_hits": warm, "compiles": KEYS - warm, "puts": 0, "puts_dropped": KEYS - warm, "overlay_hits": 0}
    bare = place.folder("bare", 0o755)
    no_folder = "a cache layer is left out: cannot make the folder %s/.cache; name another cache folder: " % bare
    # EACCES: modes are in the way.
    how = {"HOME": bare, "CUBINET_BASES": base}
    place.report(place.engine(), uid=USER, **how).expect([no_folder + "Permission denied"], **counts)
    as_user = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups"]
    sealed = ["unshare", "--mount", "bash", "-c", SEALED, "sealed", place.top]
    tried = subprocess.run(sealed + ["true"], env={**place.environment, **how}, stderr=subprocess.DEVNULL, check=False)
    if tried.returncode:
        print("skipped in part: the filesystems cannot be made read-only here")
    else:
        # EROFS, for an uid that owns nothing and for root; a builder in a child, too.
        for drop in (as_user, []):
            for builder in ([], ["--builder", place.files["engine"]]):
                report = place.report(sealed + drop + place.engine(*builder), **how)
                report.expect([no_folder + "Read-only file system"], **counts)
        inspect(place, sealed + as_user, dict(how, HOME="/", CUBINET_CUDA="/nonexistent"), base, warm)
        # The base as the cache itself: read only, said once.
        report = place.report(sealed + as_user + place.engine(), CUBINET_CACHE=base)
        report.expect(["the cache folder %s cannot be written by this user" % base],
                      **dict(counts, base_hits=0, overlay_hits=warm))
    # A root-owned folder as it is baked without a thought, 0600: told, and the mend.
    os.chmod(os.path.join(base, "data.mdb"), 0o600)
    place.report(place.engine(), uid=USER, CUBINET_BASES=base, HOME=None).expect(
        ["cannot open %s/data.mdb; give it to this user or warm it first: Permission denied" % base,
         "no cache folder is named by"], base_hits=0, compiles=KEYS)
    assert listing(base) == ["data.mdb"] and listing(bare) == []


CASES = {"two": lambda place: together(place, 2), "ten": lambda place: together(place, 10), "mounted": mounted,
         "nowhere": nowhere}

if __name__ == "__main__":
    sys.exit(main(CASES))
