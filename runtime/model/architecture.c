/*
 * Formulas of the linear layers, as the public Hugging Face and inference definitions of each model state them. A new
 * architecture is one entry of the last table, and rows for what it does not share.
 */
#include "model/architecture.h"

#include <stddef.h>
#include <string.h>

#define GEMM "fp8_gemm"
#define EINSUM "fp8_einsum"
#define GROUPED "fp8_grouped_gemm"

#define SHARED_HALF "(moe_intermediate_size*n_shared_experts)/tp"
#define EXPERT_HALF "moe_intermediate_size/moe_tp"
#define QWEN_SHARED_HALF "shared_expert_intermediate_size/tp"
#define MINIMAX_EXPERT_HALF "intermediate_size/moe_tp"
#define KV_PART "num_key_value_heads~tp*head_dim"
#define LINEAR_KEY_PART "linear_num_key_heads/tp*linear_key_head_dim"
#define LINEAR_VALUE_PART "linear_num_value_heads/tp*linear_value_head_dim"

/* A row a layer reads as a table. */
/* clang-format off */

static const struct cbn__row mla_query_rows[] = {
    {.layer = "self_attn.fused_qkv_a_proj_with_mqa",
     .op = GEMM,
     .n = "q_lora_rank, kv_lora_rank+qk_rope_head_dim",
     .k = "hidden_size",
     .modules = "self_attn.q_a_proj self_attn.kv_a_proj_with_mqa"},
    {.layer = "self_attn.q_b_proj",
     .op = GEMM,
     .n = "num_attention_heads/tp*(qk_nope_head_dim+qk_rope_head_dim)",
     .k = "q_lora_rank"},
};

/* Latent attention whose q_lora_rank is null projects the query at once. */
static const struct cbn__row mla_plain_query_rows[] = {
    {.layer = "self_attn.q_proj",
     .op = GEMM,
     .n = "num_attention_heads/tp*(qk_nope_head_dim+qk_rope_head_dim)",
     .k = "hidden_size"},
    {.layer = "self_attn.kv_a_proj_with_mqa", .op = GEMM, .n = "kv_lora_rank+qk_rope_head_dim", .k = "hidden_size"},
};

static const struct cbn__row mla_rows[] = {
    {.layer = "self_attn.kv_b_proj",
     .op = GEMM,
     .n = "num_attention_heads/tp*(qk_nope_head_dim+v_head_dim)",
     .k = "kv_lora_rank"},
    {.layer = "self_attn.o_proj", .op = GEMM, .n = "hidden_size", .k = "num_attention_heads/tp*v_head_dim"},
};

static const struct cbn__row indexer_query_rows[] = {
    {.layer = "self_attn.indexer.wq_b", .op = GEMM, .n = "index_n_heads*index_head_dim", .k = "q_lora_rank"},
};

static const struct cbn__row indexer_key_rows[] = {
    {.layer = "self_attn.indexer.wk", .op = GEMM, .n = "index_head_dim", .k = "hidden_size"},
};

static const struct cbn__row gqa_rows[] = {
    {.layer = "self_attn.qkv_proj",
     .op = GEMM,
     .n = "num_attention_heads/tp*head_dim, " KV_PART ", " KV_PART,
     .k = "hidden_size",
     .modules = "self_attn.q_proj self_attn.k_proj self_attn.v_proj"},
    {.layer = "self_attn.o_proj", .op = GEMM, .n = "hidden_size", .k = "num_attention_heads/tp*head_dim"},
};

/* Query heads bring the gate of their output with them. */
static const struct cbn__row gated_gqa_rows[] = {
    {.layer = "self_attn.qkv_proj",
     .op = GEMM,
     .n = "num_attention_heads/tp*(1+attn_output_gate?)*head_dim, " KV_PART ", " KV_PART,
     .k = "hidden_size",
     .modules = "self_attn.q_proj self_attn.k_proj self_attn.v_proj"},
    {.layer = "self_attn.o_proj", .op = GEMM, .n = "hidden_size", .k = "num_attention_heads/tp*head_dim"},
};

static const struct cbn__row linear_attention_rows[] = {
    {.layer = "linear_attn.in_proj_qkvz",
     .op = GEMM,
     .n = LINEAR_KEY_PART ", " LINEAR_KEY_PART ", " LINEAR_VALUE_PART ", " LINEAR_VALUE_PART,
     .k = "hidden_size",
     .modules = "linear_attn.in_proj_qkv linear_attn.in_proj_z"},
    {.layer = "linear_attn.out_proj", .op = GEMM, .n = "hidden_size", .k = LINEAR_VALUE_PART},
    {.layer = "linear_attn.in_proj_ba",
     .op = GEMM,
     .n = "linear_num_value_heads/tp, linear_num_value_heads/tp",
     .k = "hidden_size",
     .modules = "linear_attn.in_proj_b linear_attn.in_proj_a"},
};

static const struct cbn__row v4_attention_rows[] = {
    {.layer = "self_attn.wqkv_a",
     .op = GEMM,
     .n = "q_lora_rank, head_dim",
     .k = "hidden_size",
     .modules = "self_attn.wq_a self_attn.wkv"},
    {.layer = "self_attn.wq_b", .op = GEMM, .n = "num_attention_heads/tp*head_dim", .k = "q_lora_rank"},
    {.layer = "self_attn.wo_a",
     .op = EINSUM,
     .n = "o_lora_rank",
     .k = "(num_attention_heads*head_dim)/o_groups",
     .groups = "o_groups/tp",
     .stacked = true},
    {.layer = "self_attn.wo_b", .op = GEMM, .n = "hidden_size", .k = "o_groups/tp*o_lora_rank"},
};

static const struct cbn__row dense_rows[] = {
    {.layer = "mlp.gate_up_proj",
     .op = GEMM,
     .n = "intermediate_size/tp, intermediate_size/tp",
     .k = "hidden_size",
     .modules = "mlp.gate_proj mlp.up_proj"},
    {.layer = "mlp.down_proj", .op = GEMM, .n = "hidden_size", .k = "intermediate_size/tp"},
};

static const struct cbn__row shared_expert_rows[] = {
    {.layer = "mlp.shared_experts.gate_up_proj",
     .op = GEMM,
     .n = SHARED_HALF ", " SHARED_HALF,
     .k = "hidden_size",
     .modules = "mlp.shared_experts.gate_proj mlp.shared_experts.up_proj"},
    {.layer = "mlp.shared_experts.down_proj", .op = GEMM, .n = "hidden_size", .k = SHARED_HALF},
};

static const struct cbn__row expert_rows[] = {
    {.layer = "mlp.experts.w13",
     .op = GROUPED,
     .n = EXPERT_HALF ", " EXPERT_HALF,
     .k = "hidden_size",
     .groups = "n_routed_experts|num_experts/ep",
     .modules = "mlp.experts.*.gate_proj mlp.experts.*.up_proj",
     .dtype_field = "expert_dtype"},
    {.layer = "mlp.experts.w2",
     .op = GROUPED,
     .n = "hidden_size",
     .k = EXPERT_HALF,
     .groups = "n_routed_experts|num_experts/ep",
     .modules = "mlp.experts.*.down_proj",
     .dtype_field = "expert_dtype"},
};

static const struct cbn__row qwen_shared_expert_rows[] = {
    {.layer = "mlp.shared_expert.gate_up_proj",
     .op = GEMM,
     .n = QWEN_SHARED_HALF ", " QWEN_SHARED_HALF,
     .k = "hidden_size",
     .modules = "mlp.shared_expert.gate_proj mlp.shared_expert.up_proj"},
    {.layer = "mlp.shared_expert.down_proj", .op = GEMM, .n = "hidden_size", .k = QWEN_SHARED_HALF},
};

/* Every layer is sparse, and intermediate_size is one expert's. */
static const struct cbn__row minimax_expert_rows[] = {
    {.layer = "mlp.experts.w13",
     .op = GROUPED,
     .n = MINIMAX_EXPERT_HALF ", " MINIMAX_EXPERT_HALF,
     .k = "hidden_size",
     .groups = "num_local_experts/ep",
     .modules = "block_sparse_moe.experts.*.w1 block_sparse_moe.experts.*.w3"},
    {.layer = "mlp.experts.w2",
     .op = GROUPED,
     .n = "hidden_size",
     .k = MINIMAX_EXPERT_HALF,
     .groups = "num_local_experts/ep",
     .modules = "block_sparse_moe.experts.*.w2"},
};

#define ROWS(name) .rows = name, .row_count = sizeof(name) / sizeof((name)[0])

#define WHEN(...) .conditions = {__VA_ARGS__}
#define AT_LEAST_ONE(name) {.when = CBN__WHEN_AT_LEAST, .field = name, .value = 1}
#define NONE_OF(name) {.when = CBN__WHEN_BELOW, .field = name, .value = 1}
#define TYPE(name) {.when = CBN__WHEN_TYPE, .field = "layer_types", .type = name}
#define SPARSE {.when = CBN__WHEN_SPARSE}
#define DENSE {.when = CBN__WHEN_DENSE}

#define MLA_BLOCKS                                                                                                     \
    {ROWS(mla_query_rows), WHEN(AT_LEAST_ONE("q_lora_rank"))},                                                         \
    {ROWS(mla_plain_query_rows), WHEN(NONE_OF("q_lora_rank"))},                                                        \
    {ROWS(mla_rows)}
#define INDEXER_BLOCKS {ROWS(indexer_query_rows)}, {ROWS(indexer_key_rows)}
#define V3_MLP_BLOCKS                                                                                                  \
    {ROWS(dense_rows), WHEN(DENSE)},                                                                                   \
    {ROWS(shared_expert_rows), WHEN(AT_LEAST_ONE("n_shared_experts"), SPARSE)},                                        \
    {ROWS(expert_rows), WHEN(SPARSE)}
#define QWEN_MOE_BLOCKS {ROWS(dense_rows), WHEN(DENSE)}, {ROWS(expert_rows), WHEN(SPARSE)}
#define HYBRID_BLOCKS                                                                                                  \
    {ROWS(gated_gqa_rows), WHEN(TYPE("full_attention"))},                                                              \
    {ROWS(linear_attention_rows), WHEN(TYPE("linear_attention"))}
#define HYBRID_MOE_BLOCKS                                                                                              \
    HYBRID_BLOCKS, QWEN_MOE_BLOCKS,                                                                                    \
    {ROWS(qwen_shared_expert_rows), WHEN(AT_LEAST_ONE("shared_expert_intermediate_size"), SPARSE)}

#define FIRST_DENSE {.first = "first_k_dense_replace", .step = "moe_layer_freq"}
#define EVERY_STEP {.step = "decoder_sparse_step", .list = "mlp_only_layers", .phase = 1}
#define ALL_ALIKE {.first = NULL}

static const struct cbn__architecture architectures[] = {
    {"DeepseekV3ForCausalLM", FIRST_DENSE, {MLA_BLOCKS, V3_MLP_BLOCKS}},
    {"DeepseekV32ForCausalLM", FIRST_DENSE, {MLA_BLOCKS, INDEXER_BLOCKS, V3_MLP_BLOCKS}},
    {"GlmMoeDsaForCausalLM", FIRST_DENSE, {MLA_BLOCKS, INDEXER_BLOCKS, V3_MLP_BLOCKS}},
    {"DeepseekV4ForCausalLM",
     ALL_ALIKE,
     {{ROWS(v4_attention_rows)},
      {ROWS(indexer_query_rows), WHEN({.when = CBN__WHEN_ENTRY, .field = "compress_ratios", .value = 4})},
      {ROWS(shared_expert_rows), WHEN(AT_LEAST_ONE("n_shared_experts"))},
      {ROWS(expert_rows)}}},
    {"Glm4MoeForCausalLM", FIRST_DENSE, {{ROWS(gqa_rows)}, V3_MLP_BLOCKS}},
    {"Qwen3ForCausalLM", ALL_ALIKE, {{ROWS(gqa_rows)}, {ROWS(dense_rows)}}},
    {"Qwen3VLForConditionalGeneration", ALL_ALIKE, {{ROWS(gqa_rows)}, {ROWS(dense_rows)}}},
    {"Qwen3MoeForCausalLM", EVERY_STEP, {{ROWS(gqa_rows)}, QWEN_MOE_BLOCKS}},
    {"Qwen3VLMoeForConditionalGeneration", EVERY_STEP, {{ROWS(gqa_rows)}, QWEN_MOE_BLOCKS}},
    {"Qwen3NextForCausalLM", EVERY_STEP, {HYBRID_MOE_BLOCKS}},
    {"Qwen3_5ForConditionalGeneration", ALL_ALIKE, {HYBRID_BLOCKS, {ROWS(dense_rows)}}},
    {"Qwen3_5ForCausalLM", ALL_ALIKE, {HYBRID_BLOCKS, {ROWS(dense_rows)}}},
    {"Qwen3_5MoeForConditionalGeneration", ALL_ALIKE, {HYBRID_MOE_BLOCKS}},
    {"Qwen3_5MoeForCausalLM", ALL_ALIKE, {HYBRID_MOE_BLOCKS}},
    {"MiniMaxM2ForCausalLM", ALL_ALIKE, {{ROWS(gqa_rows)}, {ROWS(minimax_expert_rows)}}},
};
/* clang-format on */

const struct cbn__architecture *cbn__architecture_get(uint32_t index)
{
    return index < sizeof(architectures) / sizeof(architectures[0]) ? &architectures[index] : NULL;
}

const struct cbn__architecture *cbn__architecture_find(const char *name)
{
    const struct cbn__architecture *architecture;
    for (uint32_t i = 0; (architecture = cbn__architecture_get(i)); i++)
        if (strcmp(architecture->name, name) == 0)
            return architecture;
    return NULL;
}
