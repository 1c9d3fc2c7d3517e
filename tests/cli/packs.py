#!/usr/bin/env python3
"""Packs as they are deployed: made by several, used by others, where nothing can be written.

same:  two users warm DeepSeek-V3 in two folders under two paths, by turns and with the list the other way round: the
       packs are byte for byte the same, and so is one that went through a third cache. With the NVRTC stand-in.
real:  the same with a real NVRTC: one kernel, and with CBN_SWEEP=full all of DeepSeek-V3.
root:  a pack in an otherwise empty root that is mounted read-only, used by uid 12345: check exits 0, every call of an
       engine is a hit of the base, nothing is compiled and nothing written; miss policy never says what is missing.
base:  a pack on a filesystem that statfs calls NFS, below a local overlay: what the pack lacks is compiled into it.
"""
import os
import re
import shutil
import subprocess
import sys

from engine import KEYS, Report, listing, main, need_root, skip

USERS = (54321, 12346)
STRANGER = 12345
MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "models")
FULL = os.environ.get("CBN_SWEEP") == "full"


def request(place, ops="fp8_gemm,fp8_quantize"):
    config = place.path("config.json")
    if not os.path.exists(config):
        shutil.copy(os.path.join(MODELS, "DeepSeek-V3.json"), config)
        os.chmod(config, 0o644)
    return ["--model", config, "--tp", "8", "--arch", "sm_90a", "--ops", ops]


def pack(place, cache, name, *options, **how):
    out = os.path.join(cache, name)
    said = place.run([place.files["cubinet"], "--cache", cache, "pack", out, *options], **how).stdout
    entries, digest = re.fullmatch(r"entries (\d+), bytes \d+\nsha256 ([0-9a-f]{64})\n", said).groups()
    with open(out, "rb") as file:
        return int(entries), digest, file.read()


def warm_twice(place, asked, wanted, **how):
    """Packs of two users' caches and of one that the first was unpacked into."""
    need_root()
    packs = []
    for number, user in enumerate(USERS):
        home = place.folder("home-%d" % user, 0o700, user, user)
        cache = os.path.join(home, "a/much/longer/path/to/it" if number else "c")
        place.run([place.files["cubinet"], "--cache", cache, "warm", *asked, "-j", str(1 + number), "--quiet"],
                  uid=user, umask=0o077 if number else 0o002, HOME=home, LC_ALL="C" if number else None,
                  TZ="Asia/Kolkata" if number else "UTC", **how)
        packs.append(pack(place, cache, "of-all", uid=user, HOME=home, **how))
        packs.append(pack(place, cache, "of-request", *asked, uid=user, HOME=home, **how))
    third = place.folder("third", 0o700)
    first = place.path("home-%d" % USERS[0], "c", "of-all")
    place.run([place.files["cubinet"], "--cache", third, "unpack", first, "--expect-digest", packs[0][1]])
    packs.append(pack(place, third, "again"))
    assert packs[0][0] == wanted, packs[0][0]
    assert all(each == packs[0] for each in packs), [(each[0], each[1]) for each in packs]
    print("%d packs of %d kernels, %d bytes, SHA-256 %s" % (len(packs), wanted, len(packs[0][2]), packs[0][1]))


def same(place):
    warm_twice(place, request(place), 24)


def real(place):
    nvrtc = os.environ.get("CUBINET_NVRTC")
    doctor = subprocess.run([place.files["cubinet"], "doctor"], stdout=subprocess.PIPE, text=True, check=False,
                            env={**place.environment, "CUBINET_NVRTC": nvrtc or "", "HOME": place.top}).stdout
    if not re.search("^ok +nvrtc", doctor, re.M):
        skip("no NVRTC here")
    if FULL:
        warm_twice(place, request(place), 24, CUBINET_NVRTC=nvrtc)
    else:
        warm_twice(place, request(place, "fp8_quantize"), 1, CUBINET_NVRTC=nvrtc)


def libraries(path, environment):
    out = subprocess.run(["ldd", path], stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout
    return [word for line in out.splitlines() for word in line.split() if word.startswith("/")]


def make_root(place, *files):
    """A root with these programs, what they load, and nothing else."""
    root = place.folder("root", 0o755)
    for path in files:
        for each in [path, *libraries(path, place.environment)]:
            # The place's own folder is /tools there.
            inside = each.replace(place.path("tools"), "/tools")
            os.makedirs(root + os.path.dirname(inside), exist_ok=True)
            shutil.copy(each, root + inside)
    return root


def in_root(place, root, command, code=0):
    """As the stranger; the root is mounted read-only over itself, and there is no /proc, /dev or /tmp in it."""
    mounts = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 77; shift; exec "$@"'
    done = place.run(["unshare", "--mount", "bash", "-c", mounts, "mounts", root, "chroot", "--userspec",
                      "%d:%d" % (STRANGER, STRANGER), "--groups=", root, *command], code=code,
                     LD_LIBRARY_PATH="/tools", CUBINET_NVRTC="/tools/libnvrtc_stub.so", HOME=None,
                     FAKE_NVRTC_COUNT=None, CUBINET_BASES="/kernels.pack")
    return done


def need_mounts():
    need_root()
    if subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        skip("no mount namespace can be made here")


def tree(root):
    return sorted((os.path.join(folder, name), os.lstat(os.path.join(folder, name)).st_mtime_ns)
                  for folder, folders, names in os.walk(root) for name in folders + names)


def root(place):
    need_mounts()
    if any("libasan" in path or "libclang_rt" in path for path in libraries(place.files["cubinet"], place.environment)):
        skip("a sanitizer reads /proc")
    cache = place.folder("cache", 0o700)
    place.report(place.engine(), CUBINET_CACHE=cache).expect(compiles=KEYS, puts=KEYS)
    place.run(place.verb("warm"), CUBINET_CACHE=cache)
    base = make_root(place, place.files["cubinet"], place.files["engine"], place.files["cuda"], place.files["nvrtc"])
    entries = pack(place, cache, "kernels.pack")[0]
    shutil.move(os.path.join(cache, "kernels.pack"), base)
    os.chmod(os.path.join(base, "kernels.pack"), 0o444)
    shutil.copy(place.path("manifest.json"), base)
    before = tree(base)
    check = ["/tools/cubinet", "check", "--manifest", "/manifest.json", "--arch", "sm_90a"]
    said = in_root(place, base, check)
    assert "missing 0, uncovered 0\n" in said.stdout, said
    engine = ["/tools/engine", "--cuda", "/tools/libcuda.so.1", "--calls", str(KEYS)]
    no_folder = "no cache folder is named by CUBINET_CACHE, XDG_CACHE_HOME or HOME: kernels stay in memory only"
    for options in ([], ["--never"]):
        report = Report(in_root(place, base, engine + options).stdout)
        report.expect([no_folder], base_hits=KEYS, compiles=0, puts=0, puts_dropped=0, misses_absent=0,
                      misses_damaged=0, loads=KEYS)
    for verb, last in (("verify", "checked %d, damaged 0, repaired 0\n" % entries), ("ls", None), ("stats", None)):
        said = in_root(place, base, ["/tools/cubinet", verb])
        assert last is None or said.stdout == last, said
    assert tree(base) == before
    # Without the pack the same engine is told what to do, and compiles nothing.
    os.remove(os.path.join(base, "kernels.pack"))
    shutil.copy(place.path("manifest.json"), os.path.join(base, "kernels.pack"))
    said = in_root(place, base, engine + ["--never"], code=1).stdout
    report = Report(said)
    assert report.stats["compiles"] == 0 and len(report.calls) == KEYS, said
    assert all("is in no layer of the cache and the miss policy is never; warm it with `cubinet warm" in call
               for call in report.calls), said
    assert "a cache layer is left out: /kernels.pack is no pack" in said, said
    said = in_root(place, base, check, code=3)
    assert "missing: fp8_quantize" in said.stdout, said


def base(place):
    need_root()
    cache, share = place.folder("cache", 0o700), place.folder("share", 0o755)
    place.report(place.engine(calls=5), CUBINET_CACHE=cache).expect(compiles=5, puts=5)
    pack(place, cache, "kernels.pack")
    shutil.move(os.path.join(cache, "kernels.pack"), share)
    os.chmod(os.path.join(share, "kernels.pack"), 0o444)
    overlay = place.folder("overlay", 0o700, STRANGER, STRANGER)
    nfs = {"LD_PRELOAD": place.files["statfs"], "FAKE_STATFS": "%s=6969" % share,
           "ASAN_OPTIONS": place.environment.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
    told = place.run([place.files["cubinet"], "--cache", overlay, "--base", share, "ls"], uid=STRANGER, **nfs)
    assert "lies on a filesystem not known to be local (nfs)" in told.stderr, told  # a folder may not be there
    bases = os.path.join(share, "kernels.pack")
    report = place.report(place.engine(), uid=STRANGER, CUBINET_CACHE=overlay, CUBINET_BASES=bases, **nfs)
    report.expect(base_hits=5, compiles=KEYS - 5, puts=KEYS - 5)
    report = place.report(place.engine(), uid=STRANGER, CUBINET_CACHE=overlay, CUBINET_BASES=bases, **nfs)
    report.expect(base_hits=5, overlay_hits=KEYS - 5, compiles=0)
    assert listing(share) == ["kernels.pack"]


if __name__ == "__main__":
    sys.exit(main({"same": same, "real": real, "root": root, "base": base}))
