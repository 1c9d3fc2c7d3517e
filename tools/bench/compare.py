#!/usr/bin/env python3
"""Holds the benchmark's CSVs against the goals of the decode GEMM: ratios to the best peer and shares of the floors.

  compare.py RUN.csv [RUN.csv...] [--baseline FILE.csv]... [--detail]

RUN: what gemm_bench and peers.py wrote, any number of runs: Cubinet and the floors count with the median of theirs, a
peer with its lowest. A peer that no run has at that (N, K) counts with its lowest figure in the baselines (same
columns); at an M where none of these has one, with the lower of its figures at the nearest M below and above (~).
The best pair at bf16 in is FlashInfer's own or DeepGEMM plus 1.3 us for the quantiser.
"""
import argparse
import csv
import math
import statistics
import sys
from collections import defaultdict

P = [(2112, 7168), (7168, 2048), (4096, 7168), (24576, 1536), (32768, 512), (7168, 16384), (3072, 1536), (4608, 7168),
     (512, 7168), (7168, 2304), (1536, 4096)]
L = [(7168, 18432), (18432, 7168), (36864, 7168), (10240, 5120), (5120, 8192), (34816, 5120), (5120, 17408)]
STATED = (7168, 256)
NARROW, NARROW_US = (2112, 7168), 5.5
QUANTISER_US = 1.3  # of DeepGEMM's pair at bf16 in
BF16_MORE_US = 1.5  # that bf16 in may cost on L
FLOOR_15MB_US, FLOOR_SPREAD = 3.6, 0.05

CODES_PEERS = ["deepgemm", "deepgemm_pdl", "flashinfer_fp8in", "cublaslt", "torch_scaled_mm", "triton"]
DEEPGEMM = ["deepgemm", "deepgemm_pdl"]
PDL, NO_PDL = ["cubinet_pdl_static", "cubinet_pdl"], ["cubinet_nopdl"]
FLOORS = {"early": "floor_early", "pdl": "floor_pdl", "plain": "floor_plain"}

# Name, shapes, bf16 in, mode, Ms, goals: geometric mean and least of peer/ours, least share of a floor (None: no goal).
CLASSES = [
    ("P codes PDL M 1-16", P, False, PDL, (1, 4, 8, 16), 1.6, 1.12, None),
    ("P codes PDL M 24-32", P, False, PDL, (24, 31, 32), 1.35, 1.15, None),
    ("P codes PDL M 64", P, False, PDL, (64,), 1.15, 0.97, None),
    ("P codes no PDL M 1-16", P, False, NO_PDL, (1, 4, 8, 16), 1.25, 0.98, None),
    ("P bf16 PDL M 1-16", P, True, PDL, (1, 4, 8, 16), 1.6, 1.12, None),
    ("P bf16 PDL M 24-32", P, True, PDL, (24, 31, 32), 1.3, 1.1, None),
    ("P bf16 PDL M 48-64", P, True, PDL, (48, 64), 1.1, 0.93, None),
    ("L codes PDL M 1-16", L, False, PDL, (1, 4, 8, 16), None, 1.0, 0.90),
    ("L codes PDL M 32", L, False, PDL, (32,), None, 1.0, 0.86),
    ("L codes no PDL M 1-16", L, False, NO_PDL, (1, 4, 8, 16), None, None, 0.90),
    ("L bf16 PDL M 1-16", L, True, PDL, (1, 4, 8, 16), None, None, None),
    ("L bf16 PDL M 32", L, True, PDL, (32,), None, None, None),
]


def read_figures(paths):
    """(peer, N, K) -> M -> [us]"""
    figures = defaultdict(lambda: defaultdict(list))
    for path in paths:
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["op"] in ("gemm", "floor") and row["median_us_graph"]:
                    key = (row["peer"], int(row["N"]), int(row["K"]))
                    figures[key][int(row["M"])].append(float(row["median_us_graph"]))
    return figures


def near(by_m, m):
    """(us, exact) of a peer at M, or None."""
    if not by_m:
        return None
    if m in by_m:
        return min(by_m[m]), True
    below, above = [x for x in by_m if x < m], [x for x in by_m if x > m]
    sides = ([max(below)] if below else []) + ([min(above)] if above else [])
    return min(min(by_m[side]) for side in sides), False


class Figures:
    def __init__(self, runs, baselines):
        self.runs, self.baselines = read_figures(runs), read_figures(baselines)

    def own(self, peers, shape, m, bf16=False):
        for peer in peers:
            us = self.runs.get((peer + ("_bf16in" if bf16 else ""), *shape), {}).get(m)
            if us:
                return statistics.median(us)
        return None

    def floor(self, name, shape):
        return self.own([FLOORS[name]], shape, 0)

    def peer(self, name, shape, m):
        """(us, peer, exact) or None"""
        here = self.runs.get((name, *shape))
        if here:
            return (min(here[m]), name, True) if m in here else None
        found = near(self.baselines.get((name, *shape)), m)
        return found and (found[0], name, found[1])

    def best(self, shape, m, bf16):
        """The best peer's (us, name, exact), or None. What is inferred counts only where nothing was measured."""
        names = DEEPGEMM if bf16 else CODES_PEERS
        found = [self.peer(name, shape, m) for name in names]
        if bf16:
            found = [pair and (pair[0] + QUANTISER_US, pair[1] + "+1.3", pair[2]) for pair in found]
            found.append(self.peer("flashinfer_bf16in", shape, m))
        known = [figure for figure in found if figure]
        others = [figure for figure in known if not self.has_run(figure[1], shape)]
        exact = any(figure[2] for figure in others)
        return min((figure for figure in known if figure[2] or not exact), default=None)

    def has_run(self, peer, shape):
        return bool(self.runs.get((peer.removesuffix("+1.3"), *shape)))


class Point:
    def __init__(self, figures, shape, m, bf16, mode):
        self.shape, self.m = shape, m
        self.us = figures.own(mode, shape, m, bf16)
        self.codes_us = figures.own(mode, shape, m) if bf16 else None
        self.best = figures.best(shape, m, bf16)
        self.floor = figures.floor("plain" if mode is NO_PDL else "early", shape)
        self.plain = figures.floor("plain", shape)

    @property
    def ratio(self):
        return self.best[0] / self.us if self.us and self.best else None

    @property
    def share(self):
        return self.floor / self.us if self.us and self.floor else None

    @property
    def more(self):
        return self.us - self.codes_us if self.us and self.codes_us else None

    def __str__(self):
        return f"{self.shape[0]}x{self.shape[1]} M={self.m}"


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def number(value, goal=None, format="%.2f"):
    if value is None:
        return "-"
    return format % value + (f" ({goal:g})" if goal is not None else "")


def worst(points, attribute):
    known = [point for point in points if getattr(point, attribute) is not None]
    return min(known, key=lambda point: getattr(point, attribute), default=None)


def summarise(points, goals):
    """The cells of a class, and its verdict."""
    mean_goal, least_goal, share_goal = goals
    ratios = [point.ratio for point in points if point.ratio is not None]
    low, low_share = worst(points, "ratio"), worst(points, "share")
    shares = [point.share for point in points if point.share is not None]
    measured = [(mean(ratios), mean_goal), (low and low.ratio, least_goal), (low_share and low_share.share, share_goal)]
    asked = [(value, goal) for value, goal in measured if goal is not None]
    missing = sum(1 for point in points if (point.ratio is None and (mean_goal or least_goal)) or
                  (point.share is None and share_goal) or point.us is None)
    if not asked:
        verdict = "stated"
    elif any(value is not None and value < goal for value, goal in asked):
        verdict = "MISSED"
    else:
        verdict = "open" if missing else "met"
    about = sum(1 for point in points if point.ratio is not None and not point.best[2])
    cells = [f"{len(points) - missing}/{len(points)}" + (f" ~{about}" if about else ""),
             number(mean(ratios), mean_goal),
             number(low and low.ratio, least_goal) + (f" {low} {low.best[1]}" if low else ""),
             number(mean(shares)),
             number(low_share and low_share.share, share_goal) + (f" {low_share}" if low_share else "")]
    return cells, verdict


def print_table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")
        if row is rows[0]:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    print()


def print_classes(figures, detail):
    rows = [["class", "points", "geomean", "least", "floor share", "least share", "verdict"]]
    for name, shapes, bf16, mode, ms, *goals in CLASSES:
        points = [Point(figures, shape, m, bf16, mode) for shape in shapes for m in ms]
        cells, verdict = summarise(points, goals)
        rows.append([name, *cells, verdict])
        if detail and len(detail_rows(points)) > 1:
            print(f"{name}:")
            print_table(detail_rows(points))
    print_table(rows)


def detail_rows(points):
    rows = [["N x K", "M", "us", "best peer", "ratio", "floor", "share", "of the plain floor"]]
    for point in points:
        if not (point.us or point.best or point.floor):
            continue
        peer = "-" if not point.best else f"{'' if point.best[2] else '~'}{point.best[0]:.2f} {point.best[1]}"
        plain = point.plain / point.us if point.plain and point.us else None
        rows.append(["%dx%d" % point.shape, str(point.m), number(point.us), peer, number(point.ratio),
                     number(point.floor), number(point.share), number(plain)])
    return rows


def print_narrow(figures):
    times = [figures.own(PDL, NARROW, m) for m in (1, 4, 8, 16)]
    known = [us for us in times if us]
    verdict = "met" if known and max(known) <= NARROW_US else "MISSED"
    text = f"{max(known):.2f} us, goal {NARROW_US}: {verdict}" if known else "open"
    print("2112x7168, codes, PDL, M 1-16, the slowest:", text)


def print_bf16_more(figures):
    points = [Point(figures, shape, m, True, PDL) for shape in L for m in (1, 4, 8, 16, 32)]
    known = [point for point in points if point.more is not None]
    if not known:
        print("L, bf16 in over codes: open")
        return
    most = max(known, key=lambda point: point.more)
    verdict = "met" if most.more <= BF16_MORE_US else "MISSED"
    print(f"L, bf16 in over codes, the most: {most.more:.2f} us at {most}, goal {BF16_MORE_US}: {verdict}")


def print_floor_check(figures):
    for shape in ((7168, 2048), (2112, 7168)):
        us = figures.floor("early", shape)
        if us:
            off = us / FLOOR_15MB_US - 1.0
            verdict = "counts" if off <= FLOOR_SPREAD else "DOES NOT COUNT"
            print(f"early floor at {shape[0]}x{shape[1]}: {us:.2f} us, {off:+.0%} of {FLOOR_15MB_US}: {verdict}")


def print_stated(figures):
    floors = ", ".join(f"{name} {number(figures.floor(name, STATED))}" for name in FLOORS)
    print(f"\n{STATED[0]}x{STATED[1]}: floors {floors}")
    rows = [["M", "codes PDL", "best peer", "bf16 PDL", "best peer bf16", "codes no PDL"]]
    for m in (1, 4, 8, 16, 24, 31, 32, 48, 64):
        best = [figures.best(STATED, m, bf16) for bf16 in (False, True)]
        peers = [f"{found[0]:.2f} {found[1]}" if found else "-" for found in best]
        own = [figures.own(PDL, STATED, m), figures.own(PDL, STATED, m, True), figures.own(NO_PDL, STATED, m)]
        rows.append([str(m), number(own[0]), peers[0], number(own[1]), peers[1], number(own[2])])
    print_table(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="+")
    parser.add_argument("--baseline", action="append", default=[])
    parser.add_argument("--detail", action="store_true", help="every point too")
    options = parser.parse_args()
    figures = Figures(options.run, options.baseline)
    print_classes(figures, options.detail)
    print_narrow(figures)
    print_bf16_more(figures)
    print_floor_check(figures)
    print_stated(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
