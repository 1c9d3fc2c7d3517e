/*
 * config.json to shapes: against the table of real models, and by hand-made edits of their configs.
 */
#include "unit/model_fixture.h"

#include "model/architecture.h"

/* Qwen3-32B with field set to the JSON text value, or taken out for NULL. */
static json_t *edit_qwen(const char *field, const char *value)
{
    json_t *config = read_model("Qwen3-32B-FP8");
    if (value)
        ck_assert_int_eq(json_object_set_new(config, field, json_loads(value, JSON_DECODE_ANY, NULL)), 0);
    else
        ck_assert_int_eq(json_object_del(config, field), 0);
    return config;
}

static bool has_layer(const struct cbn_model *model, const char *layer)
{
    const struct cbn_model_shape *shape;
    for (uint32_t i = 0; (shape = cbn_model_shape_get(model, i)); i++)
        if (strcmp(shape->layer, layer) == 0)
            return true;
    return false;
}

static void expect_shape(const struct cbn_model *model, const char *layer, int64_t n, int64_t k, int64_t groups)
{
    const struct cbn_model_shape *shape = find_shape(model, layer);
    ck_assert_int_eq(shape->n, n);
    ck_assert_int_eq(shape->k, k);
    ck_assert_int_eq(shape->groups, groups);
}

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

static void compare_row(const struct csv_row *row, const struct cbn_model *model)
{
    char layer[128];
    (void)snprintf(layer, sizeof(layer), "%.*s", (int)strcspn(row->layer, "("), row->layer);
    const struct cbn_model_shape *shape = find_shape(model, layer);
    bool refused = strstr(row->notes, "refused") != NULL || strstr(row->notes, "refuses") != NULL;
    ck_assert_uint_eq(shape->size, sizeof(*shape));
    ck_assert_str_eq(shape->op, op_of(row));
    ck_assert_msg(shape->n == row->n && shape->k == row->k && shape->groups == row->groups,
                  "%s %s tp %lld: [%lld, %lld] x %lld", row->model, row->layer, (long long)row->tp, (long long)shape->n,
                  (long long)shape->k, (long long)shape->groups);
    ck_assert_msg(shape->fp8 == !refused, "%s %s tp %lld: fp8 %u", row->model, row->layer, (long long)row->tp,
                  shape->fp8);
    ck_assert_int_eq(*shape->reason == '\0', shape->fp8 == 1);
}

/* Every row of the table is there as it says, and nothing else is. */
static void compare_model(const char *csv_name, const char *config_name, int64_t tp, bool ep)
{
    struct cbn_model *model = load_config(read_model(config_name), tp, ep ? tp : 0);
    ck_assert_msg(model != NULL, "%s tp %lld: %s", config_name, (long long)tp, error.message);
    FILE *file = fopen(DATA "model_shapes.csv", "r");
    ck_assert_ptr_nonnull(file);
    struct csv_row row;
    uint32_t count = 0;
    while (read_row(file, &row)) {
        if (strcmp(row.model, csv_name) != 0 || row.tp != tp || strstr(row.layer, ep ? "(TP)" : "(EP)"))
            continue;
        compare_row(&row, model);
        count++;
    }
    ck_assert_uint_gt(count, 0);
    ck_assert_uint_eq(count, cbn_model_shape_count(model));
    (void)fclose(file);
    cbn_model_destroy(model);
}

static const struct {
    const char *csv_name, *config_name, *architecture;
} real_models[] = {
    {"DeepSeek-V3/R1", "DeepSeek-V3", "DeepseekV3ForCausalLM"},
    {"DeepSeek-V3.2", "DeepSeek-V3.2", "DeepseekV32ForCausalLM"},
    {"DeepSeek-V4-Flash", "DeepSeek-V4-Flash-FP8", "DeepseekV4ForCausalLM"},
    {"DeepSeek-V4-Pro", "DeepSeek-V4-Pro-FP8", "DeepseekV4ForCausalLM"},
    {"Qwen3-32B-FP8", "Qwen3-32B-FP8", "Qwen3ForCausalLM"},
    {"Qwen3-30B-A3B-FP8", "Qwen3-30B-A3B-FP8", "Qwen3MoeForCausalLM"},
};

#define REAL_MODEL_COUNT (int)(sizeof(real_models) / sizeof(real_models[0]))

START_TEST(test_table_of_real_models)
{
    compare_model(real_models[_i].csv_name, real_models[_i].config_name, 1, false);
    for (int64_t tp = 4; tp <= 8; tp += 4) {
        compare_model(real_models[_i].csv_name, real_models[_i].config_name, tp, false);
        compare_model(real_models[_i].csv_name, real_models[_i].config_name, tp, true);
    }
}
END_TEST

START_TEST(test_name_is_the_architecture)
{
    struct cbn_model *model = load_config(read_model(real_models[_i].config_name), 0, 0);
    ck_assert_str_eq(cbn_model_name(model), real_models[_i].architecture);
    cbn_model_destroy(model);
}
END_TEST

START_TEST(test_every_architecture_is_compared_with_the_table)
{
    const struct cbn__architecture *architecture;
    for (uint32_t i = 0; (architecture = cbn__architecture_get(i)); i++) {
        bool compared = false;
        for (int j = 0; j < REAL_MODEL_COUNT; j++)
            compared |= strcmp(real_models[j].architecture, architecture->name) == 0;
        ck_assert_msg(compared, "%s is not compared", architecture->name);
    }
}
END_TEST

/* Numbers by hand, so that the table and the code cannot be wrong together. */
START_TEST(test_deepseek_v3_at_tp_8_by_hand)
{
    struct cbn_model *model = load_config(read_model("DeepSeek-V3"), 8, 0);
    ck_assert_uint_eq(cbn_model_shape_count(model), 10);
    expect_shape(model, "self_attn.fused_qkv_a_proj_with_mqa", 2112, 7168, 1);
    expect_shape(model, "self_attn.q_b_proj", 16 * 192, 1536, 1);
    expect_shape(model, "mlp.gate_up_proj", 4608, 7168, 1);
    expect_shape(model, "mlp.experts.w13", 512, 7168, 256);
    cbn_model_destroy(model);
    model = load_config(read_model("DeepSeek-V3"), 8, 32);
    expect_shape(model, "mlp.experts.w13", 4096, 7168, 8);
    expect_shape(model, "mlp.experts.w2", 7168, 2048, 8);
    expect_shape(model, "mlp.shared_experts.down_proj", 7168, 256, 1);
    cbn_model_destroy(model);
}
END_TEST

START_TEST(test_cut_block_names_the_field_and_the_number)
{
    struct cbn_model *model = load_config(read_model("Qwen3-30B-A3B-FP8"), 4, 0);
    const struct cbn_model_shape *w13 = find_shape(model, "mlp.experts.w13"), *w2 = find_shape(model, "mlp.experts.w2");
    ck_assert_uint_eq(w13->fp8, 0);
    ck_assert_ptr_nonnull(strstr(w13->reason, "moe_intermediate_size/moe_tp is 192, not a multiple of 128"));
    ck_assert_uint_eq(w2->fp8, 0);
    ck_assert_ptr_nonnull(strstr(w2->reason, "192"));
    ck_assert_uint_eq(find_shape(model, "self_attn.qkv_proj")->fp8, 1);
    cbn_model_destroy(model);
}
END_TEST

/* Qwen3-4B: 9728 / 8 = 1216 = 9.5 blocks. Whole at tp 4 (2432 = 19 blocks). */
START_TEST(test_intermediate_size_that_cuts_at_tp_8_only)
{
    struct cbn_model *model = load_config(edit_qwen("intermediate_size", "9728"), 8, 0);
    ck_assert_ptr_nonnull(strstr(find_shape(model, "mlp.gate_up_proj")->reason, "intermediate_size/tp is 1216"));
    ck_assert_uint_eq(find_shape(model, "mlp.down_proj")->fp8, 0);
    expect_shape(model, "mlp.down_proj", 5120, 1216, 1);
    cbn_model_destroy(model);
    model = load_config(edit_qwen("intermediate_size", "9728"), 4, 0);
    ck_assert_uint_eq(find_shape(model, "mlp.down_proj")->fp8, 1);
    cbn_model_destroy(model);
}
END_TEST

/* Only the last part of an unsharded merged weight may end in a partial block. */
START_TEST(test_merged_parts_must_fill_their_blocks)
{
    struct cbn_model *model = load_config(edit_qwen("intermediate_size", "25664"), 1, 0);
    ck_assert_uint_eq(find_shape(model, "mlp.gate_up_proj")->fp8, 0);
    ck_assert_uint_eq(find_shape(model, "mlp.down_proj")->fp8, 1);
    cbn_model_destroy(model);
    json_t *config = read_model("DeepSeek-V3");
    json_object_set_new(config, "q_lora_rank", json_integer(1500));
    model = load_config(config, 1, 0);
    ck_assert_ptr_nonnull(
        strstr(find_shape(model, "self_attn.fused_qkv_a_proj_with_mqa")->reason, "q_lora_rank is 1500"));
    cbn_model_destroy(model);
    config = read_model("DeepSeek-V4-Flash-FP8");
    json_object_set_new(config, "o_lora_rank", json_integer(1000));
    model = load_config(config, 1, 0);
    ck_assert_ptr_nonnull(strstr(find_shape(model, "self_attn.wo_a")->reason, "o_lora_rank is 1000"));
    cbn_model_destroy(model);
}
END_TEST

START_TEST(test_kv_heads_are_replicated_above_their_number)
{
    struct cbn_model *model = load_config(read_model("Qwen3-32B-FP8"), 16, 0);
    expect_shape(model, "self_attn.qkv_proj", (4 + 2) * 128, 5120, 1);
    cbn_model_destroy(model);
    model = load_config(read_model("Qwen3-32B-FP8"), 64, 0);
    expect_shape(model, "self_attn.qkv_proj", 3 * 128, 5120, 1);
    cbn_model_destroy(model);
    expect_refusal(edit_qwen("num_key_value_heads", "6"), 8, 0, CBN_STATUS_INVALID,
                   "tp 8 does not divide num_key_value_heads (6)");
}
END_TEST

START_TEST(test_ranks_that_do_not_divide_name_the_field)
{
    expect_refusal(read_model("DeepSeek-V3"), 3, 0, CBN_STATUS_INVALID,
                   "tp 3 does not divide num_attention_heads (128)");
    expect_refusal(read_model("Qwen3-32B-FP8"), 128, 0, CBN_STATUS_INVALID, "num_attention_heads");
    expect_refusal(edit_qwen("intermediate_size", "25601"), 8, 0, CBN_STATUS_INVALID,
                   "tp 8 does not divide intermediate_size (25601)");
    expect_refusal(read_model("DeepSeek-V3"), 8, 7, CBN_STATUS_INVALID, "ep 7 does not divide n_routed_experts (256)");
    expect_refusal(read_model("Qwen3-30B-A3B-FP8"), 1, 7, CBN_STATUS_INVALID, "divide num_experts (128)");
    expect_refusal(read_model("DeepSeek-V4-Flash-FP8"), 16, 0, CBN_STATUS_INVALID,
                   "tp 16 does not divide o_groups (8)");
    expect_refusal(read_model("Qwen3-32B-FP8"), INT32_MAX, 0, CBN_STATUS_INVALID, "num_attention_heads");
    json_t *config = read_model("DeepSeek-V4-Flash-FP8");
    json_object_set_new(config, "o_groups", json_integer(7));
    expect_refusal(config, 1, 0, CBN_STATUS_INVALID, "o_groups 7 does not divide");
}
END_TEST

START_TEST(test_options_are_checked)
{
    struct {
        struct cbn_model_options options;
        uint64_t later;
    } newer = {CBN_MODEL_OPTIONS_INIT, 0};
    struct cbn_model *model = NULL;
    newer.options.size = sizeof(newer);
    ck_assert_int_eq(cbn_model_load(MODELS "DeepSeek-V3.json", &newer.options, &model, &error), CBN_STATUS_OK);
    cbn_model_destroy(model);
    model = NULL;
    newer.later = 1;
    ck_assert_int_eq(cbn_model_load(MODELS "DeepSeek-V3.json", &newer.options, &model, &error), CBN_STATUS_INVALID);
    struct cbn_model_options options = CBN_MODEL_OPTIONS_INIT;
    options.reserved = 1;
    ck_assert_int_eq(cbn_model_load(MODELS "DeepSeek-V3.json", &options, &model, &error), CBN_STATUS_INVALID);
    options = (struct cbn_model_options){.size = 0};
    ck_assert_int_eq(cbn_model_load(MODELS "DeepSeek-V3.json", &options, &model, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_model_load(MODELS "DeepSeek-V3.json", NULL, NULL, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_model_load(NULL, NULL, &model, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_model_load("", NULL, &model, NULL), CBN_STATUS_INVALID);
    ck_assert_ptr_null(model);
    expect_refusal(read_model("DeepSeek-V3"), -1, 0, CBN_STATUS_INVALID, "tp is -1");
    expect_refusal(read_model("DeepSeek-V3"), 1, INT64_MIN, CBN_STATUS_INVALID, "ep is -");
    expect_refusal(read_model("DeepSeek-V3"), INT64_MAX, 0, CBN_STATUS_INVALID, "tp is 9223372036854775807");
}
END_TEST

/* An older caller knows only tp: what lies beyond its size is not read. */
START_TEST(test_shorter_options)
{
    struct cbn_model_options options = CBN_MODEL_OPTIONS_INIT;
    struct cbn_model *model = NULL;
    options.tp = 8;
    options.ep = -5;
    options.size = offsetof(struct cbn_model_options, ep);
    ck_assert_int_eq(cbn_model_load(MODELS "DeepSeek-V3.json", &options, &model, &error), CBN_STATUS_OK);
    expect_shape(model, "mlp.experts.w13", 512, 7168, 256);
    cbn_model_destroy(model);
}
END_TEST

START_TEST(test_accessors_take_nothing)
{
    ck_assert_uint_eq(cbn_model_shape_count(NULL), 0);
    ck_assert_ptr_null(cbn_model_shape_get(NULL, 0));
    ck_assert_str_eq(cbn_model_name(NULL), "");
    cbn_model_destroy(NULL);
    struct cbn_model *model = load_config(read_model("Qwen3-32B-FP8"), 1, 0);
    ck_assert_uint_eq(cbn_model_shape_count(model), 4);
    ck_assert_ptr_null(cbn_model_shape_get(model, 4));
    ck_assert_ptr_null(cbn_model_shape_get(model, UINT32_MAX));
    cbn_model_destroy(model);
}
END_TEST

static const struct {
    const char *field, *value;
    int32_t status;
    const char *words;
} bad_fields[] = {
    {"hidden_size", NULL, CBN_STATUS_INVALID, "hidden_size is missing"},
    {"hidden_size", "null", CBN_STATUS_INVALID, "hidden_size is null"},
    {"hidden_size", "0", CBN_STATUS_INVALID, "hidden_size is 0"},
    {"hidden_size", "-5120", CBN_STATUS_INVALID, "hidden_size is -5120"},
    {"hidden_size", "5120.0", CBN_STATUS_INVALID, "hidden_size is a real number"},
    {"hidden_size", "\"5120\"", CBN_STATUS_INVALID, "hidden_size is a string"},
    {"hidden_size", "true", CBN_STATUS_INVALID, "hidden_size is a boolean"},
    {"hidden_size", "[5120]", CBN_STATUS_INVALID, "hidden_size is an array"},
    {"hidden_size", "{}", CBN_STATUS_INVALID, "hidden_size is an object"},
    {"hidden_size", "2147483648", CBN_STATUS_LIMIT, "hidden_size is 2147483648"},
    {"hidden_size", "9223372036854775807", CBN_STATUS_LIMIT, "hidden_size is 9223372036854775807"},
    {"head_dim", "2147483647", CBN_STATUS_LIMIT, "num_attention_heads/tp*head_dim"},
    {"head_dim", NULL, CBN_STATUS_INVALID, "head_dim is missing"},
    {"intermediate_size", "2147483647", CBN_STATUS_LIMIT, "intermediate_size/tp passes"},
    {"num_hidden_layers", NULL, CBN_STATUS_INVALID, "num_hidden_layers is missing"},
    {"num_hidden_layers", "65537", CBN_STATUS_LIMIT, "num_hidden_layers is 65537"},
    {"num_key_value_heads", "0", CBN_STATUS_INVALID, "num_key_value_heads is 0"},
    {"architectures", NULL, CBN_STATUS_INVALID, "architectures is missing"},
    {"architectures", "[]", CBN_STATUS_INVALID, "architectures is empty"},
    {"architectures", "\"Qwen3ForCausalLM\"", CBN_STATUS_INVALID, "architectures is a string"},
    {"architectures", "[7]", CBN_STATUS_INVALID, "architectures[0] is an integer"},
    {"architectures", "[\"LlamaForCausalLM\"]", CBN_STATUS_UNSUPPORTED, "LlamaForCausalLM"},
    {"architectures", "[\"Ll\\u001b[31mama\"]", CBN_STATUS_UNSUPPORTED, "Ll?[31mama"},
    {"text_config", "7", CBN_STATUS_INVALID, "text_config is an integer"},
    {"text_config", "{}", CBN_STATUS_INVALID, "text_config.num_hidden_layers is missing"},
    {"quantization_config", NULL, CBN_STATUS_UNSUPPORTED, "quantization_config is missing"},
    {"quantization_config", "null", CBN_STATUS_UNSUPPORTED, "quantization_config is null"},
    {"quantization_config", "\"fp8\"", CBN_STATUS_INVALID, "quantization_config is a string"},
};

START_TEST(test_bad_field)
{
    expect_refusal(edit_qwen(bad_fields[_i].field, bad_fields[_i].value), 1, 0, bad_fields[_i].status,
                   bad_fields[_i].words);
}
END_TEST

START_TEST(test_conditions)
{
    json_t *config = read_model("DeepSeek-V3");
    json_object_set_new(config, "first_k_dense_replace", json_integer(0));
    json_object_set_new(config, "n_shared_experts", json_null());
    json_object_set_new(config, "q_lora_rank", json_null());
    struct cbn_model *model = load_config(config, 1, 0);
    ck_assert(!has_layer(model, "mlp.gate_up_proj"));
    ck_assert(!has_layer(model, "mlp.shared_experts.down_proj"));
    ck_assert(!has_layer(model, "self_attn.q_b_proj"));
    expect_shape(model, "self_attn.q_proj", 24576, 7168, 1);
    expect_shape(model, "self_attn.kv_a_proj_with_mqa", 576, 7168, 1);
    ck_assert_uint_eq(cbn_model_shape_count(model), 6);
    cbn_model_destroy(model);
    config = read_model("DeepSeek-V4-Flash-FP8");
    json_object_set_new(config, "compress_ratios", json_pack("[iii]", 0, 128, 0));
    model = load_config(config, 1, 0);
    ck_assert(!has_layer(model, "self_attn.indexer.wq_b"));
    cbn_model_destroy(model);
}
END_TEST

START_TEST(test_conditions_that_cannot_be_told)
{
    json_t *config = read_model("DeepSeek-V3");
    json_object_del(config, "first_k_dense_replace");
    expect_refusal(config, 1, 0, CBN_STATUS_INVALID, "first_k_dense_replace is missing");
    config = read_model("DeepSeek-V3");
    json_object_set_new(config, "n_shared_experts", json_integer(-1));
    expect_refusal(config, 1, 0, CBN_STATUS_INVALID, "n_shared_experts is -1");
    config = read_model("DeepSeek-V3");
    json_object_set_new(config, "first_k_dense_replace", json_integer(62));
    expect_refusal(config, 1, 0, CBN_STATUS_INVALID, "first_k_dense_replace is 62, more than num_hidden_layers (61)");
    config = read_model("DeepSeek-V4-Flash-FP8");
    json_object_del(config, "compress_ratios");
    expect_refusal(config, 1, 0, CBN_STATUS_INVALID, "compress_ratios is missing");
    config = read_model("DeepSeek-V4-Flash-FP8");
    json_object_set_new(config, "compress_ratios", json_pack("[is]", 4, "4"));
    expect_refusal(config, 1, 0, CBN_STATUS_INVALID, "compress_ratios[1] is a string");
}
END_TEST

START_TEST(test_dense_layers_of_a_sparse_qwen)
{
    json_t *config = read_model("Qwen3-30B-A3B-FP8");
    json_object_set_new(config, "mlp_only_layers", json_pack("[i]", 0));
    json_object_set_new(config, "decoder_sparse_step", json_integer(2));
    struct cbn_model *model = load_config(config, 1, 0);
    expect_shape(model, "mlp.gate_up_proj", 2 * 6144, 2048, 1);
    ck_assert_uint_eq(cbn_model_shape_count(model), 6);
    cbn_model_destroy(model);
    config = read_model("Qwen3-30B-A3B-FP8");
    json_object_del(config, "mlp_only_layers");
    model = load_config(config, 1, 0);
    ck_assert_uint_eq(cbn_model_shape_count(model), 4);
    cbn_model_destroy(model);
}
END_TEST

/* A vision model: the language model's fields, and maybe its architecture and quantisation, one level down. */
START_TEST(test_nested_text_config)
{
    json_t *text = read_model("DeepSeek-V3"), *quant = json_incref(json_object_get(text, "quantization_config"));
    json_t *config = json_pack("{s:[s], s:O}", "architectures", "SomeVisionModel", "text_config", text);
    struct cbn_model *model = load_config(config, 8, 0);
    ck_assert_msg(model != NULL, "%s", error.message);
    ck_assert_str_eq(cbn_model_name(model), "DeepseekV3ForCausalLM");
    expect_shape(model, "self_attn.o_proj", 7168, 2048, 1);
    cbn_model_destroy(model);

    json_object_del(text, "quantization_config");
    json_object_del(text, "architectures");
    config = json_pack("{s:[s], s:O, s:o}", "architectures", "DeepseekV3ForCausalLM", "text_config", text,
                       "quantization_config", quant);
    model = load_config(config, 8, 0);
    ck_assert_uint_eq(cbn_model_shape_count(model), 10);
    cbn_model_destroy(model);

    config = json_pack("{s:[s], s:O}", "architectures", "DeepseekV3ForCausalLM", "text_config", text);
    expect_refusal(config, 8, 0, CBN_STATUS_UNSUPPORTED, "text_config.quantization_config is missing");
    config = json_pack("{s:O}", "text_config", text);
    expect_refusal(config, 8, 0, CBN_STATUS_INVALID, "architectures is missing");
    json_decref(text);
}
END_TEST

START_TEST(test_second_architecture_counts)
{
    struct cbn_model *model = load_config(edit_qwen("architectures", "[\"Other\", \"Qwen3ForCausalLM\"]"), 1, 0);
    ck_assert_str_eq(cbn_model_name(model), "Qwen3ForCausalLM");
    cbn_model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("model");
    TCase *tcase = make_case(suite, "model");
    tcase_add_loop_test(tcase, test_table_of_real_models, 0, REAL_MODEL_COUNT);
    tcase_add_loop_test(tcase, test_name_is_the_architecture, 0, REAL_MODEL_COUNT);
    tcase_add_test(tcase, test_every_architecture_is_compared_with_the_table);
    tcase_add_test(tcase, test_deepseek_v3_at_tp_8_by_hand);
    tcase_add_test(tcase, test_cut_block_names_the_field_and_the_number);
    tcase_add_test(tcase, test_intermediate_size_that_cuts_at_tp_8_only);
    tcase_add_test(tcase, test_merged_parts_must_fill_their_blocks);
    tcase_add_test(tcase, test_kv_heads_are_replicated_above_their_number);
    tcase_add_test(tcase, test_ranks_that_do_not_divide_name_the_field);
    tcase_add_test(tcase, test_options_are_checked);
    tcase_add_test(tcase, test_shorter_options);
    tcase_add_test(tcase, test_accessors_take_nothing);
    tcase_add_loop_test(tcase, test_bad_field, 0, COUNT(bad_fields));
    tcase_add_test(tcase, test_conditions);
    tcase_add_test(tcase, test_conditions_that_cannot_be_told);
    tcase_add_test(tcase, test_dense_layers_of_a_sparse_qwen);
    tcase_add_test(tcase, test_nested_text_config);
    tcase_add_test(tcase, test_second_architecture_counts);
    return run_suite(suite);
}
