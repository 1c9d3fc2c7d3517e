The layers of the models, as text and as JSON, at several shardings.

  $ cubinet shapes --model $MODELS/DeepSeek-V3.json
  LAYER                                OP                N      K      GROUPS  FP8  REASON
  self_attn.fused_qkv_a_proj_with_mqa  fp8_gemm          2112   7168   1       yes
  self_attn.q_b_proj                   fp8_gemm          24576  1536   1       yes
  self_attn.kv_b_proj                  fp8_gemm          32768  512    1       yes
  self_attn.o_proj                     fp8_gemm          7168   16384  1       yes
  mlp.gate_up_proj                     fp8_gemm          36864  7168   1       yes
  mlp.down_proj                        fp8_gemm          7168   18432  1       yes
  mlp.shared_experts.gate_up_proj      fp8_gemm          4096   7168   1       yes
  mlp.shared_experts.down_proj         fp8_gemm          7168   2048   1       yes
  mlp.experts.w13                      fp8_grouped_gemm  4096   7168   256     yes
  mlp.experts.w2                       fp8_grouped_gemm  7168   2048   256     yes
  $ cubinet shapes --model $MODELS/DeepSeek-V3.json --tp 8
  LAYER                                OP                N     K     GROUPS  FP8  REASON
  self_attn.fused_qkv_a_proj_with_mqa  fp8_gemm          2112  7168  1       yes
  self_attn.q_b_proj                   fp8_gemm          3072  1536  1       yes
  self_attn.kv_b_proj                  fp8_gemm          4096  512   1       yes
  self_attn.o_proj                     fp8_gemm          7168  2048  1       yes
  mlp.gate_up_proj                     fp8_gemm          4608  7168  1       yes
  mlp.down_proj                        fp8_gemm          7168  2304  1       yes
  mlp.shared_experts.gate_up_proj      fp8_gemm          512   7168  1       yes
  mlp.shared_experts.down_proj         fp8_gemm          7168  256   1       yes
  mlp.experts.w13                      fp8_grouped_gemm  512   7168  256     yes
  mlp.experts.w2                       fp8_grouped_gemm  7168  256   256     yes
  $ cubinet --json shapes --model $MODELS/DeepSeek-V3.json --tp 8
  {
    "schema": "cubinet.shapes/1",
    "model": "DeepseekV3ForCausalLM",
    "shapes": [
      {
        "op": "fp8_gemm",
        "layer": "self_attn.fused_qkv_a_proj_with_mqa",
        "n": 2112,
        "k": 7168,
        "groups": 1,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_gemm",
        "layer": "self_attn.q_b_proj",
        "n": 3072,
        "k": 1536,
        "groups": 1,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_gemm",
        "layer": "self_attn.kv_b_proj",
        "n": 4096,
        "k": 512,
        "groups": 1,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_gemm",
        "layer": "self_attn.o_proj",
        "n": 7168,
        "k": 2048,
        "groups": 1,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_gemm",
        "layer": "mlp.gate_up_proj",
        "n": 4608,
        "k": 7168,
        "groups": 1,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_gemm",
        "layer": "mlp.down_proj",
        "n": 7168,
        "k": 2304,
        "groups": 1,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_gemm",
        "layer": "mlp.shared_experts.gate_up_proj",
        "n": 512,
        "k": 7168,
        "groups": 1,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_gemm",
        "layer": "mlp.shared_experts.down_proj",
        "n": 7168,
        "k": 256,
        "groups": 1,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_grouped_gemm",
        "layer": "mlp.experts.w13",
        "n": 512,
        "k": 7168,
        "groups": 256,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_grouped_gemm",
        "layer": "mlp.experts.w2",
        "n": 7168,
        "k": 256,
        "groups": 256,
        "fp8": true,
        "reason": ""
      }
    ]
  }
  $ cubinet shapes --model $MODELS/DeepSeek-V3.json --tp 8 --ep 16
  LAYER                                OP                N     K     GROUPS  FP8  REASON
  self_attn.fused_qkv_a_proj_with_mqa  fp8_gemm          2112  7168  1       yes
  self_attn.q_b_proj                   fp8_gemm          3072  1536  1       yes
  self_attn.kv_b_proj                  fp8_gemm          4096  512   1       yes
  self_attn.o_proj                     fp8_gemm          7168  2048  1       yes
  mlp.gate_up_proj                     fp8_gemm          4608  7168  1       yes
  mlp.down_proj                        fp8_gemm          7168  2304  1       yes
  mlp.shared_experts.gate_up_proj      fp8_gemm          512   7168  1       yes
  mlp.shared_experts.down_proj         fp8_gemm          7168  256   1       yes
  mlp.experts.w13                      fp8_grouped_gemm  4096  7168  16      yes
  mlp.experts.w2                       fp8_grouped_gemm  7168  2048  16      yes
  $ cubinet shapes --model $MODELS/DeepSeek-V4-Flash-FP8.json --tp 4
  LAYER                            OP                N     K     GROUPS  FP8  REASON
  self_attn.wqkv_a                 fp8_gemm          1536  4096  1       yes
  self_attn.wq_b                   fp8_gemm          8192  1024  1       yes
  self_attn.wo_a                   fp8_einsum        1024  4096  2       yes
  self_attn.wo_b                   fp8_gemm          4096  2048  1       yes
  self_attn.indexer.wq_b           fp8_gemm          8192  1024  1       yes
  mlp.shared_experts.gate_up_proj  fp8_gemm          1024  4096  1       yes
  mlp.shared_experts.down_proj     fp8_gemm          4096  512   1       yes
  mlp.experts.w13                  fp8_grouped_gemm  1024  4096  256     yes
  mlp.experts.w2                   fp8_grouped_gemm  4096  512   256     yes
  $ cubinet --json shapes --model $MODELS/DeepSeek-V4-Flash-FP8.json --tp 4
  {
    "schema": "cubinet.shapes/1",
    "model": "DeepseekV4ForCausalLM",
    "shapes": [
      {
        "op": "fp8_gemm",
        "layer": "self_attn.wqkv_a",
        "n": 1536,
        "k": 4096,
        "groups": 1,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_gemm",
        "layer": "self_attn.wq_b",
        "n": 8192,
        "k": 1024,
        "groups": 1,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_einsum",
        "layer": "self_attn.wo_a",
        "n": 1024,
        "k": 4096,
        "groups": 2,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_gemm",
        "layer": "self_attn.wo_b",
        "n": 4096,
        "k": 2048,
        "groups": 1,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_gemm",
        "layer": "self_attn.indexer.wq_b",
        "n": 8192,
        "k": 1024,
        "groups": 1,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_gemm",
        "layer": "mlp.shared_experts.gate_up_proj",
        "n": 1024,
        "k": 4096,
        "groups": 1,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_gemm",
        "layer": "mlp.shared_experts.down_proj",
        "n": 4096,
        "k": 512,
        "groups": 1,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_grouped_gemm",
        "layer": "mlp.experts.w13",
        "n": 1024,
        "k": 4096,
        "groups": 256,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_grouped_gemm",
        "layer": "mlp.experts.w2",
        "n": 4096,
        "k": 512,
        "groups": 256,
        "fp8": true,
        "reason": ""
      }
    ]
  }
  $ cubinet shapes --model $MODELS/Qwen3-32B-FP8.json
  LAYER               OP        N      K      GROUPS  FP8  REASON
  self_attn.qkv_proj  fp8_gemm  10240  5120   1       yes
  self_attn.o_proj    fp8_gemm  5120   8192   1       yes
  mlp.gate_up_proj    fp8_gemm  51200  5120   1       yes
  mlp.down_proj       fp8_gemm  5120   25600  1       yes
  $ cubinet shapes --model $MODELS/Qwen3-32B-FP8.json --tp 8
  LAYER               OP        N     K     GROUPS  FP8  REASON
  self_attn.qkv_proj  fp8_gemm  1280  5120  1       yes
  self_attn.o_proj    fp8_gemm  5120  1024  1       yes
  mlp.gate_up_proj    fp8_gemm  6400  5120  1       yes
  mlp.down_proj       fp8_gemm  5120  3200  1       yes
  $ cubinet --json shapes --model $MODELS/Qwen3-32B-FP8.json --tp 4
  {
    "schema": "cubinet.shapes/1",
    "model": "Qwen3ForCausalLM",
    "shapes": [
      {
        "op": "fp8_gemm",
        "layer": "self_attn.qkv_proj",
        "n": 2560,
        "k": 5120,
        "groups": 1,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_gemm",
        "layer": "self_attn.o_proj",
        "n": 5120,
        "k": 2048,
        "groups": 1,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_gemm",
        "layer": "mlp.gate_up_proj",
        "n": 12800,
        "k": 5120,
        "groups": 1,
        "fp8": true,
        "reason": ""
      },
      {
        "op": "fp8_gemm",
        "layer": "mlp.down_proj",
        "n": 5120,
        "k": 6400,
        "groups": 1,
        "fp8": true,
        "reason": ""
      }
    ]
  }

Files that are missing, empty, malformed, of no known architecture; a sharding that does not divide.

  $ cubinet shapes --model missing.json
  ! cubinet: shapes: cannot open missing.json: No such file or directory
  [1]
  $ cubinet shapes --model .
  ! cubinet: shapes: . is a folder; give the JSON file in it: Is a directory
  [1]
  $ : > empty.json; cubinet shapes --model empty.json
  ! cubinet: shapes: empty.json is empty; give a JSON file
  [1]
  $ echo '{"architectures": [' > cut.json; cubinet shapes --model cut.json
  ! cubinet: shapes: cut.json line 2 column 0 is not valid JSON: ']' expected near end of file; mend the file there
  [1]
  $ echo '[1, 2]' > array.json; cubinet shapes --model array.json
  ! cubinet: shapes: the file holds an array; a config.json is an object
  [1]
  $ echo '{"architectures": ["FrobnicateForCausalLM"]}' > other.json; cubinet shapes --model other.json
  ! cubinet: shapes: architectures names FrobnicateForCausalLM, for which there are no formulas; give its shapes in a manifest (there are formulas for DeepseekV3, DeepseekV32, GlmMoeDsa, DeepseekV4, Glm4Moe, Qwen3, Qwen3VL, Qwen3Moe, Qwen3VLMoe, Qwen3Next, Qwen3_5, Qwen3_5Moe, MiniMaxM2)
  [1]
  $ cubinet shapes --model $MODELS/DeepSeek-V3.json --tp 7
  ! cubinet: shapes: tp 7 does not divide num_attention_heads (128); give a number of ranks that does
  [1]
  $ cubinet --json shapes --model missing.json
  ! cubinet: shapes: cannot open missing.json: No such file or directory
  [1]
