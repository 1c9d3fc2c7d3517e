#!/usr/bin/env python3
"""Where the cache lies when nothing good is named: no usable HOME, and filesystems that are not local.

home:    HOME unset, the root, relative, missing, read-only by mode and by mount: said once, and from memory.
remote:  a statfs that tells NFS, Lustre, FUSE, 9p and others: the default folder falls back, a named one is refused.
"""
import os
import shutil
import subprocess
import sys

from engine import listing, main, mode_of, need_root, skip

USER = 54321
NO_FOLDER = "no cache folder is named by CUBINET_CACHE, XDG_CACHE_HOME or HOME: kernels stay in memory only"
# statfs(2), linux/magic.h; the last is of no filesystem that is known.
REMOTE = {"nfs": "6969", "lustre": "bd00bd0", "cifs": "ff534d42", "smb2": "fe534d42", "ceph": "c36400",
          "gpfs": "47504653", "beegfs": "19830326", "9p": "1021997", "fuse": "65735546", "0x12345": "12345"}


def expect_memory(place, notice, **how):
    place.report(place.engine(calls=3), **how).expect([notice], compiles=3, puts=0, puts_dropped=3, overlay_hits=0)


def home(place):
    need_root()
    for value in (None, "", "/", "//", "/.", "/./", "relative/home"):
        expect_memory(place, NO_FOLDER, uid=USER, HOME=value)
        expect_memory(place, NO_FOLDER, HOME=value)  # root could write there
    assert not os.path.exists("/.cache/cubinet")
    missing = place.folder("missing", 0o755)
    told = "a cache layer is left out: cannot make the folder %s/%s; name another cache folder: Permission denied"
    expect_memory(place, told % (missing, "user"), uid=USER, HOME=os.path.join(missing, "user"))
    expect_memory(place, told % (missing, ".cache"), uid=USER, HOME=missing)
    assert listing(missing) == []
    # A file in the folder's place.
    odd = place.folder("odd", 0o700, USER, USER)
    os.mkdir(os.path.join(odd, ".cache"))
    with open(os.path.join(odd, ".cache", "cubinet"), "wb"):
        pass
    os.chown(os.path.join(odd, ".cache"), USER, USER)
    expect_memory(place, "a cache layer is left out: %s/.cache/cubinet is not a folder; name a folder" % odd, uid=USER,
                  HOME=odd)
    # Warm, then read-only: what it holds is served, the rest comes from memory.
    warm = place.folder("warm", 0o700, USER, USER)
    place.report(place.engine(calls=3), uid=USER, HOME=warm).expect(compiles=3, puts=3)
    cache = os.path.join(warm, ".cache", "cubinet")
    before = listing(cache)
    read_only = "the cache folder %s cannot be written by this user: it is read only, new kernels are not kept" % cache
    subprocess.run(["chmod", "-R", "a-w", warm], check=True)
    place.report(place.engine(calls=5), uid=USER, HOME=warm).expect([read_only], compiles=2, puts=0, overlay_hits=3)
    subprocess.run(["chmod", "-R", "u+w", warm], check=True)
    home_read_only_by_mount(place, warm, read_only)
    assert listing(cache) == before
    place.report(place.engine(calls=5), uid=USER, HOME=warm).expect(compiles=2, puts=2, overlay_hits=3)


def home_read_only_by_mount(place, warm, read_only):
    cold = place.folder("cold", 0o700, USER, USER)
    script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 77; shift; exec "$@"'
    as_user = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups"]
    no_room = "cannot make the folder %s/.cache; name another cache folder: Read-only file system" % cold
    if subprocess.run(["unshare", "--mount", "bash", "-c", script, "mounts", cold, "true"], stderr=subprocess.DEVNULL,
                      check=False).returncode:
        print("skipped in part: no mount namespace here")
        return
    for folder, drop, notice, hits in ((cold, as_user, no_room, 0), (cold, [], no_room, 0),
                                       (warm, as_user, read_only, 3)):
        command = ["unshare", "--mount", "bash", "-c", script, "mounts", folder, *drop, *place.engine(calls=5)]
        place.report(command, HOME=folder).expect([notice], compiles=5 - hits, puts=0, overlay_hits=hits)
    assert listing(cold) == []


class Remote:
    """A HOME on a filesystem that statfs calls kind."""

    def __init__(self, place, kind, uid):
        self.place, self.kind, self.uid = place, kind, uid
        self.home = place.folder("home-" + kind, 0o755, uid, uid)
        self.default = os.path.join(self.home, ".cache", "cubinet")
        self.fallback = "/var/tmp/cubinet-%d" % uid
        self.how = {"uid": uid, "HOME": self.home, "LD_PRELOAD": place.files["statfs"],
                    "FAKE_STATFS": "%s=%s" % (self.home, REMOTE[kind])}
        if "ASAN_OPTIONS" in place.environment:
            self.how["ASAN_OPTIONS"] = place.environment["ASAN_OPTIONS"] + ":verify_asan_link_order=0"
        self.said = ("the default cache folder %s is on %s, which cannot carry a live store; using %s" %
                     (self.default, kind, self.fallback))
        self.refused = ("lies on a filesystem not known to be local (%s); use a local one, such as %s" %
                        (kind, self.fallback))

    def falls_back(self):
        place = self.place
        report = place.report(place.engine(calls=3), **self.how)
        report.expect([self.said], compiles=3, puts=3)
        assert report.settings["cache_dir"] == ("fallback", self.fallback), report.settings
        owner = os.stat(self.fallback)
        assert (owner.st_uid, mode_of(self.fallback)) == (self.uid, 0o700)
        place.report(place.engine(calls=3), **self.how).expect([self.said], compiles=0, overlay_hits=3)
        assert listing(self.home) == [], listing(self.home)

    def is_shown(self):
        place = self.place
        done = place.run(place.verb("doctor"), CUBINET_CUDA="/nonexistent", **self.how)
        lines = [line for line in done.stdout.splitlines() if "cache-folder: " in line]
        assert len(lines) == 1 and lines[0].startswith("ok "), done.stdout
        assert (self.fallback + " (in place of the default folder, whose filesystem is not known to be local): exists, "
                in lines[0]), lines
        assert done.stderr == "cubinet: %s\n" % self.said, done.stderr
        shown = place.run(place.verb("config"), **self.how).stdout
        assert [self.fallback, "fallback"] == shown.splitlines()[0].split()[1:], shown

    def explicit_is_refused(self):
        place = self.place
        for named in (os.path.join(self.home, "named"), self.home):
            expect_memory(place, self.refused, CUBINET_CACHE=named, **self.how)
            required = place.run(place.engine("--flags", "8", calls=1), CUBINET_CACHE=named, code=1, **self.how).stdout
            assert "create " in required and self.refused in required, required
            told = place.run(place.verb("warm"), code=1, CUBINET_CACHE=named, **self.how).stderr
            assert told.startswith("cubinet: warm: the cache folder %s " % named) and self.refused in told, told
        assert listing(self.home) == [], listing(self.home)
        told = place.run(place.verb("doctor"), code=1, CUBINET_CACHE=self.home, CUBINET_CUDA="/none", **self.how).stdout
        assert "its filesystem (%s) is not known to be local" % self.kind in told, told
        assert "mend: use a folder on a local disk, such as " + self.fallback in told, told

    def a_base_is_left_out(self):
        place = self.place
        report = place.report(place.engine("--base", self.home, calls=3), CUBINET_CACHE=place.path("local"), **self.how)
        report.expect(["a cache layer is left out: the cache folder %s %s" % (self.home, self.refused)], base_hits=0)

    def nowhere_else(self):
        self.how["FAKE_STATFS"] += ":/var/tmp=%s" % REMOTE[self.kind]
        report = self.place.report(self.place.engine(calls=2), **self.how)
        report.expect([self.said, "the cache folder %s %s" % (self.fallback, self.refused)], compiles=2, puts=0)


def remote(place):
    need_root()
    uid = 200000 + os.getpid() % 100000
    fallback = "/var/tmp/cubinet-%d" % uid
    if os.path.lexists(fallback):
        skip("%s is there already" % fallback)
    place.folder("local", 0o700, uid, uid)
    try:
        for kind in REMOTE:
            case = Remote(place, kind, uid)
            case.falls_back()
            case.is_shown()
            case.a_base_is_left_out()
            case.explicit_is_refused()
            shutil.rmtree(fallback)
            case.nowhere_else()
            assert not os.path.exists(fallback)
    finally:
        shutil.rmtree(fallback, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main({"home": home, "remote": remote}))
