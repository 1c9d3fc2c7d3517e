The layers of every other family, and the rows that are no block FP8 with their reason.

  $ cubinet shapes --model $MODELS/Qwen3.6-27B-FP8.json --tp 8
  LAYER                     OP        N     K     GROUPS  FP8  REASON
  self_attn.qkv_proj        fp8_gemm  2048  5120  1       yes
  self_attn.o_proj          fp8_gemm  5120  768   1       yes
  linear_attn.in_proj_qkvz  fp8_gemm  2048  5120  1       yes
  linear_attn.out_proj      fp8_gemm  5120  768   1       yes
  linear_attn.in_proj_ba    fp8_gemm  12    5120  1       no   linear_num_value_heads/tp is 6, not a multiple of 128: a scale block would be cut
  mlp.gate_up_proj          fp8_gemm  4352  5120  1       yes
  mlp.down_proj             fp8_gemm  5120  2176  1       yes
  $ cubinet shapes --model $MODELS/GLM-5-FP8.json --tp 8
  LAYER                                OP                N     K     GROUPS  FP8  REASON
  self_attn.fused_qkv_a_proj_with_mqa  fp8_gemm          2624  6144  1       yes
  self_attn.q_b_proj                   fp8_gemm          2048  2048  1       yes
  self_attn.kv_b_proj                  fp8_gemm          3584  512   1       yes
  self_attn.o_proj                     fp8_gemm          6144  2048  1       yes
  self_attn.indexer.wq_b               fp8_gemm          4096  2048  1       yes
  self_attn.indexer.wk                 fp8_gemm          128   6144  1       yes
  mlp.gate_up_proj                     fp8_gemm          3072  6144  1       yes
  mlp.down_proj                        fp8_gemm          6144  1536  1       yes
  mlp.shared_experts.gate_up_proj      fp8_gemm          512   6144  1       yes
  mlp.shared_experts.down_proj         fp8_gemm          6144  256   1       yes
  mlp.experts.w13                      fp8_grouped_gemm  512   6144  256     yes
  mlp.experts.w2                       fp8_grouped_gemm  6144  256   256     yes
  $ cubinet shapes --model $MODELS/MiniMax-M2.5.json --tp 8
  LAYER               OP                N     K     GROUPS  FP8  REASON
  self_attn.qkv_proj  fp8_gemm          1024  3072  1       yes
  self_attn.o_proj    fp8_gemm          3072  768   1       yes
  mlp.experts.w13     fp8_grouped_gemm  384   3072  256     no   intermediate_size/moe_tp is 192, not a multiple of 128: a scale block would be cut
  mlp.experts.w2      fp8_grouped_gemm  3072  192   256     no   intermediate_size/moe_tp is 192, not a multiple of 128: a scale block would be cut
  $ cubinet shapes --model $MODELS/MiniMax-M2.5.json --tp 8 --ep 8
  LAYER               OP                N     K     GROUPS  FP8  REASON
  self_attn.qkv_proj  fp8_gemm          1024  3072  1       yes
  self_attn.o_proj    fp8_gemm          3072  768   1       yes
  mlp.experts.w13     fp8_grouped_gemm  3072  3072  32      yes
  mlp.experts.w2      fp8_grouped_gemm  3072  1536  32      yes
  $ cubinet shapes --model $MODELS/DeepSeek-V4-Pro-FP8.json --tp 8 --ep 8
  LAYER                            OP                N     K     GROUPS  FP8  REASON
  self_attn.wqkv_a                 fp8_gemm          2048  7168  1       yes
  self_attn.wq_b                   fp8_gemm          8192  1536  1       yes
  self_attn.wo_a                   fp8_einsum        1024  4096  2       yes
  self_attn.wo_b                   fp8_gemm          7168  2048  1       yes
  self_attn.indexer.wq_b           fp8_gemm          8192  1536  1       yes
  mlp.shared_experts.gate_up_proj  fp8_gemm          768   7168  1       yes
  mlp.shared_experts.down_proj     fp8_gemm          7168  384   1       yes
  mlp.experts.w13                  fp8_grouped_gemm  6144  7168  48      yes
  mlp.experts.w2                   fp8_grouped_gemm  7168  3072  48      yes
  $ cubinet --json shapes --model $MODELS/Qwen3-30B-A3B-FP8.json --tp 4
  {
    "schema": "cubinet.shapes/1",
    "model": "Qwen3MoeForCausalLM",
    "shapes": [
      {
        "op": "fp8_gemm",
        "layer": "self_attn.qkv_proj",
        "n": 1280,
        "k": 2048,
        "groups": 1,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_gemm",
        "layer": "self_attn.o_proj",
        "n": 2048,
        "k": 1024,
        "groups": 1,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_grouped_gemm",
        "layer": "mlp.experts.w13",
        "n": 384,
        "k": 2048,
        "groups": 128,
        "fp8": false,
        "reason": "moe_intermediate_size/moe_tp is 192, not a multiple of 128: a scale block would be cut"
      },
      {
        "op": "fp8_grouped_gemm",
        "layer": "mlp.experts.w2",
        "n": 2048,
        "k": 192,
        "groups": 128,
        "fp8": false,
        "reason": "moe_intermediate_size/moe_tp is 192, not a multiple of 128: a scale block would be cut"
      }
    ]
  }

What shapes prints is a manifest, for every model: the same request.

  $ for path in $MODELS/*.json; do
  >   cubinet --json shapes --model $path --tp 8 > manifest.json
  >   cubinet --quiet check --model $path --tp 8 --arch sm_90a > model.txt
  >   cubinet --quiet check --manifest manifest.json --arch sm_90a > manifest.txt
  >   cmp model.txt manifest.txt && echo "$(basename $path): $(grep requested manifest.txt)"
  > done
  DeepSeek-V3.2.json: requested 26, present 0, missing 24, uncovered 2
  DeepSeek-V3.json: requested 26, present 0, missing 24, uncovered 2
  DeepSeek-V4-Flash-FP8.json: requested 25, present 0, missing 22, uncovered 3
  DeepSeek-V4-Pro-FP8.json: requested 27, present 0, missing 24, uncovered 3
  GLM-5-FP8.json: requested 26, present 0, missing 24, uncovered 2
  MiniMax-M2.5.json: requested 19, present 0, missing 19, uncovered 0
  Qwen3-30B-A3B-FP8.json: requested 19, present 0, missing 19, uncovered 0
  Qwen3-32B-FP8.json: requested 24, present 0, missing 24, uncovered 0
  Qwen3.6-27B-FP8.json: requested 22, present 0, missing 22, uncovered 0

Every specialisation that any shape can reach covers every model, at every sharding.

  $ export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so
  > cubinet --quiet warm --all --arch sm_90a > text; echo "exit $?"
  > for path in $MODELS/*.json; do for tp in 1 4 8; do
  >   cubinet --quiet check --model $path --tp $tp --arch sm_90a --ops fp8_gemm,fp8_quantize | grep requested
  > done; done | sort | uniq -c
  exit 0
        2 requested 17, present 17, missing 0, uncovered 0
        2 requested 18, present 18, missing 0, uncovered 0
        2 requested 19, present 19, missing 0, uncovered 0
        1 requested 20, present 20, missing 0, uncovered 0
        2 requested 21, present 21, missing 0, uncovered 0
        4 requested 22, present 22, missing 0, uncovered 0
        3 requested 23, present 23, missing 0, uncovered 0
       11 requested 24, present 24, missing 0, uncovered 0
