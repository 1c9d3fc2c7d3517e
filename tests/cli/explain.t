One call explained.

  $ cubinet explain --op fp8_gemm --m 8 --n 7168 --k 2048 --arch sm_90a --policy reference
  call: fp8_gemm sm_90a m=8 n=7168 k=2048
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  chosen: swap_ab
  key: <HASH1>
  params: IN=e4m3 OUT=bf16 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=8 DEEP=1
  first: fp8_quantize/vector
  first key: <HASH2>
  first params: IN=bf16 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  cached: no
  launches: 2
  workspace: <N> bytes
  candidates:
    tcgen05        refused      enabled
    swap_ab_fused  refused      policy reference
    swap_ab        chosen
    wgmma          not_reached
    generic        not_reached
  $ cubinet --json explain --op fp8_gemm --m 8 --n 7168 --k 2048 --arch sm_90a --policy reference | python3 -c 'import json, sys
  > told = json.load(sys.stdin); print(told["launches"], told["workspace_bytes"], told["cached"], told["first"])'
  2 16896 False {'op': 'fp8_quantize', 'kernel': 'vector', 'key': '<HASH2>', 'params': {'IN': 1, 'SCALE': 1, 'POW2': 0, 'PROPAGATE': 0, 'APPROX': 0, 'PDL': 1, 'VEC': 16}}
  $ cubinet --json explain --op fp8_gemm --m 64 --n 7168 --k 2048 --arch sm_90a --policy reference
  {
    "schema": "cubinet.explain/1",
    "call": {
      "op": "fp8_gemm",
      "arch": "sm_90a",
      "m": 64,
      "n": 7168,
      "k": 2048
    },
    "profile": {
      "in": "bf16",
      "out": "bf16",
      "weight_scale": "fp32",
      "scale_gran": "block",
      "act_scale": "col4",
      "pow2": false,
      "bias": "none",
      "no_pdl": false,
      "propagate": false,
      "approx": false,
      "sms": null,
      "max_sms": null,
      "policy": "reference",
      "disable": null,
      "enable": null,
      "strict_route": false
    },
    "chosen": "wgmma",
    "key": "<HASH3>",
    "params": {
      "IN": 4,
      "OUT": 1,
      "A_SCALE": 1,
      "W_SCALE": 1,
      "W_GRAN": 1,
      "BIAS": 0,
      "PDL": 1,
      "VEC": 16,
      "BM": 128,
      "BN": 64,
      "WARPGROUPS": 2,
      "ALONG_K": 0,
      "PARTS": 1,
      "SPLIT": 1,
      "RESIDENT": 1,
      "ORDER": 1,
      "TRIGGER": 0
    },
    "first": {
      "op": "fp8_quantize",
      "kernel": "vector",
      "key": "<HASH2>",
      "params": {
        "IN": 1,
        "SCALE": 1,
        "POW2": 0,
        "PROPAGATE": 0,
        "APPROX": 0,
        "PDL": 1,
        "VEC": 16
      }
    },
    "cached": false,
    "launches": 2,
    "workspace_bytes": 135168,
    "candidates": [
      {
        "kernel": "tcgen05",
        "verdict": "refused",
        "guard": "enabled",
        "value": null
      },
      {
        "kernel": "swap_ab_fused",
        "verdict": "refused",
        "guard": "policy reference",
        "value": null
      },
      {
        "kernel": "swap_ab",
        "verdict": "refused",
        "guard": "m in [1,32)",
        "value": 64
      },
      {
        "kernel": "wgmma",
        "verdict": "chosen",
        "guard": null,
        "value": null
      },
      {
        "kernel": "generic",
        "verdict": "not_reached",
        "guard": null,
        "value": null
      }
    ]
  }
  $ cubinet explain --op fp8_gemm --m 64 --n 7168 --k 2048 --arch sm_90a --policy reference --out fp16 --bias out --no-pdl
  call: fp8_gemm sm_90a m=64 n=7168 k=2048
  profile: in=bf16 out=fp16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=out no-pdl policy=reference
  chosen: generic
  key: <HASH4>
  params: SWAP_AB=0 IN=bf16 OUT=fp16 A_SCALE=0 W_SCALE=1 W_GRAN=1 BIAS=1 POW2=0 PROPAGATE=0 PDL=0 VEC=16 BM=64 BN=64 THREADS=128
  cached: no
  launches: 1
  workspace: <N> bytes
  candidates:
    tcgen05        refused  enabled
    swap_ab_fused  refused  policy reference
    swap_ab        refused  out == bf16       saw fp16
    wgmma          refused  out == bf16       saw fp16
    generic        chosen
  $ cubinet explain --op fp8_gemm --m 64 --n 100 --k 200 --arch sm_90a --policy reference
  call: fp8_gemm sm_90a m=64 n=100 k=200
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  chosen: generic
  key: <HASH5>
  params: SWAP_AB=0 IN=bf16 OUT=bf16 A_SCALE=0 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=1 BM=64 BN=64 THREADS=128
  cached: no
  launches: 1
  workspace: <N> bytes
  candidates:
    tcgen05        refused  enabled
    swap_ab_fused  refused  policy reference
    swap_ab        refused  n % 64 == 0       saw 100
    wgmma          refused  n % 64 == 0       saw 100
    generic        chosen
  $ cubinet explain --op fp8_gemm --m 8 --n 7168 --k 2048 --arch sm_90a --policy reference --disable swap_ab,wgmma
  call: fp8_gemm sm_90a m=8 n=7168 k=2048
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference disable=swap_ab,wgmma
  chosen: generic
  key: <HASH6>
  params: SWAP_AB=0 IN=bf16 OUT=bf16 A_SCALE=0 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=16 BN=64 THREADS=128
  cached: no
  launches: 1
  workspace: <N> bytes
  candidates:
    tcgen05        refused  enabled
    swap_ab_fused  refused  policy reference
    swap_ab        refused  enabled
    wgmma          refused  enabled
    generic        chosen

M = 0: nothing to launch.

  $ cubinet explain --op fp8_gemm --m 0 --n 7168 --k 2048 --arch sm_90a
  call: fp8_gemm sm_90a m=0 n=7168 k=2048
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  chosen: noop
  launches: 0
  workspace: <N> bytes
  candidates:
    tcgen05        not_reached
    swap_ab_fused  not_reached
    swap_ab        not_reached
    wgmma          not_reached
    generic        not_reached
  $ cubinet --json explain --op fp8_gemm --m 0 --n 7168 --k 2048 --arch sm_90a
  {
    "schema": "cubinet.explain/1",
    "call": {
      "op": "fp8_gemm",
      "arch": "sm_90a",
      "m": 0,
      "n": 7168,
      "k": 2048
    },
    "profile": {
      "in": "bf16",
      "out": "bf16",
      "weight_scale": "fp32",
      "scale_gran": "block",
      "act_scale": "col4",
      "pow2": false,
      "bias": "none",
      "no_pdl": false,
      "propagate": false,
      "approx": false,
      "sms": null,
      "max_sms": null,
      "policy": "default",
      "disable": null,
      "enable": null,
      "strict_route": false
    },
    "chosen": "noop",
    "key": null,
    "params": {},
    "first": null,
    "cached": false,
    "launches": 0,
    "workspace_bytes": 0,
    "candidates": [
      {
        "kernel": "tcgen05",
        "verdict": "not_reached",
        "guard": null,
        "value": null
      },
      {
        "kernel": "swap_ab_fused",
        "verdict": "not_reached",
        "guard": null,
        "value": null
      },
      {
        "kernel": "swap_ab",
        "verdict": "not_reached",
        "guard": null,
        "value": null
      },
      {
        "kernel": "wgmma",
        "verdict": "not_reached",
        "guard": null,
        "value": null
      },
      {
        "kernel": "generic",
        "verdict": "not_reached",
        "guard": null,
        "value": null
      }
    ]
  }
  $ cubinet explain --op fp8_quantize --t 0 --k 2048 --arch sm_90a
  call: fp8_quantize sm_90a t=0 k=2048
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  chosen: noop
  launches: 0
  workspace: <N> bytes
  candidates:
    vector  not_reached
    scalar  not_reached

Every other form of arguments. An operation without a kernel fails.

  $ cubinet explain --op fp8_gemm --m 8 --n 7168 --k 2048 --lda 2049 --arch sm_90a --policy reference
  call: fp8_gemm sm_90a m=8 n=7168 k=2048 lda=2049
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  chosen: generic
  key: <HASH7>
  params: SWAP_AB=0 IN=bf16 OUT=bf16 A_SCALE=0 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=1 BM=16 BN=64 THREADS=128
  cached: no
  launches: 1
  workspace: <N> bytes
  candidates:
    tcgen05        refused  enabled
    swap_ab_fused  refused  policy reference
    swap_ab        refused  align % 16 == 0   saw 2
    wgmma          refused  m >= 32           saw 8
    generic        chosen
  $ cubinet explain --op fp8_gemm --m 8 --n 7168 --k 2048 --in e4m3 --act-scale packed-col --weight-scale ue8m0 --arch sm_90a
  call: fp8_gemm sm_90a m=8 n=7168 k=2048
  profile: in=e4m3 out=bf16 weight-scale=ue8m0 scale-gran=block act-scale=packed-col bias=none policy=default
  chosen: swap_ab
  key: <HASH8>
  params: IN=e4m3 OUT=bf16 A_SCALE=2 W_SCALE=2 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=8 DEEP=1
  cached: no
  launches: 1
  workspace: <N> bytes
  candidates:
    tcgen05        refused      enabled
    swap_ab_fused  refused      m in [1,5)  saw 8
    swap_ab        chosen
    wgmma          not_reached
    generic        not_reached
  $ cubinet explain --op fp8_quantize --t 5 --k 7168 --arch sm_90a
  call: fp8_quantize sm_90a t=5 k=7168
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  chosen: vector
  key: <HASH2>
  params: IN=bf16 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  cached: no
  launches: 1
  workspace: <N> bytes
  candidates:
    vector  chosen
    scalar  not_reached
  $ cubinet explain --op fp8_quantize --t 5 --g 8 --d 4096 --act-scale packed-col --arch sm_90a
  call: fp8_quantize sm_90a t=5 g=8 d=4096
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=packed-col bias=none policy=default
  chosen: vector
  key: <HASH9>
  params: IN=bf16 SCALE=2 POW2=1 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  cached: no
  launches: 1
  workspace: <N> bytes
  candidates:
    vector  chosen
    scalar  not_reached
  $ cubinet explain --op fp8_einsum --t 5 --g 8 --r 1024 --d 4096 --arch sm_90a
  ! cubinet: explain: fp8_einsum has no kernel in this release
  [1]
  $ cubinet explain --op fp8_grouped_gemm --m 5 --n 512 --k 7168 --experts 256 --arch sm_90a
  ! cubinet: explain: fp8_grouped_gemm has no kernel in this release
  [1]

No candidate: exit 1, and every refusal is told.

  $ cubinet explain --op fp8_gemm --m 8 --n 7168 --k 2048 --arch sm_90a --policy reference --disable swap_ab,wgmma,generic
  call: fp8_gemm sm_90a m=8 n=7168 k=2048
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference disable=swap_ab,wgmma,generic
  chosen: none
  launches: 0
  workspace: <N> bytes
  candidates:
    tcgen05        refused  enabled
    swap_ab_fused  refused  policy reference
    swap_ab        refused  enabled
    wgmma          refused  enabled
    generic        refused  enabled
  [1]
  $ cubinet --json explain --op fp8_gemm --m 8 --n 100 --k 200 --arch sm_90a --policy reference --strict-route | grep -A99 candidates
    "candidates": [
      {
        "kernel": "tcgen05",
        "verdict": "refused",
        "guard": "enabled",
        "value": null
      },
      {
        "kernel": "swap_ab_fused",
        "verdict": "refused",
        "guard": "policy reference",
        "value": null
      },
      {
        "kernel": "swap_ab",
        "verdict": "refused",
        "guard": "n % 64 == 0",
        "value": 100
      },
      {
        "kernel": "wgmma",
        "verdict": "refused",
        "guard": "n % 64 == 0",
        "value": 100
      },
      {
        "kernel": "generic",
        "verdict": "refused",
        "guard": "strict_route",
        "value": null
      }
    ]
  }
  $ cubinet explain --op fp8_gemm --m 8 --n 7168 --k 2048 --arch sm_90a --disable generic,swap_ab,swap_ab_fused,wgmma > text; echo "exit $?"
  exit 1

The profile that the environment gives is printed, options override it.

  $ CUBINET_POLICY=reference CUBINET_DISABLE=wgmma cubinet explain --op fp8_gemm --m 64 --n 64 --k 128 --arch sm_90a | grep -E 'profile|chosen'
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference disable=wgmma
  chosen: generic
    generic        chosen
  $ CUBINET_POLICY=reference CUBINET_DISABLE=wgmma cubinet explain --op fp8_gemm --m 64 --n 64 --k 128 --arch sm_90a --disable swap_ab | grep -E 'profile|chosen'
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference disable=swap_ab
  chosen: wgmma
    wgmma          chosen

Every architecture that the help names is known.

  $ for arch in $(cubinet help explain | grep -o 'sm_[0-9]*a*|.*' | tr '|' ' '); do
  >   cubinet explain --op fp8_gemm --m 1 --n 64 --k 128 --arch $arch | grep -E 'call|chosen'
  > done
  call: fp8_gemm sm_80 m=1 n=64 k=128
  chosen: generic
    generic        chosen
  call: fp8_gemm sm_86 m=1 n=64 k=128
  chosen: generic
    generic        chosen
  call: fp8_gemm sm_87 m=1 n=64 k=128
  chosen: generic
    generic        chosen
  call: fp8_gemm sm_89 m=1 n=64 k=128
  chosen: generic
    generic        chosen
  call: fp8_gemm sm_90a m=1 n=64 k=128
  chosen: swap_ab_fused
    swap_ab_fused  chosen
  call: fp8_gemm sm_100a m=1 n=64 k=128
  chosen: generic
    generic        chosen
  call: fp8_gemm sm_103a m=1 n=64 k=128
  chosen: generic
    generic        chosen
  call: fp8_gemm sm_110a m=1 n=64 k=128
  chosen: generic
    generic        chosen
  call: fp8_gemm sm_120a m=1 n=64 k=128
  chosen: generic
    generic        chosen
  call: fp8_gemm sm_121a m=1 n=64 k=128
  chosen: generic
    generic        chosen

sm_100a: tcgen05 is off unless enabled by name; bf16 out and K >= 256.

  $ cubinet explain --op fp8_gemm --m 64 --n 7168 --k 2048 --arch sm_100a
  call: fp8_gemm sm_100a m=64 n=7168 k=2048
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  chosen: generic
  key: <HASH10>
  params: SWAP_AB=0 IN=bf16 OUT=bf16 A_SCALE=0 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=64 BN=64 THREADS=128
  cached: no
  launches: 1
  workspace: <N> bytes
  candidates:
    tcgen05        refused  enabled
    swap_ab_fused  refused  arch == sm_90a  saw sm_100a
    swap_ab        refused  arch == sm_90a  saw sm_100a
    wgmma          refused  arch == sm_90a  saw sm_100a
    generic        chosen
  $ cubinet explain --op fp8_gemm --m 64 --n 7168 --k 2048 --arch sm_100a --enable tcgen05
  call: fp8_gemm sm_100a m=64 n=7168 k=2048
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default enable=tcgen05
  chosen: tcgen05
  key: none, there is no template
  params:
  cached: no
  launches: 0
  workspace: <N> bytes
  candidates:
    tcgen05        chosen
    swap_ab_fused  not_reached
    swap_ab        not_reached
    wgmma          not_reached
    generic        not_reached
  $ cubinet explain --op fp8_gemm --m 64 --n 7168 --k 2048 --arch sm_100a --enable tcgen05 --weight-scale ue8m0 | grep chosen:
  chosen: tcgen05
  $ cubinet explain --op fp8_gemm --m 64 --n 7168 --k 2048 --arch sm_100a --enable tcgen05 --out fp16 | grep -E 'chosen:|tcgen05'
  profile: in=bf16 out=fp16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default enable=tcgen05
  chosen: generic
    tcgen05        refused  out == bf16     saw fp16
  $ cubinet explain --op fp8_gemm --m 64 --n 7168 --k 128 --arch sm_100a --enable tcgen05 | grep -E 'chosen:|tcgen05'
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default enable=tcgen05
  chosen: generic
    tcgen05        refused  k >= 256        saw 128

No compiler is needed.

  $ CUBINET_NVRTC=/nonexistent cubinet explain --op fp8_gemm --m 8 --n 64 --k 128 --arch sm_90a | grep chosen:
  chosen: swap_ab
