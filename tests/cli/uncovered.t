What no candidate takes is listed with its layer and the reason, and counted in the unit of the list.

#collapse

  $ cat > m.json <<'END'
  > {"schema": "cubinet.manifest/1", "shapes": [
  >  {"op": "fp8_gemm", "layer": "o_proj", "n": 7168, "k": 2048},
  >  {"op": "fp8_gemm", "layer": "q_proj", "n": 7168, "k": 2048},
  >  {"op": "fp8_gemm", "layer": "odd", "n": 7168, "k": 448}]}
  > END
  $ cubinet check --manifest m.json --arch sm_90a --disable swap_ab,swap_ab_fused,wgmma,generic
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default disable=swap_ab,swap_ab_fused,wgmma,generic
  request: arch=sm_90a m=0..131072
  requested 4, present 0, missing 1, uncovered 3
  missing: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  uncovered: o_proj: m in [1,131072]: no fp8_gemm kernel takes it: tcgen05 is off unless enabled by name; swap_ab_fused is switched off; swap_ab is switched off; wgmma is switched off; generic is switched off
  uncovered: odd: m in [1,131072]: no fp8_gemm kernel takes it: tcgen05 is off unless enabled by name; swap_ab_fused is switched off; swap_ab is switched off; wgmma is switched off; generic is switched off
  uncovered: q_proj: m in [1,131072]: no fp8_gemm kernel takes it: tcgen05 is off unless enabled by name; swap_ab_fused is switched off; swap_ab is switched off; wgmma is switched off; generic is switched off
  [3]
  $ cubinet check --manifest m.json --arch sm_90a --strict-route --policy reference
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference strict-route
  request: arch=sm_90a m=0..131072
  requested 12, present 0, missing 11, uncovered 1
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
  uncovered: odd: m in [1,131072]: no fp8_gemm kernel takes it: tcgen05 is off unless enabled by name; swap_ab_fused is not in policy reference; swap_ab wants k % 128 == 0 (it is 448); wgmma wants k % 128 == 0 (it is 448); generic is a fallback, which strict_route refuses
  [3]
  $ cubinet check --manifest m.json --arch sm_90a --disable swap_ab --strict-route --policy reference --ops fp8_gemm
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference disable=swap_ab strict-route
  request: arch=sm_90a m=0..131072 ops=fp8_gemm
  requested 10, present 0, missing 7, uncovered 3
  missing: fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=128 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=0 TRIGGER=0
  missing: fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=128 WARPGROUPS=2 ALONG_K=0 PARTS=2 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  missing: fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=160 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  missing: fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=192 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  missing: fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=64 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  missing: fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=256 BN=128 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=0 TRIGGER=0
  missing: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  uncovered: o_proj: m in [1,31]: no fp8_gemm kernel takes it: tcgen05 is off unless enabled by name; swap_ab_fused is not in policy reference; swap_ab is switched off; wgmma wants m >= 32 (it is 25); generic is a fallback, which strict_route refuses
  uncovered: odd: m in [1,131072]: no fp8_gemm kernel takes it: tcgen05 is off unless enabled by name; swap_ab_fused is not in policy reference; swap_ab is switched off; wgmma wants k % 128 == 0 (it is 448); generic is a fallback, which strict_route refuses
  uncovered: q_proj: m in [1,31]: no fp8_gemm kernel takes it: tcgen05 is off unless enabled by name; swap_ab_fused is not in policy reference; swap_ab is switched off; wgmma wants m >= 32 (it is 25); generic is a fallback, which strict_route refuses
  [3]
  $ cubinet check --json --manifest m.json --arch sm_90a,sm_89 --strict-route | python3 -c 'import json, sys
  > report = json.load(sys.stdin)
  > print(report["requested"] == report["present"] + len(report["missing"]) + len(report["uncovered"]))
  > print(sorted((item["layer"], item["op"]) for item in report["uncovered"]))'
  > echo "exit ${PIPESTATUS[0]}"
  True
  [('o_proj', 'fp8_gemm'), ('odd', 'fp8_gemm'), ('q_proj', 'fp8_gemm')]
  exit 3
  $ export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so
  > cubinet warm --quiet --manifest m.json --arch sm_90a --strict-route --policy reference; echo "exit $?"
  > cubinet check --manifest m.json --arch sm_90a --strict-route --policy reference | grep requested
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference strict-route
  request: arch=sm_90a m=0..131072
  requested 12, already 0, compiled 11, failed 0, uncovered 1, <S> s
  uncovered: odd: m in [1,131072]: no fp8_gemm kernel takes it: tcgen05 is off unless enabled by name; swap_ab_fused is not in policy reference; swap_ab wants k % 128 == 0 (it is 448); wgmma wants k % 128 == 0 (it is 448); generic is a fallback, which strict_route refuses
  exit 3
  requested 12, present 11, missing 0, uncovered 1
