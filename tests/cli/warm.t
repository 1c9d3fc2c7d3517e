The whole way with a compiler that only counts: check, warm, check, warm again, ls, verify.

  $ echo '{"schema": "cubinet.manifest/1", "shapes": [{"op": "fp8_gemm", "layer": "o_proj", "n": 7168, "k": 2048}]}' > m.json

#collapse

  $ export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so FAKE_NVRTC_COUNT=count
  > cubinet check --manifest m.json --arch sm_90a --policy reference
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  request: arch=sm_90a m=0..131072
  requested 11, present 0, missing 11, uncovered 0
  missing: fp8_gemm/swap_ab sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=16 DEEP=0
  missing: fp8_gemm/swap_ab sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=24 DEEP=1
  missing: fp8_gemm/swap_ab sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=32 DEEP=1
  missing: fp8_gemm/swap_ab sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=8 DEEP=1
  missing: fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=128 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=0 TRIGGER=0
  missing: fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=128 WARPGROUPS=2 ALONG_K=0 PARTS=2 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  missing: fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=160 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  missing: fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=192 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  missing: fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=64 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  missing: fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=256 BN=128 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=0 TRIGGER=0
  missing: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  [3]
  $ export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so FAKE_NVRTC_COUNT=count
  > cubinet warm --manifest m.json --arch sm_90a --policy reference -j 1
  > wc -c < count
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  request: arch=sm_90a m=0..131072
  requested 11, already 0, compiled 11, failed 0, uncovered 0, <S> s
  11
  ! cubinet: [1/11] compiled: fp8_gemm/swap_ab sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=8 DEEP=1
  ! cubinet: [2/11] compiled: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  ! cubinet: [3/11] compiled: fp8_gemm/swap_ab sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=16 DEEP=0
  ! cubinet: [4/11] compiled: fp8_gemm/swap_ab sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=24 DEEP=1
  ! cubinet: [5/11] compiled: fp8_gemm/swap_ab sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=32 DEEP=1
  ! cubinet: [6/11] compiled: fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=64 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  ! cubinet: [7/11] compiled: fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=128 WARPGROUPS=2 ALONG_K=0 PARTS=2 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  ! cubinet: [8/11] compiled: fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=192 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  ! cubinet: [9/11] compiled: fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=256 BN=128 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=0 TRIGGER=0
  ! cubinet: [10/11] compiled: fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=160 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  ! cubinet: [11/11] compiled: fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=128 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=0 TRIGGER=0
  $ cubinet check --manifest m.json --arch sm_90a --policy reference
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  request: arch=sm_90a m=0..131072
  requested 11, present 11, missing 0, uncovered 0
  $ cubinet --json check --manifest m.json --arch sm_90a --policy reference
  {
    "schema": "cubinet.check/1",
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
      "strict_route": false,
      "arch": [
        "sm_90a"
      ],
      "max_m": 131072,
      "ops": null
    },
    "requested": 11,
    "present": 11,
    "missing": [],
    "uncovered": []
  }

A second warm compiles nothing, and opens no compiler.

  $ CUBINET_NVRTC=/nonexistent cubinet --json warm --manifest m.json --arch sm_90a --policy reference
  {
    "schema": "cubinet.warm/1",
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
      "strict_route": false,
      "arch": [
        "sm_90a"
      ],
      "max_m": 131072,
      "ops": null
    },
    "requested": 11,
    "already": 11,
    "compiled": 0,
    "built_by_others": 0,
    "failed": 0,
    "seconds": <S>,
    "failures": [],
    "uncovered": []
  }

The list.

  $ cubinet ls
  KEY  OP  KERNEL  ARCH  SIZE  CREATED  USED  HITS  COMPILE  COMPILER  LAYER  PIN  PARAMS
  <HASH1>  fp8_gemm  swap_ab  sm_90a  <SIZE>  <TIME>  <TIME>  1  <MS>  <NVRTC>  0  -  IN=e4m3 OUT=bf16 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=16 DEEP=0
  <HASH2>  fp8_gemm  swap_ab  sm_90a  <SIZE>  <TIME>  <TIME>  1  <MS>  <NVRTC>  0  -  IN=e4m3 OUT=bf16 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=24 DEEP=1
  <HASH3>  fp8_gemm  swap_ab  sm_90a  <SIZE>  <TIME>  <TIME>  1  <MS>  <NVRTC>  0  -  IN=e4m3 OUT=bf16 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=32 DEEP=1
  <HASH4>  fp8_gemm  swap_ab  sm_90a  <SIZE>  <TIME>  <TIME>  1  <MS>  <NVRTC>  0  -  IN=e4m3 OUT=bf16 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=8 DEEP=1
  <HASH5>  fp8_gemm  wgmma  sm_90a  <SIZE>  <TIME>  <TIME>  1  <MS>  <NVRTC>  0  -  IN=e4m3 OUT=bf16 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=128 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=0 TRIGGER=0
  <HASH6>  fp8_gemm  wgmma  sm_90a  <SIZE>  <TIME>  <TIME>  1  <MS>  <NVRTC>  0  -  IN=e4m3 OUT=bf16 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=128 WARPGROUPS=2 ALONG_K=0 PARTS=2 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  <HASH7>  fp8_gemm  wgmma  sm_90a  <SIZE>  <TIME>  <TIME>  1  <MS>  <NVRTC>  0  -  IN=e4m3 OUT=bf16 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=160 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  <HASH8>  fp8_gemm  wgmma  sm_90a  <SIZE>  <TIME>  <TIME>  1  <MS>  <NVRTC>  0  -  IN=e4m3 OUT=bf16 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=192 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  <HASH9>  fp8_gemm  wgmma  sm_90a  <SIZE>  <TIME>  <TIME>  1  <MS>  <NVRTC>  0  -  IN=e4m3 OUT=bf16 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=64 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  <HASH10>  fp8_gemm  wgmma  sm_90a  <SIZE>  <TIME>  <TIME>  1  <MS>  <NVRTC>  0  -  IN=e4m3 OUT=bf16 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=256 BN=128 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=0 TRIGGER=0
  <HASH11>  fp8_quantize  vector  sm_90a  <SIZE>  <TIME>  <TIME>  1  <MS>  <NVRTC>  0  -  IN=bf16 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  ! cubinet: 11 entries, <SIZE>
  $ cubinet ls --kernel wgmma --quiet
  KEY  OP  KERNEL  ARCH  SIZE  CREATED  USED  HITS  COMPILE  COMPILER  LAYER  PIN  PARAMS
  <HASH5>  fp8_gemm  wgmma  sm_90a  <SIZE>  <TIME>  <TIME>  1  <MS>  <NVRTC>  0  -  IN=e4m3 OUT=bf16 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=128 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=0 TRIGGER=0
  <HASH6>  fp8_gemm  wgmma  sm_90a  <SIZE>  <TIME>  <TIME>  1  <MS>  <NVRTC>  0  -  IN=e4m3 OUT=bf16 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=128 WARPGROUPS=2 ALONG_K=0 PARTS=2 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  <HASH7>  fp8_gemm  wgmma  sm_90a  <SIZE>  <TIME>  <TIME>  1  <MS>  <NVRTC>  0  -  IN=e4m3 OUT=bf16 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=160 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  <HASH8>  fp8_gemm  wgmma  sm_90a  <SIZE>  <TIME>  <TIME>  1  <MS>  <NVRTC>  0  -  IN=e4m3 OUT=bf16 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=192 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  <HASH9>  fp8_gemm  wgmma  sm_90a  <SIZE>  <TIME>  <TIME>  1  <MS>  <NVRTC>  0  -  IN=e4m3 OUT=bf16 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=64 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  <HASH10>  fp8_gemm  wgmma  sm_90a  <SIZE>  <TIME>  <TIME>  1  <MS>  <NVRTC>  0  -  IN=e4m3 OUT=bf16 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=256 BN=128 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=0 TRIGGER=0
  $ cubinet ls --op fp8_quantize --json
  {
    "schema": "cubinet.ls/1",
    "entries": [
      {
        "key": "<HASH11>",
        "op": "fp8_quantize",
        "kernel": "vector",
        "arch": "sm_90a",
        "params": {
          "IN": 1,
          "SCALE": 1,
          "POW2": 0,
          "PROPAGATE": 0,
          "APPROX": 0,
          "PDL": 1,
          "VEC": 16
        },
        "size_bytes": <N>,
        "created": "<TIME>",
        "last_used": "<TIME>",
        "hits": 1,
        "compile_ms": <N>,
        "compiler": "<NVRTC>",
        "source_digest": "<HASH12>",
        "registers": <N>,
        "shared_bytes": <N>,
        "spill_bytes": <N>,
        "layer": 0,
        "layer_path": "<HOME>/.cache/cubinet",
        "pinned": false
      }
    ],
    "damaged": 0
  }
  ! cubinet: 1 entry, <SIZE>
  $ cubinet ls --arch sm_80
  KEY  OP  KERNEL  ARCH  SIZE  CREATED  USED  HITS  COMPILE  COMPILER  LAYER  PIN  PARAMS
  ! cubinet: 0 entries, <SIZE>
  $ for sort in used size created; do cubinet ls --sort $sort --quiet | wc -l; done
  12
  12
  12
  $ cubinet verify
  checked 11, damaged 0, repaired 0
  $ cubinet --json verify
  {
    "schema": "cubinet.verify/1",
    "checked": 11,
    "damaged": [],
    "repaired": 0,
    "details": [],
    "files_set_aside": 0
  }

Another profile is another request.

  $ cubinet check --manifest m.json --arch sm_90a --policy reference --out fp16 --ops fp8_gemm
  profile: in=bf16 out=fp16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  request: arch=sm_90a m=0..131072 ops=fp8_gemm
  requested 3, present 0, missing 3, uncovered 0
  missing: fp8_gemm/generic sm_90a SWAP_AB=0 IN=1 OUT=2 A_SCALE=0 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=16 BN=64 THREADS=128
  missing: fp8_gemm/generic sm_90a SWAP_AB=0 IN=1 OUT=2 A_SCALE=0 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=64 BN=128 THREADS=256
  missing: fp8_gemm/generic sm_90a SWAP_AB=0 IN=1 OUT=2 A_SCALE=0 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=64 BN=64 THREADS=128
  [3]
  $ cubinet check --manifest m.json --arch sm_90a,sm_80 --policy reference --ops fp8_quantize
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  request: arch=sm_90a,sm_80 m=0..131072 ops=fp8_quantize
  requested 2, present 1, missing 1, uncovered 0
  missing: fp8_quantize/vector sm_80 IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=0 VEC=16
  [3]

Approximate division is the quantiser's: the product beside it stays exact.

  $ cubinet check --manifest m.json --arch sm_90a --policy reference --approx --max-m 1
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none approx policy=reference
  request: arch=sm_90a m=0..1
  requested 3, present 2, missing 1, uncovered 0
  missing: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=1 PDL=1 VEC=16
  [3]
  $ cubinet explain --op fp8_quantize --t 1 --k 128 --arch sm_90a --approx | head -n 4
  call: fp8_quantize sm_90a t=1 k=128
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none approx policy=default
  chosen: vector
  key: <HASH13>
  $ cubinet explain --op fp8_gemm --m 1 --n 128 --k 128 --arch sm_90a --approx
  ! cubinet: explain: approx: 1; give 0: fp8_gemm quantises by exact division
  [2]
