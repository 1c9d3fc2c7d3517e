/*
 * config.json to shapes, by hand-made edits of real configs.
 */
#include "unit/model_fixture.h"

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
    ck_assert_ptr_nonnull(strstr(error.message, "check these fields of the config"));
    ck_assert_ptr_null(strstr(error.message, "ranks"));
    expect_refusal(read_model("DeepSeek-V3"), 3, 0, CBN_STATUS_INVALID, "(128); give a number of ranks that does");
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
    json_t *ratios = json_array();
    for (int i = 0; i < 44; i++)
        json_array_append_new(ratios, json_integer(i == 43 ? 4 : 128));
    json_object_set_new(config, "compress_ratios", ratios);
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
    expect_refusal(config, 1, 0, CBN_STATUS_INVALID, "n_shared_experts is -1; it must be 0 or a positive integer");
    config = read_model("DeepSeek-V3");
    json_object_set_new(config, "first_k_dense_replace", json_integer(-1));
    expect_refusal(config, 1, 0, CBN_STATUS_INVALID, "first_k_dense_replace is -1; it must be 0 or a positive integer");
    config = read_model("DeepSeek-V3");
    json_object_set_new(config, "first_k_dense_replace", json_real(0.5));
    expect_refusal(config, 1, 0, CBN_STATUS_INVALID, "first_k_dense_replace is a real number; it must be 0 or");
    config = read_model("DeepSeek-V3");
    json_object_set_new(config, "first_k_dense_replace", json_integer((json_int_t)1 << 31));
    expect_refusal(config, 1, 0, CBN_STATUS_LIMIT, "first_k_dense_replace is 2147483648");
    config = read_model("DeepSeek-V3");
    json_object_set_new(config, "first_k_dense_replace", json_integer(62));
    expect_refusal(config, 1, 0, CBN_STATUS_INVALID, "first_k_dense_replace is 62, more than num_hidden_layers (61)");
    config = read_model("DeepSeek-V4-Flash-FP8");
    json_object_del(config, "compress_ratios");
    expect_refusal(config, 1, 0, CBN_STATUS_INVALID, "compress_ratios is missing");
    config = read_model("DeepSeek-V4-Flash-FP8");
    json_object_set_new(config, "compress_ratios", json_pack("[is]", 4, "4"));
    expect_refusal(config, 1, 0, CBN_STATUS_INVALID, "compress_ratios[1] is a string");
    config = read_model("DeepSeek-V4-Flash-FP8");
    json_object_set_new(config, "compress_ratios", json_pack("[ii]", 4, 4));
    expect_refusal(config, 1, 0, CBN_STATUS_INVALID,
                   "compress_ratios has 2 entries, fewer than num_hidden_layers (43)");
    config = read_model("Qwen3-30B-A3B-FP8");
    json_object_set_new(config, "decoder_sparse_step", json_integer(0));
    expect_refusal(config, 1, 0, CBN_STATUS_INVALID, "decoder_sparse_step is 0");
    config = read_model("Qwen3-30B-A3B-FP8");
    json_object_set_new(config, "mlp_only_layers", json_pack("[s]", "0"));
    expect_refusal(config, 1, 0, CBN_STATUS_INVALID, "mlp_only_layers[0] is a string");
}
END_TEST

static json_t *edit_text_config(const char *field, json_t *value)
{
    json_t *config = read_model("Qwen3.6-27B-FP8"), *text = json_object_get(config, "text_config");
    ck_assert_int_eq(value ? json_object_set_new(text, field, value) : json_object_del(text, field), 0);
    return config;
}

START_TEST(test_layer_types)
{
    json_t *types = json_array();
    for (int i = 0; i < 64; i++)
        json_array_append_new(types, json_string("full_attention"));
    struct cbn_model *model = load_config(edit_text_config("layer_types", json_deep_copy(types)), 8, 0);
    ck_assert(!has_layer(model, "linear_attn.out_proj"));
    ck_assert_uint_eq(cbn_model_shape_count(model), 4);
    cbn_model_destroy(model);
    model = load_config(edit_text_config("layer_types", NULL), 8, 0);
    ck_assert_uint_eq(cbn_model_shape_count(model), 7);
    cbn_model_destroy(model);
    json_array_set_new(types, 5, json_string("sliding_attention"));
    expect_refusal(edit_text_config("layer_types", json_deep_copy(types)), 8, 0, CBN_STATUS_UNSUPPORTED,
                   "text_config.layer_types[5] is \"sliding_attention\"");
    json_array_set_new(types, 5, json_integer(1));
    expect_refusal(edit_text_config("layer_types", json_deep_copy(types)), 8, 0, CBN_STATUS_INVALID,
                   "text_config.layer_types[5] is an integer");
    json_decref(types);
    expect_refusal(edit_text_config("layer_types", json_pack("[s]", "full_attention")), 8, 0, CBN_STATUS_INVALID,
                   "text_config.layer_types has 1 entries, fewer than num_hidden_layers (64)");
    expect_refusal(edit_text_config("layer_types", json_integer(4)), 8, 0, CBN_STATUS_INVALID,
                   "text_config.layer_types is an integer");
    expect_refusal(edit_text_config("attn_output_gate", json_integer(1)), 8, 0, CBN_STATUS_INVALID,
                   "text_config.attn_output_gate is an integer");
    json_t *config = edit_text_config("layer_types", NULL);
    json_object_del(json_object_get(config, "text_config"), "full_attention_interval");
    expect_refusal(config, 8, 0, CBN_STATUS_INVALID, "text_config.full_attention_interval is missing");
}
END_TEST

/* The last sparse layer turned dense: nothing sparse is left, and nothing of it is listed. */
START_TEST(test_no_layer_is_sparse)
{
    json_t *config = read_model("DeepSeek-V3");
    json_object_set_new(config, "first_k_dense_replace", json_integer(61));
    struct cbn_model *model = load_config(config, 1, 0);
    ck_assert(!has_layer(model, "mlp.experts.w13"));
    ck_assert(has_layer(model, "mlp.gate_up_proj"));
    cbn_model_destroy(model);
    config = read_model("DeepSeek-V3");
    json_object_set_new(config, "first_k_dense_replace", json_integer(0));
    json_object_set_new(config, "moe_layer_freq", json_integer(2));
    model = load_config(config, 1, 0);
    ck_assert(has_layer(model, "mlp.experts.w13"));
    ck_assert(has_layer(model, "mlp.gate_up_proj"));
    cbn_model_destroy(model);
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
    tcase_add_test(tcase, test_layer_types);
    tcase_add_test(tcase, test_no_layer_is_sparse);
    tcase_add_test(tcase, test_dense_layers_of_a_sparse_qwen);
    tcase_add_test(tcase, test_nested_text_config);
    tcase_add_test(tcase, test_second_architecture_counts);
    return run_suite(suite);
}
