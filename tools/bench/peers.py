#!/usr/bin/env python3
"""Times other systems' block-scaled FP8 products on the GPU, with the rotation, the checks and the CSV of gemm_bench.

  peers.py [--shapes LIST] [--m LIST] [--peers LIST] [--replays N] [--csv FILE]

Peers: torch (scaled_mm with 1x128 and 128x128 scales), triton (the kernel below: one group of 128 of K a step, no
split of K; triton_bf16in quantises first, in a launch of its own), deepgemm (PDL off and on), flashinfer (codes in and
bf16 in). One that cannot be imported is skipped with a word; one that fails four times is left out from there on.
Without torch or without a GPU the exit status is 77.
"""
import argparse
import csv
import importlib
import sys

LIST_P = ("2112x7168,7168x2048,4096x7168,24576x1536,32768x512,7168x16384,3072x1536,4608x7168,512x7168,7168x2304,"
          "1536x4096")
LIST_L = "7168x18432,18432x7168,36864x7168,10240x5120,5120x8192,34816x5120,5120x17408"
COLUMNS = "peer,op,M,N,K,groups,median_us_graph,median_us_events,TFLOPs,GBps,rel_err,notes".split(",")
ROTATED_BYTES = 200_000_000
GRAPH_US = 2500.0
CALLS_MAX = 400
GROUP = 128
FAILURES_MAX = 4  # then a peer is left out
ERROR_MAX = 1e-2  # a peer's own quantiser may round otherwise than ours
EXIT_SKIPPED = 77

try:
    import torch
except ImportError:
    torch = None
try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None


def ceil_div(value, step):
    return -(-value // step)


def round_up(value, step):
    return ceil_div(value, step) * step


# ---- Triton ----

if triton:

    @triton.jit(do_not_specialize=["m", "a_scale_stride"])
    def multiply_kernel(a, w, d, a_scale, w_scale, m, n, k, a_scale_stride, w_scale_stride, BM: tl.constexpr,
                        BN: tl.constexpr):
        row = tl.program_id(1) * BM + tl.arange(0, BM)
        column = tl.program_id(0) * BN + tl.arange(0, BN)
        element = tl.arange(0, 128)
        a_at = a + (row % m)[:, None].to(tl.int64) * k + element[None, :]
        w_at = w + (column % n)[None, :].to(tl.int64) * k + element[:, None]
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for group in range(0, k // 128):
            scale = tl.load(a_scale + group * a_scale_stride + row % m)
            weight = tl.load(w_scale + (tl.program_id(0) * BN // 128) * w_scale_stride + group)
            total += tl.dot(tl.load(a_at), tl.load(w_at)) * (scale * weight)[:, None]
            a_at += 128
            w_at += 128
        mask = (row < m)[:, None] & (column < n)[None, :]
        tl.store(d + row[:, None].to(tl.int64) * n + column[None, :], total.to(tl.bfloat16), mask=mask)

    @triton.jit(do_not_specialize=["scale_stride"])
    def quantise_kernel(x, codes, scales, k, scale_stride, GROUPS: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        group = tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)
        at = row * k + group[:, None] * 128 + tl.arange(0, 128)[None, :]
        mask = group < k // 128
        value = tl.load(x + at, mask=mask[:, None], other=0.0).to(tl.float32)
        scale = tl.maximum(tl.max(tl.abs(value), 1), 1e-10) * (1.0 / 448.0)
        code = tl.clamp(value / scale[:, None], -448.0, 448.0).to(tl.float8e4nv)
        tl.store(codes + at, code, mask=mask[:, None])
        tl.store(scales + group * scale_stride + row, scale, mask=mask)


def triton_tilings(m):
    """(BM, BN, warps, stages) to choose from; no BN above 128, so that one weight scale serves a tile."""
    if m <= 16:
        return [(16, 32, 4, 6), (16, 64, 4, 5), (16, 128, 4, 5), (16, 128, 8, 4)]
    if m <= 32:
        return [(16, 64, 4, 5), (32, 32, 4, 6), (32, 64, 4, 5), (32, 128, 4, 4)]
    return [(32, 64, 4, 5), (64, 32, 4, 5), (64, 64, 4, 5), (64, 128, 4, 4)]


# ---- the problem: operands, the fp32 reference, time ----


class Problem:
    """Weights with their scales for one (N, K), in enough copies, and activations of the largest M."""

    def __init__(self, n, k, m_max, replays):
        self.n, self.k, self.replays = n, k, replays
        self.groups, self.blocks = k // GROUP, ceil_div(n, GROUP)
        copies = max(2, ROTATED_BYTES // (n * k) + 1)
        self.w = [self.random_codes(n, k) for _ in range(copies)]
        self.w_scale = [torch.rand(self.blocks, self.groups, device="cuda") * 0.01 + 0.005 for _ in range(copies)]
        rows = round_up(m_max, 4)
        spread = torch.exp2(torch.randint(-3, 5, (rows, self.groups, 1), device="cuda").float())
        x = torch.randn(rows, self.groups, GROUP, device="cuda") * spread
        self.x = x.view(rows, k).to(torch.bfloat16)
        value = self.x.float().view(rows, self.groups, GROUP)
        self.scales = value.abs().amax(2).clamp(1e-10) * (1.0 / 448.0)
        self.codes = (value / self.scales[..., None]).clamp(-448, 448).to(torch.float8_e4m3fn).view(rows, k)
        self.reference = self.multiply()
        self.stream = torch.cuda.Stream()

    @staticmethod
    def random_codes(n, k):
        codes = torch.randint(0, 256, (n, k), device="cuda", dtype=torch.uint8)
        codes ^= ((codes & 127) == 127).to(torch.uint8)  # no NaN
        return codes.view(torch.float8_e4m3fn)

    def multiply(self):
        a = self.codes.float().view(-1, self.groups, GROUP) * self.scales[..., None]
        scale = self.w_scale[0].repeat_interleave(GROUP, 0)[: self.n].repeat_interleave(GROUP, 1)
        return a.view(-1, self.k) @ (self.w[0].float() * scale).t()

    def scales_by_group(self, m):
        """[m, groups] whose storage is [groups, ceil4(m)]."""
        storage = torch.zeros(self.groups, round_up(m, 4), device="cuda")
        storage[:, :m] = self.scales[:m].t()
        return storage[:, :m].t()

    def bytes_moved(self, m, bf16_in):
        a_bytes = 2 * self.k if bf16_in else self.k + 4 * self.groups
        return m * (a_bytes + 2 * self.n) + self.n * self.k + 4 * self.blocks * self.groups

    def error(self, d, m):
        d = d[:m].float()
        if not bool(torch.isfinite(d).all()):
            return float("nan")
        return float((d - self.reference[:m]).norm() / self.reference[:m].norm())

    def run_once(self, call):
        torch.cuda.synchronize()
        with torch.cuda.stream(self.stream):
            result = call(0)
        self.stream.synchronize()
        return result

    def time(self, call, replays=None, share=1.0):
        """Median of a graph's replays over its calls; the last call reads copy 0."""
        copies = len(self.w)
        likely = self.n * self.k / 4.2e6 + 3.0
        calls = round_up(int(min(CALLS_MAX, max(1, share * GRAPH_US / likely))), copies)
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        keep = []  # results that a call allocates
        with torch.cuda.stream(self.stream):
            graph.capture_begin(capture_error_mode="relaxed")
            try:
                for i in range(calls):
                    keep = [call(copies - 1 - i % copies)]
            finally:
                graph.capture_end()
            graph.replay()
            times = []
            for _ in range(replays or self.replays):
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record(self.stream)
                graph.replay()
                end.record(self.stream)
                self.stream.synchronize()
                times.append(begin.elapsed_time(end) * 1e3 / calls)
        del keep
        return sorted(times)[len(times) // 2]


# ---- peers: each yields (peer, call, output, notes); call(copy) returns the output where it allocates it ----


def peer_torch(problem, m):
    functional = torch.nn.functional
    if not hasattr(functional, "scaled_mm"):
        raise RuntimeError(f"torch {torch.__version__} has no scaled_mm")
    recipe = functional.ScalingType
    rows = round_up(m, 4)
    a, a_scale = problem.codes[:rows], problem.scales_by_group(rows)
    padding = -problem.groups % 4
    w_scale = [functional.pad(scale, (0, padding)).t() for scale in problem.w_scale]

    def call(copy):
        return functional.scaled_mm(a, problem.w[copy].t(), a_scale, recipe.BlockWise1x128, w_scale[copy],
                                    recipe.BlockWise128x128, output_dtype=torch.bfloat16)

    yield "torch_scaled_mm", call, None, f"Mp={rows} torch={torch.__version__}"


def peer_triton(problem, m):
    if not triton:
        raise RuntimeError("no triton")
    d = torch.empty(m, problem.n, device="cuda", dtype=torch.bfloat16)
    codes = torch.empty(m, problem.k, device="cuda", dtype=torch.float8_e4m3fn)
    made = torch.zeros(problem.groups, round_up(m, 4), device="cuda")
    given = problem.scales_by_group(m)
    x, groups = problem.x[:m].contiguous(), problem.groups

    def product(copy, tiling, a, scale, stride):
        bm, bn, warps, stages = tiling
        grid = (ceil_div(problem.n, bn), ceil_div(m, bm))
        multiply_kernel[grid](a, problem.w[copy], d, scale, problem.w_scale[copy], m, problem.n, problem.k, stride,
                              groups, BM=bm, BN=bn, num_warps=warps, num_stages=stages)

    def codes_in(tiling):
        return lambda copy: product(copy, tiling, problem.codes, given, given.stride(1))

    def quick(tiling):
        problem.run_once(codes_in(tiling))
        return problem.time(codes_in(tiling), replays=2, share=0.3)

    best = min(triton_tilings(m), key=quick)

    def bf16_in(copy):
        quantise_kernel[(m, ceil_div(groups, 8))](x, codes, made, problem.k, made.stride(0), GROUPS=8, num_warps=4)
        product(copy, best, codes, made, made.stride(0))

    notes = "BM=%d BN=%d warps=%d stages=%d triton=" % best + triton.__version__
    yield "triton", codes_in(best), d, notes
    yield "triton_bf16in", bf16_in, d, notes + " launches=2"


def peer_deepgemm(problem, m):
    deep_gemm = importlib.import_module("deep_gemm")
    d = torch.empty(m, problem.n, device="cuda", dtype=torch.bfloat16)
    a = (problem.codes[:m], problem.scales_by_group(m))

    def call(copy):
        deep_gemm.fp8_gemm_nt(a, (problem.w[copy], problem.w_scale[copy]), d)

    notes = "version=" + str(getattr(deep_gemm, "__version__", "unknown"))
    if hasattr(deep_gemm, "set_pdl"):
        deep_gemm.set_pdl(False)
    yield "deepgemm", call, d, notes
    if hasattr(deep_gemm, "set_pdl"):
        deep_gemm.set_pdl(True)
        yield "deepgemm_pdl", call, d, notes
        deep_gemm.set_pdl(False)


def peer_flashinfer(problem, m):
    gemm = importlib.import_module("flashinfer.gemm")
    if not hasattr(gemm, "fp8_blockscale_gemm_sm90"):
        raise RuntimeError("flashinfer.gemm has no fp8_blockscale_gemm_sm90")
    d = torch.empty(m, problem.n, device="cuda", dtype=torch.bfloat16)
    codes, x, scales = problem.codes[:m], problem.x[:m].contiguous(), problem.scales[:m].contiguous()

    def codes_in(copy):
        gemm.fp8_blockscale_gemm_sm90(codes, problem.w[copy], scales, problem.w_scale[copy], out=d)

    def bf16_in(copy):
        gemm.fp8_blockscale_gemm_sm90(x, problem.w[copy], None, problem.w_scale[copy], out=d)

    yield "flashinfer_fp8in", codes_in, d, ""
    yield "flashinfer_bf16in", bf16_in, d, "bf16 in; quantised inside"


PEERS = {"torch": peer_torch, "triton": peer_triton, "deepgemm": peer_deepgemm, "flashinfer": peer_flashinfer}


# ---- measuring ----


class Rows:
    def __init__(self, path):
        self.file = open(path, "w", newline="", encoding="utf-8") if path else None
        self.writer = csv.writer(self.file) if path else None
        if path:
            self.writer.writerow(COLUMNS)

    def add(self, peer, m, problem, us, error, notes):
        flops, moved = 2.0 * m * problem.n * problem.k, problem.bytes_moved(m, "bf16in" in peer)
        told = f"{us:.2f} us" if us else "no time: " + notes
        print(f"{problem.n}x{problem.k} M={m} {peer} {told}", flush=True)
        if not self.file:
            return
        self.writer.writerow([peer, "gemm", m, problem.n, problem.k, 1, f"{us:.3f}" if us else "", "",
                              f"{flops / us / 1e6:.1f}" if us else "", f"{moved / us / 1e3:.0f}" if us else "",
                              "" if error is None else f"{error:.2e}", notes.replace(",", ";")])
        self.file.flush()


def measure(problem, m, peer, call, d, notes, rows):
    if d is not None:
        d.fill_(float("nan"))
    result = problem.run_once(call)
    error = problem.error(result if d is None else d, m)
    us = problem.time(call) if error < ERROR_MAX else None
    rows.add(peer, m, problem, us, error, notes if us else "FAILED wrong: " + notes)


def measure_peer(name, problem, m, rows):
    """0, or how much nearer the peer is to being left out."""
    try:
        for peer, call, d, notes in PEERS[name](problem, m):
            measure(problem, m, peer, call, d, notes, rows)
    except ImportError as missing:
        print(f"{name}: SKIPPED: {missing}", flush=True)
        return FAILURES_MAX
    except Exception as failure:  # a peer's own refusal, of any type
        why = f"{type(failure).__name__}: {str(failure)[:300]}".replace("\n", " ")
        rows.add(name, m, problem, None, None, "FAILED " + why)
        torch.cuda.synchronize()
        return 1
    return 0


def parse_shape(text):
    n, k = (int(part) for part in text.split("x"))
    if n < 1 or k < GROUP or k % GROUP:
        raise argparse.ArgumentTypeError(f"{text}: K must be a multiple of {GROUP}")
    return n, k


def parse_shapes(text):
    lists = {"P": LIST_P, "L": LIST_L}
    return [parse_shape(part) for name in text.split(",") for part in lists.get(name, name).split(",")]


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", type=parse_shapes, default=parse_shapes("P,L,7168x256"))
    parser.add_argument("--m", type=lambda text: [int(part) for part in text.split(",")],
                        default=[1, 4, 8, 16, 24, 31, 32, 48, 64])
    parser.add_argument("--peers", type=lambda text: text.split(","), default=list(PEERS))
    parser.add_argument("--replays", type=int, default=5)
    parser.add_argument("--csv")
    options = parser.parse_args()
    for name in options.peers:
        if name not in PEERS:
            parser.error(f"unknown peer {name}; {', '.join(PEERS)} are known")
    return options


def main():
    options = parse_options()
    if not torch or not torch.cuda.is_available():
        print("peers.py: SKIPPED:", "no GPU" if torch else "no torch")
        return EXIT_SKIPPED
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(1)
    rows, failures = Rows(options.csv), dict.fromkeys(options.peers, 0)
    for n, k in options.shapes:
        problem = Problem(n, k, max(options.m), options.replays)
        for m in options.m:
            for name in failures:
                if failures[name] < FAILURES_MAX:
                    failures[name] += measure_peer(name, problem, m, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
