Broken and foreign configs: an answer each, in the exit status and on stderr.

  $ cd $MODELS/../configs; grep -v '^#' answers.txt | while read file tp ep status words; do
  >   options="--tp $tp"; [ $ep = 0 ] || options="$options --ep $ep"
  >   cubinet shapes --model $file $options > $HOME/out; code=$?
  >   [ $status = OK ] && want=0 || want=1
  >   [ $code = $want ] || echo "$file: exit $code"
  >   [ $status != OK ] || grep -m1 "no   *[a-z]" $HOME/out
  > done 2>&1
  cubinet: shapes: architectures names LlamaForCausalLM, for which there are no formulas; give its shapes in a manifest (there are formulas for DeepseekV3, DeepseekV32, GlmMoeDsa, DeepseekV4, Glm4Moe, Qwen3, Qwen3VL, Qwen3Moe, Qwen3VLMoe, Qwen3Next, Qwen3_5, Qwen3_5Moe, MiniMaxM2)
  cubinet: shapes: architectures names MixtralForCausalLM, for which there are no formulas; give its shapes in a manifest (there are formulas for DeepseekV3, DeepseekV32, GlmMoeDsa, DeepseekV4, Glm4Moe, Qwen3, Qwen3VL, Qwen3Moe, Qwen3VLMoe, Qwen3Next, Qwen3_5, Qwen3_5Moe, MiniMaxM2)
  cubinet: shapes: architectures names GptOssForCausalLM, for which there are no formulas; give its shapes in a manifest (there are formulas for DeepseekV3, DeepseekV32, GlmMoeDsa, DeepseekV4, Glm4Moe, Qwen3, Qwen3VL, Qwen3Moe, Qwen3VLMoe, Qwen3Next, Qwen3_5, Qwen3_5Moe, MiniMaxM2)
  cubinet: shapes: architectures names Gemma3ForConditionalGeneration, for which there are no formulas; give its shapes in a manifest (there are formulas for DeepseekV3, DeepseekV32, GlmMoeDsa, DeepseekV4, Glm4Moe, Qwen3, Qwen3VL, Qwen3Moe, Qwen3VLMoe, Qwen3Next, Qwen3_5, Qwen3_5Moe, MiniMaxM2)
  cubinet: shapes: architectures names Llama4ForCausalLM, for which there are no formulas; give its shapes in a manifest (there are formulas for DeepseekV3, DeepseekV32, GlmMoeDsa, DeepseekV4, Glm4Moe, Qwen3, Qwen3VL, Qwen3Moe, Qwen3VLMoe, Qwen3Next, Qwen3_5, Qwen3_5Moe, MiniMaxM2)
  cubinet: shapes: quantization_config is missing, so the model is not FP8; give the config of a block FP8 checkpoint
  cubinet: shapes: quantization_config.quant_method is "compressed-tensors"; only "fp8" with 128x128 blocks is taken: give a block FP8 checkpoint
  cubinet: shapes: quantization_config.quant_method is "compressed-tensors"; only "fp8" with 128x128 blocks is taken: give a block FP8 checkpoint
  cubinet: shapes: quantization_config.quant_method is "modelopt"; only "fp8" with 128x128 blocks is taken: give a block FP8 checkpoint
  cubinet: shapes: quantization_config.quant_method is "modelopt"; only "fp8" with 128x128 blocks is taken: give a block FP8 checkpoint
  cubinet: shapes: quantization_config.activation_scheme is "static"; only "dynamic" with 128x128 blocks is taken: give a block FP8 checkpoint
  cubinet: shapes: quantization_config.weight_block_size is missing, so the scales are not per block; give a checkpoint with [128, 128]
  cubinet: shapes: quantization_config.weight_block_size is [1, 32]; only [128, 128] is taken
  cubinet: shapes: quantization_config.quant_method is "mxfp8"; only "fp8" with 128x128 blocks is taken: give a block FP8 checkpoint
  cubinet: shapes: quantization_config.fmt is "e5m2"; only "e4m3" or "float8_e4m3fn" with 128x128 blocks is taken: give a block FP8 checkpoint
  cubinet: shapes: quantization_config.scale_fmt is "bf16"; only "ue8m0" or "float" with 128x128 blocks is taken: give a block FP8 checkpoint
  cubinet: shapes: quantization_config.quant_method is "awq"; only "fp8" with 128x128 blocks is taken: give a block FP8 checkpoint
  cubinet: shapes: quantization_config.quant_method is "gptq"; only "fp8" with 128x128 blocks is taken: give a block FP8 checkpoint
  cubinet: shapes: quantization_config.quant_method is "bitsandbytes"; only "fp8" with 128x128 blocks is taken: give a block FP8 checkpoint
  cubinet: shapes: text_config.quantization_config.quant_method is "modelopt"; only "fp8" with 128x128 blocks is taken: give a block FP8 checkpoint
  cubinet: shapes: quantization_config.weight_block_size is not an array of two integers; block FP8 says [128, 128]
  cubinet: shapes: quantization_config.weight_block_size is not an array of two integers; block FP8 says [128, 128]
  cubinet: shapes: quantization_config is a string; it must be an object
  cubinet: shapes: quantization_config.quant_method is missing; block FP8 says "fp8"
  cubinet: shapes: quantization_config.modules_to_not_convert[1] "re:.*self_attn.*" is a pattern; only names of modules are taken: list them
  cubinet: shapes: quantization_config.modules_to_not_convert[1] is an integer; it must be the name of a module
  cubinet: shapes: truncated.json line 14 column 17 is not valid JSON: premature end of input near '"quant_method'; mend the file there
  cubinet: shapes: empty.json is empty; give a JSON file
  cubinet: shapes: the file holds an array; a config.json is an object
  cubinet: shapes: deep.json line 1: nested deeper than 64; flatten the file
  cubinet: shapes: field-twice.json line 1 column 35 is not valid JSON: duplicate object key near '"hidden_size"'; mend the file there
  cubinet: shapes: nan.json line 1 column 81 is not valid JSON: invalid token near 'NaN'; mend the file there
  cubinet: shapes: byte-order-mark.json line 1 column 1 is not valid JSON: '[' or '{' expected near '???'; mend the file there
  cubinet: shapes: utf-16.json line 1 column 0 is not valid JSON: unable to decode byte 0xff; mend the file there
  cubinet: shapes: latin-1.json line 1 column 22 is not valid JSON: unable to decode byte 0xeb near '"Qw'; mend the file there
  cubinet: shapes: nul-in-name.json line 1 column 44 is not valid JSON: \u0000 is not allowed without JSON_ALLOW_NUL; mend the file there
  cubinet: shapes: lfs-pointer.json line 1 column 7 is not valid JSON: '[' or '{' expected near 'version'; mend the file there
  cubinet: shapes: architectures is missing; it must be an array of names
  cubinet: shapes: architectures is missing; it must be an array of names
  cubinet: shapes: architectures is a string; it must be an array of names
  cubinet: shapes: architectures is empty; it must be an array of names
  cubinet: shapes: text_config is an array; it must be an object
  cubinet: shapes: hidden_size is a string; it must be a positive integer
  cubinet: shapes: hidden-size-beyond-64-bits.json line 1 column 98 is not valid JSON: too big integer near '99999999999999999999'; mend the file there
  cubinet: shapes: head_dim is a real number; it must be a positive integer
  cubinet: shapes: num_attention_heads is -32; it must be a positive integer
  cubinet: shapes: num_key_value_heads is 0; it must be a positive integer
  cubinet: shapes: num_hidden_layers is 0; it must be a positive integer
  cubinet: shapes: num_hidden_layers is 1000000; at most 65536 is taken
  cubinet: shapes: intermediate_size is missing; it must be a positive integer
  cubinet: shapes: num_attention_heads/tp*head_dim, num_key_value_heads~tp*head_dim, num_key_value_heads~tp*head_dim passes 2147483647; check these fields of the config
  cubinet: shapes: num_experts is 0; it must be a positive integer
  cubinet: shapes: mlp_only_layers is a string; it must be an array of integers
  cubinet: shapes: ep 7 does not divide num_experts (128); give a number of ranks that does
  cubinet: shapes: tp 16 does not divide num_attention_heads (40); give a number of ranks that does
  cubinet: shapes: text_config.layer_types has 2 entries, fewer than num_hidden_layers (64)
  cubinet: shapes: text_config.layer_types[0] is "sliding_attention"; there are formulas for "full_attention" and "linear_attention"
  cubinet: shapes: compress_ratios is missing; it must be an array of integers
  cubinet: shapes: first_k_dense_replace is 62, more than num_hidden_layers (61)
  cubinet: shapes: moe_layer_freq is an array; it must be a positive integer
  mlp.gate_up_proj    fp8_gemm  2432  2560  1       no   intermediate_size/tp is 1216, not a multiple of 128: a scale block would be cut
  self_attn.qkv_proj  fp8_gemm  6144   4096   1       no   quantization_config.modules_to_not_convert leaves it out in every layer
  mlp.experts.w13                  fp8_grouped_gemm  4096   4096  256     no   expert_dtype is fp4, not fp8
