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

/* clang-format off: a row a layer reads as a table */

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
     .n = "num_attention_heads/tp*head_dim, num_key_value_heads~tp*head_dim, num_key_value_heads~tp*head_dim",
     .k = "hidden_size",
     .modules = "self_attn.q_proj self_attn.k_proj self_attn.v_proj"},
    {.layer = "self_attn.o_proj", .op = GEMM, .n = "hidden_size", .k = "num_attention_heads/tp*head_dim"},
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

#define ROWS(name) .rows = name, .row_count = sizeof(name) / sizeof((name)[0])

/* The parts that DeepSeek-V3 and what follows it share. */
#define MLA_BLOCKS                                                                                                     \
    {ROWS(mla_query_rows), .condition = {CBN__WHEN_AT_LEAST, "q_lora_rank", 1}},                                       \
        {ROWS(mla_plain_query_rows), .condition = {CBN__WHEN_BELOW, "q_lora_rank", 1}},                                \
    {                                                                                                                  \
        ROWS(mla_rows)                                                                                                 \
    }
#define V3_MLP_BLOCKS                                                                                                  \
    {ROWS(dense_rows), .condition = {CBN__WHEN_AT_LEAST, "first_k_dense_replace", 1},                                  \
     .layer_end = "first_k_dense_replace"},                                                                            \
        {ROWS(shared_expert_rows), .condition = {CBN__WHEN_AT_LEAST, "n_shared_experts", 1},                           \
         .first_layer = "first_k_dense_replace"},                                                                      \
    {                                                                                                                  \
        ROWS(expert_rows), .first_layer = "first_k_dense_replace"                                                      \
    }

static const struct cbn__architecture architectures[] = {
    {"DeepseekV3ForCausalLM", {MLA_BLOCKS, V3_MLP_BLOCKS}},
    {"DeepseekV32ForCausalLM", {MLA_BLOCKS, {ROWS(indexer_query_rows)}, {ROWS(indexer_key_rows)}, V3_MLP_BLOCKS}},
    {"DeepseekV4ForCausalLM",
     {{ROWS(v4_attention_rows)},
      {ROWS(indexer_query_rows), .condition = {CBN__WHEN_HAS, "compress_ratios", 4}},
      {ROWS(shared_expert_rows), .condition = {CBN__WHEN_AT_LEAST, "n_shared_experts", 1}},
      {ROWS(expert_rows)}}},
    {"Qwen3ForCausalLM", {{ROWS(gqa_rows)}, {ROWS(dense_rows)}}},
    /* Dense layers stand between the sparse ones for either of two reasons; a layer is listed once. */
    {"Qwen3MoeForCausalLM",
     {{ROWS(gqa_rows)},
      {ROWS(dense_rows), .condition = {CBN__WHEN_NON_EMPTY, "mlp_only_layers", 0}},
      {ROWS(dense_rows), .condition = {CBN__WHEN_AT_LEAST, "decoder_sparse_step", 2}},
      {ROWS(expert_rows)}}},
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
