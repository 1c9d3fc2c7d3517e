#!/usr/bin/env python3
"""Several users and one folder, and programs that run for another than who started them.

group:   a folder of mode 2770 under a umask of 077: who is of the group reads and writes, who is not is told.
secure:  a setuid program, and one with file capabilities, ignore the environment, and so do the children they build in.
"""
import os
import shutil
import subprocess
import sys

from engine import KEYS, Report, listing, main, mode_of, need_root, skip

OWNER, SECOND, STRANGER, TEAM = 54321, 54322, 54323, 54399


def group(place):
    need_root()
    cache = place.folder("shared", 0o2770, OWNER, TEAM)
    of_team = {"groups": (TEAM,), "umask": 0o077, "CUBINET_CACHE": cache}
    place.report(place.engine(calls=4), uid=OWNER, **of_team).expect(compiles=4, puts=4, overlay_hits=0)
    place.report(place.engine(calls=8), uid=SECOND, **of_team).expect(compiles=4, puts=4, overlay_hits=4)
    place.report(place.engine(), uid=OWNER, **of_team).expect(compiles=KEYS - 8, puts=KEYS - 8, overlay_hits=8)
    place.report(place.engine(), uid=SECOND, **of_team).expect(compiles=0, puts=0, overlay_hits=KEYS)
    for uid in (OWNER, SECOND):
        out = place.run(place.verb("verify"), uid=uid, **of_team).stdout
        assert out == "checked %d, damaged 0, repaired 0\n" % KEYS, out
    place.run(place.verb("prune", "--all", "--compact"), uid=SECOND, **of_team)
    place.report(place.engine(), uid=OWNER, **of_team).expect(compiles=KEYS, puts=KEYS, overlay_hits=0)
    place.report(place.engine(), uid=SECOND, **of_team).expect(compiles=0, puts=0, overlay_hits=KEYS)
    assert mode_of(cache) == 0o2770
    assert [(name, mode_of(os.path.join(cache, name)), os.stat(os.path.join(cache, name)).st_gid)
            for name in listing(cache)] == [("data.mdb", 0o660, TEAM), ("lock", 0o660, TEAM)]
    # A folder made inside of it is its maker's: the others are told.
    inner = os.path.join(cache, "inner")
    place.report(place.engine(calls=1), uid=OWNER, **dict(of_team, CUBINET_CACHE=inner)).expect(puts=1)
    assert mode_of(inner) & 0o777 == 0o700
    place.report(place.engine(calls=1), uid=SECOND, **dict(of_team, CUBINET_CACHE=inner)).expect(
        ["does not share it with a group of this user; share '%s' with chmod g+rwxs" % inner], compiles=1, puts=0)
    shutil.rmtree(inner)
    # Not of the group: told once, everything from memory. A verb that needs the folder names the mend.
    place.report(place.engine(), uid=STRANGER, CUBINET_CACHE=cache).expect(
        ["another user owns it and does not share it with a group of this user"], compiles=KEYS, puts=0)
    told = place.run(place.verb("ls"), uid=STRANGER, code=1, CUBINET_CACHE=cache).stderr
    assert "chmod g+rwxs" in told and "--trust-folder (CBN_RUNTIME_TRUST_FOLDER)" in told, told


def expect_ignored(place, program, environment, trap):
    done = place.run([program, *place.engine("--nvrtc", place.files["nvrtc"], "--builder", place.path("builder"))[1:]],
                     uid=SECOND, **environment)
    report = Report(done.stdout)
    report.expect(["no cache folder is named by CUBINET_CACHE"], compiles=KEYS, puts=0, base_hits=0, overlay_hits=0)
    for name in ("cache_dir", "bases", "policy", "disable", "enable"):
        assert report.settings[name] == ("default", ""), (name, report.settings[name])
    assert listing(trap) == [], listing(trap)
    with open(place.path("seen"), encoding="utf-8") as file:
        seen = file.read()
    assert "children" in seen and "CANARY" not in seen and "CUBINET_" not in seen, seen


def secure(place):
    need_root()
    if os.statvfs(place.top).f_flag & os.ST_NOSUID:
        skip("%s is mounted nosuid" % place.top)
    if "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ:
        skip("a sanitizer's runtime does not start in a setuid program")
    trap, base = place.folder("trap", 0o700, SECOND, SECOND), place.folder("base", 0o755)
    place.report(place.engine(), CUBINET_CACHE=base)
    os.chmod(os.path.join(base, "data.mdb"), 0o444)
    with open(place.path("builder"), "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\n{ echo children; env; } >>%s\nexec %s "$@"\n' %
                   (place.path("seen"), place.files["engine"]))
    os.chmod(place.path("builder"), 0o755)
    with open(place.path("seen"), "wb"):
        os.chmod(place.path("seen"), 0o666)
    environment = {"CUBINET_CACHE": os.path.join(trap, "a"), "XDG_CACHE_HOME": os.path.join(trap, "b"), "HOME": trap,
                   "CUBINET_BASES": base, "CUBINET_POLICY": "reference", "CUBINET_DISABLE": "vector", "CANARY": "1"}
    setuid, capable = shutil.copy(place.files["engine"], place.path("setuid")), place.path("capable")
    os.chown(setuid, OWNER, OWNER)
    os.chmod(setuid, 0o4755)
    expect_ignored(place, setuid, environment, trap)
    shutil.copy(place.files["engine"], capable)
    os.truncate(place.path("seen"), 0)
    if shutil.which("setcap") and subprocess.run(["setcap", "cap_net_bind_service+ep", capable],
                                                 stderr=subprocess.DEVNULL, check=False).returncode == 0:
        expect_ignored(place, capable, environment, trap)
    else:
        print("skipped in part: no file capabilities here")
    # The same of a plain program: the environment counts, so the assertions above can fail.
    del environment["CUBINET_DISABLE"]
    os.truncate(place.path("seen"), 0)
    plain = place.report(place.engine("--builder", place.path("builder")), uid=SECOND, **environment)
    plain.expect(compiles=0, base_hits=KEYS)
    assert plain.settings["cache_dir"] == ("CUBINET_CACHE", os.path.join(trap, "a")), plain.settings
    del environment["CUBINET_BASES"]
    place.report(place.engine("--builder", place.path("builder")), uid=SECOND, **environment).expect(compiles=KEYS)
    with open(place.path("seen"), encoding="utf-8") as file:
        assert "CANARY=1" in file.read()


if __name__ == "__main__":
    sys.exit(main({"group": group, "secure": secure}))
