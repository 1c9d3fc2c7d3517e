/*
 * config.json to shapes, against the table of the shapes of real models.
 */
#include "unit/model_fixture.h"

#include "model/architecture.h"

/* A line of model_shapes.csv: model,layer,N,K,groups,tp,notes; layer and notes may be quoted. */
struct csv_row {
    char model[64], layer[128], notes[512];
    int64_t n, k, groups, tp;
};

static char *cut_field(char **line)
{
    char *start = *line, *end;
    bool quoted = *start == '"';
    start += quoted;
    end = strpbrk(start, quoted ? "\"" : ",\r\n");
    ck_assert_ptr_nonnull(end);
    *end = '\0';
    *line = end + 1 + (quoted && end[1] == ',');
    return start;
}

static bool read_row(FILE *file, struct csv_row *row)
{
    char line[1024], *at = line;
    if (!fgets(line, sizeof(line), file))
        return false;
    (void)snprintf(row->model, sizeof(row->model), "%s", cut_field(&at));
    (void)snprintf(row->layer, sizeof(row->layer), "%s", cut_field(&at));
    row->n = atoll(cut_field(&at));
    row->k = atoll(cut_field(&at));
    row->groups = atoll(cut_field(&at));
    row->tp = atoll(cut_field(&at));
    (void)snprintf(row->notes, sizeof(row->notes), "%s", cut_field(&at));
    return true;
}

static const char *op_of(const struct csv_row *row)
{
    if (strncmp(row->layer, "mlp.experts.", 12) == 0)
        return "fp8_grouped_gemm";
    return strstr(row->layer, "wo_a") ? "fp8_einsum" : "fp8_gemm";
}

/*
 * What an engine's own option leaves out (wo_a, indexer.wk) needs a kernel still. The notes forget one sharding whose
 * halves are cut, GLM-4.5's shared experts at tp 8.
 */
static bool is_refused(const struct csv_row *row)
{
    static const char *const words[] = {"refused", "refuses", "raises at load", "must be unquantised"};
    for (int i = 0; i < COUNT(words); i++)
        if (strstr(row->notes, words[i]))
            return true;
    return strstr(row->notes, "merged x2") && row->n / 2 % 128 != 0;
}

static void compare_row(const struct csv_row *row, const struct cbn_model *model)
{
    char layer[128];
    (void)snprintf(layer, sizeof(layer), "%.*s", (int)strcspn(row->layer, "("), row->layer);
    const struct cbn_model_shape *shape = find_shape(model, layer);
    bool refused = is_refused(row);
    ck_assert_uint_eq(shape->size, sizeof(*shape));
    ck_assert_str_eq(shape->op, op_of(row));
    ck_assert_msg(shape->n == row->n && shape->k == row->k && shape->groups == row->groups,
                  "%s %s tp %lld: [%lld, %lld] x %lld", row->model, row->layer, (long long)row->tp, (long long)shape->n,
                  (long long)shape->k, (long long)shape->groups);
    ck_assert_msg(shape->fp8 == !refused, "%s %s tp %lld: fp8 %u", row->model, row->layer, (long long)row->tp,
                  shape->fp8);
    ck_assert_int_eq(*shape->reason == '\0', shape->fp8 == 1);
}

/* One model of the table: a real config, and edits that make it another of its family. */
struct real_model {
    const char *csv_name, *config_name, *architecture, *edits;
};

static const struct real_model real_models[] = {
    {"DeepSeek-V3/R1", "DeepSeek-V3", "DeepseekV3ForCausalLM", NULL},
    {"DeepSeek-V3.2", "DeepSeek-V3.2", "DeepseekV32ForCausalLM", NULL},
    {"DeepSeek-V4-Flash", "DeepSeek-V4-Flash-FP8", "DeepseekV4ForCausalLM", NULL},
    {"DeepSeek-V4-Pro", "DeepSeek-V4-Pro-FP8", "DeepseekV4ForCausalLM", NULL},
    {"Qwen3-32B-FP8", "Qwen3-32B-FP8", "Qwen3ForCausalLM", NULL},
    {"Qwen3-30B-A3B-FP8", "Qwen3-30B-A3B-FP8", "Qwen3MoeForCausalLM", NULL},
    {"Qwen3.6-27B-FP8", "Qwen3.6-27B-FP8", "Qwen3_5ForConditionalGeneration", NULL},
    {"MiniMax-M2.5", "MiniMax-M2.5", "MiniMaxM2ForCausalLM", NULL},
    {"GLM-5-FP8", "GLM-5-FP8", "GlmMoeDsaForCausalLM", NULL},
    {"Qwen3-4B-FP8", "Qwen3-32B-FP8", "Qwen3ForCausalLM",
     "{\"hidden_size\": 2560, \"num_attention_heads\": 32, \"intermediate_size\": 9728}"},
    {"Qwen3-8B-FP8", "Qwen3-32B-FP8", "Qwen3ForCausalLM",
     "{\"hidden_size\": 4096, \"num_attention_heads\": 32, \"intermediate_size\": 12288}"},
    {"Qwen3-235B-A22B-FP8", "Qwen3-30B-A3B-FP8", "Qwen3MoeForCausalLM",
     "{\"hidden_size\": 4096, \"num_attention_heads\": 64, \"moe_intermediate_size\": 1536}"},
    {"GLM-4.5/4.6-FP8", "GLM-5-FP8", "Glm4MoeForCausalLM",
     "{\"architectures\": [\"Glm4MoeForCausalLM\"], \"hidden_size\": 5120, \"num_attention_heads\": 96,"
     " \"num_key_value_heads\": 8, \"head_dim\": 128, \"moe_intermediate_size\": 1536, \"n_routed_experts\": 160}"},
};

static json_t *read_real_model(const struct real_model *real)
{
    json_t *config = read_model(real->config_name), *edits = real->edits ? json_loads(real->edits, 0, NULL) : NULL;
    if (edits)
        ck_assert_int_eq(json_object_update(config, edits), 0);
    json_decref(edits);
    return config;
}

/* Every row of the table is there as it says, and nothing else is. */
static void compare_model(const struct real_model *real, int64_t tp, bool ep)
{
    struct cbn_model *model = load_config(read_real_model(real), tp, ep ? tp : 0);
    ck_assert_msg(model != NULL, "%s tp %lld: %s", real->csv_name, (long long)tp, error.message);
    FILE *file = fopen(DATA "model_shapes.csv", "r");
    ck_assert_ptr_nonnull(file);
    struct csv_row row;
    uint32_t count = 0;
    while (read_row(file, &row)) {
        if (strcmp(row.model, real->csv_name) != 0 || row.tp != tp || strstr(row.layer, ep ? "(TP)" : "(EP)"))
            continue;
        compare_row(&row, model);
        count++;
    }
    ck_assert_uint_gt(count, 0);
    ck_assert_uint_eq(count, cbn_model_shape_count(model));
    (void)fclose(file);
    cbn_model_destroy(model);
}

#define REAL_MODEL_COUNT COUNT(real_models)

START_TEST(test_table_of_real_models)
{
    compare_model(&real_models[_i], 1, false);
    for (int64_t tp = 4; tp <= 8; tp += 4) {
        compare_model(&real_models[_i], tp, false);
        compare_model(&real_models[_i], tp, true);
    }
}
END_TEST

START_TEST(test_every_row_of_the_table_is_compared)
{
    FILE *file = fopen(DATA "model_shapes.csv", "r");
    struct csv_row row;
    ck_assert_ptr_nonnull(file);
    for (int line = 1; read_row(file, &row); line++) {
        bool compared = line == 1;
        for (int i = 0; i < REAL_MODEL_COUNT; i++)
            compared |= strcmp(real_models[i].csv_name, row.model) == 0;
        ck_assert_msg(compared, "line %d: %s is not compared", line, row.model);
        ck_assert(line == 1 || row.tp == 1 || row.tp == 4 || row.tp == 8);
    }
    (void)fclose(file);
}
END_TEST

START_TEST(test_name_is_the_architecture)
{
    struct cbn_model *model = load_config(read_real_model(&real_models[_i]), 0, 0);
    ck_assert_str_eq(cbn_model_name(model), real_models[_i].architecture);
    cbn_model_destroy(model);
}
END_TEST

/* By another name the same layers as an architecture of the table has, or numbers by hand below. */
static const struct {
    const char *name, *config_name;
} other_names[] = {
    {"Qwen3VLForConditionalGeneration", "Qwen3-32B-FP8"},
    {"Qwen3VLMoeForConditionalGeneration", "Qwen3-30B-A3B-FP8"},
    {"Qwen3_5ForCausalLM", "Qwen3.6-27B-FP8"},
    {"Qwen3NextForCausalLM", NULL},
    {"Qwen3_5MoeForConditionalGeneration", NULL},
    {"Qwen3_5MoeForCausalLM", NULL},
};

START_TEST(test_other_names)
{
    if (!other_names[_i].config_name)
        return;
    json_t *config = read_model(other_names[_i].config_name), *renamed = json_deep_copy(config);
    json_object_set_new(renamed, "architectures", json_pack("[s]", other_names[_i].name));
    struct cbn_model *model = load_config(config, 4, 0), *other = load_config(renamed, 4, 0);
    ck_assert_str_eq(cbn_model_name(other), other_names[_i].name);
    ck_assert_uint_eq(cbn_model_shape_count(model), cbn_model_shape_count(other));
    for (uint32_t i = 0; i < cbn_model_shape_count(model); i++) {
        const struct cbn_model_shape *shape = cbn_model_shape_get(model, i);
        expect_shape(other, shape->layer, shape->n, shape->k, shape->groups);
    }
    cbn_model_destroy(model);
    cbn_model_destroy(other);
}
END_TEST

START_TEST(test_every_architecture_is_compared_with_the_table)
{
    const struct cbn__architecture *architecture;
    for (uint32_t i = 0; (architecture = cbn__architecture_get(i)); i++) {
        bool compared = false;
        for (int j = 0; j < REAL_MODEL_COUNT; j++)
            compared |= strcmp(real_models[j].architecture, architecture->name) == 0;
        for (int j = 0; j < COUNT(other_names); j++)
            compared |= strcmp(other_names[j].name, architecture->name) == 0;
        ck_assert_msg(compared, "%s is not compared", architecture->name);
    }
}
END_TEST

/* Qwen3-Next-80B-A3B: no layer_types, so every 4th layer is full; a shared expert of its own width. */
static json_t *make_hybrid_moe(const char *name)
{
    return json_pack("{s:[s], s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:[],"
                     " s:{s:s, s:s, s:s, s:[i,i]}}",
                     "architectures", name, "num_hidden_layers", 48, "hidden_size", 2048, "num_attention_heads", 16,
                     "num_key_value_heads", 2, "head_dim", 256, "full_attention_interval", 4, "linear_num_key_heads",
                     16, "linear_key_head_dim", 128, "linear_num_value_heads", 32, "linear_value_head_dim", 128,
                     "intermediate_size", 5120, "moe_intermediate_size", 512, "num_experts", 512,
                     "shared_expert_intermediate_size", 512, "decoder_sparse_step", 1, "mlp_only_layers",
                     "quantization_config", "quant_method", "fp8", "fmt", "e4m3", "activation_scheme", "dynamic",
                     "weight_block_size", 128, 128);
}

START_TEST(test_hybrid_moe_at_tp_4_by_hand)
{
    static const char *const names[] = {"Qwen3NextForCausalLM", "Qwen3_5MoeForConditionalGeneration",
                                        "Qwen3_5MoeForCausalLM"};
    struct cbn_model *model = load_config(make_hybrid_moe(names[_i]), 4, 0);
    ck_assert_msg(model != NULL, "%s", error.message);
    ck_assert_uint_eq(cbn_model_shape_count(model), 9);
    expect_shape(model, "self_attn.qkv_proj", (4 * 2 + 1 + 1) * 256, 2048, 1);
    expect_shape(model, "self_attn.o_proj", 2048, 4 * 256, 1);
    expect_shape(model, "linear_attn.in_proj_qkvz", 4 * 128 * 2 + 8 * 128 * 2, 2048, 1);
    expect_shape(model, "linear_attn.out_proj", 2048, 8 * 128, 1);
    expect_shape(model, "linear_attn.in_proj_ba", 16, 2048, 1);
    expect_shape(model, "mlp.shared_expert.gate_up_proj", 256, 2048, 1);
    expect_shape(model, "mlp.shared_expert.down_proj", 2048, 128, 1);
    expect_shape(model, "mlp.experts.w13", 256, 2048, 512);
    expect_shape(model, "mlp.experts.w2", 2048, 128, 512);
    ck_assert_uint_eq(find_shape(model, "mlp.experts.w2")->fp8, 1);
    ck_assert_ptr_nonnull(
        strstr(find_shape(model, "linear_attn.in_proj_ba")->reason, "linear_num_value_heads/tp is 8"));
    cbn_model_destroy(model);
    json_t *config = make_hybrid_moe(names[_i]);
    json_object_set_new(config, "attn_output_gate", json_false());
    model = load_config(config, 4, 0);
    expect_shape(model, "self_attn.qkv_proj", (4 + 1 + 1) * 256, 2048, 1);
    cbn_model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("model_table");
    TCase *tcase = make_case(suite, "table");
    tcase_add_loop_test(tcase, test_table_of_real_models, 0, REAL_MODEL_COUNT);
    tcase_add_loop_test(tcase, test_name_is_the_architecture, 0, REAL_MODEL_COUNT);
    tcase_add_test(tcase, test_every_row_of_the_table_is_compared);
    tcase_add_loop_test(tcase, test_other_names, 0, COUNT(other_names));
    tcase_add_test(tcase, test_every_architecture_is_compared_with_the_table);
    tcase_add_loop_test(tcase, test_hybrid_moe_at_tp_4_by_hand, 0, 3);
    return run_suite(suite);
}
