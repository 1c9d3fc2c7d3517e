/*
 * quantization_config: what is block FP8, what is not, and which layers the exclusion lists leave out.
 */
#include "unit/model_fixture.h"

static json_t *edit_quant(const char *model, const char *field, const char *value)
{
    json_t *config = read_model(model);
    json_t *quant = json_object_get(config, "quantization_config");
    if (value)
        ck_assert_int_eq(json_object_set_new(quant, field, json_loads(value, JSON_DECODE_ANY, NULL)), 0);
    else
        ck_assert_int_eq(json_object_del(quant, field), 0);
    return config;
}

static const struct {
    const char *field, *value;
    int32_t status;
    const char *words;
} bad_quants[] = {
    {"quant_method", NULL, CBN_STATUS_INVALID, "quantization_config.quant_method is missing"},
    {"quant_method", "8", CBN_STATUS_INVALID, "quantization_config.quant_method is an integer"},
    {"quant_method", "\"compressed-tensors\"", CBN_STATUS_UNSUPPORTED, "quant_method is \"compressed-tensors\""},
    {"quant_method", "\"modelopt\"", CBN_STATUS_UNSUPPORTED, "quant_method is \"modelopt\""},
    {"quant_method", "\"nvfp4\"", CBN_STATUS_UNSUPPORTED, "quant_method is \"nvfp4\""},
    {"fmt", "\"e5m2\"", CBN_STATUS_UNSUPPORTED, "fmt is \"e5m2\""},
    {"activation_scheme", "\"static\"", CBN_STATUS_UNSUPPORTED, "activation_scheme is \"static\""},
    {"scale_fmt", "\"e4m3\"", CBN_STATUS_UNSUPPORTED, "scale_fmt is \"e4m3\""},
    {"scale_fmt", "\"e8m0\"", CBN_STATUS_UNSUPPORTED,
     "scale_fmt is \"e8m0\"; only \"ue8m0\" or \"float\" with 128x128 blocks is taken"},
    {"fmt", "\"e5m2\"", CBN_STATUS_UNSUPPORTED, "only \"e4m3\" or \"float8_e4m3fn\" with"},
    {"quant_method", "\"awq\"", CBN_STATUS_UNSUPPORTED, "only \"fp8\" with 128x128 blocks is taken"},
    {"scale_fmt", "8", CBN_STATUS_INVALID, "scale_fmt is an integer"},
    {"weight_block_size", NULL, CBN_STATUS_UNSUPPORTED, "weight_block_size is missing"},
    {"weight_block_size", "null", CBN_STATUS_UNSUPPORTED, "weight_block_size is null"},
    {"weight_block_size", "[128]", CBN_STATUS_INVALID, "weight_block_size is not an array of two"},
    {"weight_block_size", "[128, 128, 128]", CBN_STATUS_INVALID, "weight_block_size"},
    {"weight_block_size", "[128.0, 128]", CBN_STATUS_INVALID, "weight_block_size"},
    {"weight_block_size", "128", CBN_STATUS_INVALID, "weight_block_size"},
    {"weight_block_size", "[64, 128]", CBN_STATUS_UNSUPPORTED, "weight_block_size is [64, 128]"},
    {"weight_block_size", "[1, 128]", CBN_STATUS_UNSUPPORTED, "weight_block_size is [1, 128]"},
    {"modules_to_not_convert", "\"lm_head\"", CBN_STATUS_INVALID, "modules_to_not_convert is a string"},
    {"modules_to_not_convert", "[\"lm_head\", 3]", CBN_STATUS_INVALID, "modules_to_not_convert[1] is an integer"},
    {"modules_to_not_convert", "[\"\"]", CBN_STATUS_INVALID, "modules_to_not_convert[0] is empty"},
    {"ignored_layers", "[\"re:.*gate\"]", CBN_STATUS_UNSUPPORTED, "ignored_layers[0] \"re:.*gate\" is a pattern"},
    {"ignored_layers", "[\"model.layers.0*\"]", CBN_STATUS_UNSUPPORTED, "is a pattern"},
};

START_TEST(test_bad_quantization)
{
    expect_refusal(edit_quant("Qwen3-32B-FP8", bad_quants[_i].field, bad_quants[_i].value), 1, 0, bad_quants[_i].status,
                   bad_quants[_i].words);
}
END_TEST

/* Entry of an exclusion list, a layer of DeepSeek-V3 (first_k_dense_replace 3, 61 layers), and whether FP8 is left. */
static const struct {
    const char *entries, *layer;
    uint32_t fp8;
} exclusions[] = {
    {"[\"lm_head\", \"model.embed_tokens\", \"model.layers.3.mlp.gate\"]", "mlp.gate_up_proj", 1},
    {"[\"gate\", \"visual\", \"mtp.layers.0.self_attn\"]", "self_attn.o_proj", 1},
    {"[\"kv_b_proj\"]", "self_attn.kv_b_proj", 0},
    {"[\"v_b_proj\"]", "self_attn.kv_b_proj", 1},
    {"[\"kv_b_proj\"]", "self_attn.q_b_proj", 1},
    {"[\"self_attn\"]", "self_attn.o_proj", 0},
    {"[\"self_attn\"]", "mlp.down_proj", 1},
    {"[\"model.layers\"]", "mlp.experts.w2", 0},
    {"[\"model\"]", "mlp.experts.w2", 0},
    {"[\"language_model.model.layers.*.self_attn.o_proj\"]", "self_attn.o_proj", 0},
    {"[\"*.o_proj\"]", "self_attn.o_proj", 0},
    {"[\"*.self_attn\"]", "self_attn.o_proj", 0},
    {"[\"q_a_proj\", \"self_attn.kv_a_proj_with_mqa\"]", "self_attn.fused_qkv_a_proj_with_mqa", 0},
    {"[\"fused_qkv_a_proj_with_mqa\"]", "self_attn.fused_qkv_a_proj_with_mqa", 0},
    {"[\"mlp.experts\"]", "mlp.experts.w13", 0},
    {"[\"mlp.experts\"]", "mlp.shared_experts.down_proj", 1},
    {"[\"experts.17.up_proj\", \"experts.17.gate_proj\"]", "mlp.experts.w13", 0},
    {"[\"mlp.gate_proj\", \"mlp.up_proj\"]", "mlp.gate_up_proj", 0},
    {"[\"mlp.gate_proj\", \"mlp.up_proj\"]", "mlp.shared_experts.gate_up_proj", 1},
    {"[\"model.layers.0\", \"layers.1.mlp\", \"layers.2.mlp.up_proj\", \"layers.2.mlp.gate_proj\"]", "mlp.gate_up_proj",
     0},
    {"[\"model.layers.0\", \"layers.1.mlp\", \"layers.2.mlp.up_proj\", \"layers.2.mlp.gate_proj\"]", "mlp.down_proj",
     1},
    {"[\"model.layers.0\", \"model.layers.0\", \"model.layers.1\"]", "mlp.gate_up_proj", 1},
    {"[\"model.layers.3\", \"model.layers.4\", \"model.layers.5\"]", "mlp.gate_up_proj", 1},
    {"[\"model.layers.99999999999999999999\", \"model.layers.-1\"]", "self_attn.o_proj", 1},
    {"[\"model.layers.\"]", "self_attn.o_proj", 0},
};

START_TEST(test_exclusions)
{
    static const char *const fields[] = {"modules_to_not_convert", "ignored_layers"};
    for (int i = 0; i < 2; i++) {
        struct cbn_model *model = load_config(edit_quant("DeepSeek-V3", fields[i], exclusions[_i].entries), 8, 0);
        const struct cbn_model_shape *shape = find_shape(model, exclusions[_i].layer);
        ck_assert_msg(shape->fp8 == exclusions[_i].fp8, "%s: %s", exclusions[_i].entries, shape->layer);
        ck_assert_int_eq(strstr(shape->reason, fields[i]) != NULL, !shape->fp8);
        cbn_model_destroy(model);
    }
}
END_TEST

/* A list that cuts through a merged weight, and what the refusal says of it. */
static const struct {
    const char *model, *entries, *layer, *words;
} halves[] = {
    {"DeepSeek-V3", "[\"self_attn.q_a_proj\"]", "self_attn.fused_qkv_a_proj_with_mqa",
     "in layer 0 self_attn.kv_a_proj_with_mqa is, self_attn.q_a_proj is not"},
    {"DeepSeek-V3", "[\"kv_a_proj_with_mqa\"]", "self_attn.fused_qkv_a_proj_with_mqa",
     "in layer 0 self_attn.q_a_proj is, self_attn.kv_a_proj_with_mqa is not"},
    {"DeepSeek-V3", "[\"model.layers.60.self_attn.q_a_proj\"]", "self_attn.fused_qkv_a_proj_with_mqa",
     "in layer 60 self_attn.kv_a_proj_with_mqa is, self_attn.q_a_proj is not"},
    {"DeepSeek-V3", "[\"mlp.gate_proj\", \"model.layers.0.mlp.up_proj\"]", "mlp.gate_up_proj",
     "in layer 1 mlp.up_proj is, mlp.gate_proj is not"},
    {"DeepSeek-V3", "[\"experts.17.up_proj\"]", "mlp.experts.w13",
     "in layer 3 mlp.experts.*.gate_proj is, mlp.experts.*.up_proj is not"},
    {"Qwen3-32B-FP8", "[\"q_proj\", \"k_proj\"]", "self_attn.qkv_proj",
     "in layer 0 self_attn.v_proj is, self_attn.q_proj is not"},
    {"Qwen3-32B-FP8", "[\"v_proj\"]", "self_attn.qkv_proj", "in layer 0 self_attn.q_proj is, self_attn.v_proj is not"},
};

START_TEST(test_half_a_merged_weight)
{
    char words[256];
    (void)snprintf(words, sizeof(words), "some of the modules of %s are quantised and some are not: %s",
                   halves[_i].layer, halves[_i].words);
    expect_refusal(edit_quant(halves[_i].model, "modules_to_not_convert", halves[_i].entries), 1, 0,
                   CBN_STATUS_UNSUPPORTED, words);
}
END_TEST

/* Two lists that leave out a half each leave out the whole. */
START_TEST(test_halves_of_two_lists)
{
    json_t *config = edit_quant("DeepSeek-V3", "modules_to_not_convert", "[\"q_a_proj\"]");
    json_object_set_new(json_object_get(config, "quantization_config"), "ignored_layers",
                        json_pack("[s]", "kv_a_proj_with_mqa"));
    struct cbn_model *model = load_config(config, 1, 0);
    ck_assert_uint_eq(find_shape(model, "self_attn.fused_qkv_a_proj_with_mqa")->fp8, 0);
    ck_assert_uint_eq(find_shape(model, "self_attn.q_b_proj")->fp8, 1);
    cbn_model_destroy(model);
}
END_TEST

/* All 58 sparse layers, but one, then that one too. */
START_TEST(test_exclusion_layer_by_layer)
{
    for (int last = 59; last <= 60; last++) {
        json_t *config = read_model("DeepSeek-V3"), *list = json_array();
        for (int i = 3; i <= last; i++)
            json_array_append_new(list, json_sprintf("model.layers.%d.mlp.shared_experts", i));
        json_object_set_new(json_object_get(config, "quantization_config"), "modules_to_not_convert", list);
        struct cbn_model *model = load_config(config, 1, 0);
        ck_assert_uint_eq(find_shape(model, "mlp.shared_experts.down_proj")->fp8, last == 59);
        ck_assert_uint_eq(find_shape(model, "mlp.experts.w2")->fp8, 1);
        cbn_model_destroy(model);
    }
}
END_TEST

/* Only the layers that have linear attention count: every 4th of 64 does not. */
START_TEST(test_exclusion_in_scattered_layers)
{
    for (int last = 61; last <= 62; last++) {
        json_t *config = read_model("Qwen3.6-27B-FP8"), *list = json_array();
        for (int i = 0; i <= last; i++) {
            json_array_append_new(list, json_sprintf("model.language_model.layers.%d.linear_attn.in_proj_z", i));
            json_array_append_new(list, json_sprintf("model.language_model.layers.%d.linear_attn.in_proj_qkv", i));
        }
        json_object_set_new(json_object_get(config, "quantization_config"), "modules_to_not_convert", list);
        struct cbn_model *model = load_config(config, 1, 0);
        ck_assert_uint_eq(find_shape(model, "linear_attn.in_proj_qkvz")->fp8, last == 61);
        ck_assert_uint_eq(find_shape(model, "linear_attn.out_proj")->fp8, 1);
        cbn_model_destroy(model);
    }
}
END_TEST

/* The long lists of real checkpoints name norms, gates and projections that are no FP8 layer anyway. */
START_TEST(test_real_lists_leave_nothing_out)
{
    static const struct {
        const char *model;
        size_t entries;
    } lists[] = {{"GLM-5-FP8", 712}, {"Qwen3-30B-A3B-FP8", 145}, {"MiniMax-M2.5", 3}};
    for (int i = 0; i < COUNT(lists); i++) {
        json_t *config = read_model(lists[i].model);
        ck_assert_uint_eq(
            json_array_size(json_object_get(json_object_get(config, "quantization_config"), "modules_to_not_convert")),
            lists[i].entries);
        struct cbn_model *model = load_config(config, 1, 0);
        for (uint32_t j = 0; j < cbn_model_shape_count(model); j++)
            ck_assert_str_eq(cbn_model_shape_get(model, j)->reason, "");
        cbn_model_destroy(model);
    }
}
END_TEST

START_TEST(test_scale_fmt_is_taken)
{
    static const char *const values[] = {"\"ue8m0\"", "\"float\"", "null", NULL};
    for (int i = 0; i < COUNT(values); i++) {
        struct cbn_model *model = load_config(edit_quant("DeepSeek-V3.2", "scale_fmt", values[i]), 8, 0);
        ck_assert_uint_eq(find_shape(model, "self_attn.o_proj")->fp8, 1);
        cbn_model_destroy(model);
    }
}
END_TEST

START_TEST(test_fields_of_a_nested_quantization)
{
    json_t *config = read_model("Qwen3.6-27B-FP8"), *quant = json_object_get(config, "quantization_config");
    json_object_set_new(quant, "quant_method", json_string("modelopt"));
    json_object_set(json_object_get(config, "text_config"), "quantization_config", quant);
    json_object_set_new(config, "quantization_config", json_null());
    expect_refusal(config, 8, 0, CBN_STATUS_UNSUPPORTED,
                   "text_config.quantization_config.quant_method is \"modelopt\"");
}
END_TEST

START_TEST(test_fp4_experts)
{
    json_t *config = read_model("DeepSeek-V4-Flash-FP8");
    json_object_set_new(config, "expert_dtype", json_string("fp4"));
    struct cbn_model *model = load_config(config, 1, 0);
    ck_assert_ptr_nonnull(strstr(find_shape(model, "mlp.experts.w13")->reason, "expert_dtype is fp4"));
    ck_assert_uint_eq(find_shape(model, "mlp.experts.w2")->fp8, 0);
    ck_assert_uint_eq(find_shape(model, "mlp.shared_experts.down_proj")->fp8, 1);
    cbn_model_destroy(model);
    config = read_model("DeepSeek-V4-Flash-FP8");
    json_object_set_new(config, "expert_dtype", json_integer(4));
    expect_refusal(config, 1, 0, CBN_STATUS_INVALID, "expert_dtype is an integer");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quant");
    TCase *tcase = make_case(suite, "quant");
    tcase_add_loop_test(tcase, test_bad_quantization, 0, COUNT(bad_quants));
    tcase_add_loop_test(tcase, test_exclusions, 0, COUNT(exclusions));
    tcase_add_loop_test(tcase, test_half_a_merged_weight, 0, COUNT(halves));
    tcase_add_test(tcase, test_halves_of_two_lists);
    tcase_add_test(tcase, test_exclusion_layer_by_layer);
    tcase_add_test(tcase, test_exclusion_in_scattered_layers);
    tcase_add_test(tcase, test_real_lists_leave_nothing_out);
    tcase_add_test(tcase, test_scale_fmt_is_taken);
    tcase_add_test(tcase, test_fields_of_a_nested_quantization);
    tcase_add_test(tcase, test_fp4_experts);
    return run_suite(suite);
}
