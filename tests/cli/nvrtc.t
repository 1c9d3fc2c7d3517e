The same with the real compiler: one layer, built in children, then nothing more to build.

#collapse

  $ echo '{"schema": "cubinet.manifest/1", "shapes": [{"op": "fp8_gemm", "layer": "o_proj", "n": 7168, "k": 2048}]}' > m.json
  > cubinet warm --manifest m.json --arch sm_90a --policy reference --max-m 8 -j 1
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  request: arch=sm_90a m=0..8
  requested 2, already 0, compiled 2, failed 0, uncovered 0, <S> s
  ! cubinet: [1/2] compiled: fp8_gemm/swap_ab sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=8 DEEP=1
  ! cubinet: [2/2] compiled: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  $ cubinet check --manifest m.json --arch sm_90a --policy reference --max-m 8
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  request: arch=sm_90a m=0..8
  requested 2, present 2, missing 0, uncovered 0
  $ CUBINET_NVRTC=/nonexistent cubinet warm --manifest m.json --arch sm_90a --policy reference --max-m 8
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  request: arch=sm_90a m=0..8
  requested 2, already 2, compiled 0, failed 0, uncovered 0, <S> s
  $ cubinet ls
  KEY  OP  KERNEL  ARCH  SIZE  CREATED  USED  HITS  COMPILE  COMPILER  LAYER  PIN  PARAMS
  <HASH1>  fp8_gemm  swap_ab  sm_90a  <SIZE>  <TIME>  <TIME>  1  <MS>  <NVRTC>  0  -  IN=e4m3 OUT=bf16 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=8 DEEP=1
  <HASH2>  fp8_quantize  vector  sm_90a  <SIZE>  <TIME>  <TIME>  1  <MS>  <NVRTC>  0  -  IN=bf16 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  ! cubinet: 2 entries, <SIZE>
  $ cubinet --json ls --op fp8_quantize
  {
    "schema": "cubinet.ls/1",
    "entries": [
      {
        "key": "<HASH2>",
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
        "source_digest": "<HASH3>",
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
  $ cubinet verify
  checked 2, damaged 0, repaired 0
