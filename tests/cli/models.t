The whole list of the three models, with a compiler that only counts.

#collapse

  $ export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so
  > cubinet --quiet warm --model $MODELS/DeepSeek-V3.json --tp 8 --arch sm_90a
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 26, already 0, compiled 24, failed 0, uncovered 2, <S> s
  uncovered: mlp.experts.w13: fp8_grouped_gemm has no kernel in this release
  uncovered: mlp.experts.w2: fp8_grouped_gemm has no kernel in this release
  [3]
  $ cubinet check --model $MODELS/DeepSeek-V3.json --tp 8 --arch sm_90a --ops fp8_gemm,fp8_quantize
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072 ops=fp8_gemm,fp8_quantize
  requested 24, present 24, missing 0, uncovered 0
  $ cubinet check --model $MODELS/DeepSeek-V3.json --tp 8 --arch sm_90a
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 26, present 24, missing 0, uncovered 2
  uncovered: mlp.experts.w13: fp8_grouped_gemm has no kernel in this release
  uncovered: mlp.experts.w2: fp8_grouped_gemm has no kernel in this release
  [3]
  $ cubinet --json check --model $MODELS/DeepSeek-V3.json --tp 8 --arch sm_90a
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
      "policy": "default",
      "disable": null,
      "enable": null,
      "strict_route": false,
      "arch": [
        "sm_90a"
      ],
      "max_m": 131072,
      "ops": null
    },
    "requested": 26,
    "present": 24,
    "missing": [],
    "uncovered": [
      {
        "layer": "mlp.experts.w13",
        "op": "fp8_grouped_gemm",
        "reason": "fp8_grouped_gemm has no kernel in this release"
      },
      {
        "layer": "mlp.experts.w2",
        "op": "fp8_grouped_gemm",
        "reason": "fp8_grouped_gemm has no kernel in this release"
      }
    ]
  }
  [3]
  $ export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so
  > cubinet warm --model $MODELS/DeepSeek-V4-Flash-FP8.json --tp 4 --arch sm_90a -j 1
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 25, already 22, compiled 0, failed 0, uncovered 3, <S> s
  uncovered: mlp.experts.w13: fp8_grouped_gemm has no kernel in this release
  uncovered: mlp.experts.w2: fp8_grouped_gemm has no kernel in this release
  uncovered: self_attn.wo_a: fp8_einsum has no kernel in this release
  ! cubinet: the config's scale_fmt is ue8m0: on sm_90 engines use fp32 scales, as this profile does; --pow2 and --weight-scale ue8m0 choose the other one
  [3]
  $ export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so
  > cubinet warm --model $MODELS/Qwen3-32B-FP8.json --tp 8 --arch sm_90a -j 1
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 24, already 24, compiled 0, failed 0, uncovered 0, <S> s

What shapes prints is a manifest.

  $ cubinet --json shapes --model $MODELS/DeepSeek-V3.json --tp 8 > v3.json
  > cubinet check --manifest v3.json --arch sm_90a --ops fp8_gemm,fp8_quantize
  > cubinet check --manifest v3.json --arch sm_90a | grep uncovered
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072 ops=fp8_gemm,fp8_quantize
  requested 24, present 24, missing 0, uncovered 0
  requested 26, present 24, missing 0, uncovered 2
  uncovered: mlp.experts.w13: fp8_grouped_gemm has no kernel in this release
  uncovered: mlp.experts.w2: fp8_grouped_gemm has no kernel in this release

Every specialisation that any shape can reach covers every model.

  $ export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so
  > cubinet --quiet warm --all --arch sm_90a --cache all > text; echo "exit $?"
  > for model in DeepSeek-V3 DeepSeek-V4-Flash-FP8 Qwen3-32B-FP8; do for tp in 1 4 8; do
  >   cubinet --quiet check --cache all --model $MODELS/$model.json --tp $tp --arch sm_90a --ops fp8_gemm,fp8_quantize | grep requested
  > done; done
  exit 0
  requested 23, present 23, missing 0, uncovered 0
  requested 24, present 24, missing 0, uncovered 0
  requested 24, present 24, missing 0, uncovered 0
  requested 24, present 24, missing 0, uncovered 0
  requested 22, present 22, missing 0, uncovered 0
  requested 22, present 22, missing 0, uncovered 0
  requested 18, present 18, missing 0, uncovered 0
  requested 21, present 21, missing 0, uncovered 0
  requested 24, present 24, missing 0, uncovered 0

A candidate without a template is uncovered.

  $ cubinet --quiet check --model $MODELS/DeepSeek-V3.json --tp 8 --arch sm_100a --enable tcgen05 --ops fp8_gemm | grep uncovered
  requested 8, present 0, missing 0, uncovered 8
  uncovered: mlp.down_proj: kernel tcgen05 has no template in this release
  uncovered: mlp.gate_up_proj: kernel tcgen05 has no template in this release
  uncovered: mlp.shared_experts.down_proj: kernel tcgen05 has no template in this release
  uncovered: mlp.shared_experts.gate_up_proj: kernel tcgen05 has no template in this release
  uncovered: self_attn.fused_qkv_a_proj_with_mqa: kernel tcgen05 has no template in this release
  uncovered: self_attn.kv_b_proj: kernel tcgen05 has no template in this release
  uncovered: self_attn.o_proj: kernel tcgen05 has no template in this release
  uncovered: self_attn.q_b_proj: kernel tcgen05 has no template in this release

Several architectures at once.

  $ export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so
  > cubinet --quiet warm --model $MODELS/DeepSeek-V3.json --tp 8 --arch sm_80,sm_120a --ops fp8_quantize
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_80,sm_120a m=0..131072 ops=fp8_quantize
  requested 2, already 0, compiled 2, failed 0, uncovered 0, <S> s

A config that cannot be read, a sharding that does not divide.

  $ cubinet warm --model missing.json --arch sm_90a
  ! cubinet: warm: cannot open missing.json: No such file or directory
  [1]
  $ cubinet check --model $MODELS/DeepSeek-V3.json --tp 7 --arch sm_90a
  ! cubinet: check: tp 7 does not divide num_attention_heads (128); give a number of ranks that does
  [1]
  $ echo '{"schema": "cubinet.manifest/2", "shapes": []}' > m.json; cubinet check --manifest m.json --arch sm_90a
  ! cubinet: check: schema is "cubinet.manifest/2"; "cubinet.manifest/1" and "cubinet.shapes/1" are taken
  [1]
  $ echo '{"schema": "cubinet.manifest/1", "shapes": [{"op": "fp4_gemm", "layer": "x", "n": 1, "k": 1}]}' > m.json
  > cubinet check --manifest m.json --arch sm_90a
  ! cubinet: check: shapes[0], layer x: op 'fp4_gemm' is not known
  [1]
  $ echo '{"schema": "cubinet.manifest/1", "shapes": [{"op": "fp8_gemm", "n": 1, "k": 1}, {"op": "foo", "n": 1, "k": 1}]}' > m.json
  > cubinet check --manifest m.json --arch sm_90a
  ! cubinet: check: shapes[1]: op 'foo' is not known
  [1]
  $ echo '{"schema": "cubinet.manifest/1", "shapes": []}' > m.json; cubinet check --manifest m.json --arch sm_90a
  ! cubinet: check: shapes is empty; it must name at least one layer
  [1]
  $ echo '{"schema": "cubinet.manifest/1", "shapes": [{"op": "fp8_gemm", "layer": "x", "n": 1, "k": 1, "fp8": false}]}' > m.json
  > cubinet check --manifest m.json --arch sm_90a
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 0, present 0, missing 0, uncovered 0
  ! cubinet: skipped: x: said so by the manifest
  ! cubinet: nothing is requested: no FP8 layer uses any kernel

A config whose scales are UE8M0 is told of the profile that it may want; one whose are not, and a profile that was chosen, is not.

  $ for model in V3 V3.2 V4-Flash-FP8; do for profile in '' --pow2 '--weight-scale ue8m0' --quiet; do
  >   echo "$model $profile: $(cubinet check --model $MODELS/DeepSeek-$model.json --arch sm_90a $profile 2>&1 > text | grep -c scale_fmt)"
  > done; done
  V3 : 0
  V3 --pow2: 0
  V3 --weight-scale ue8m0: 0
  V3 --quiet: 0
  V3.2 : 1
  V3.2 --pow2: 0
  V3.2 --weight-scale ue8m0: 0
  V3.2 --quiet: 0
  V4-Flash-FP8 : 1
  V4-Flash-FP8 --pow2: 0
  V4-Flash-FP8 --weight-scale ue8m0: 0
  V4-Flash-FP8 --quiet: 0
