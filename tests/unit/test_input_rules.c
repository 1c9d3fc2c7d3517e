/*
 * The input rules of fp8_gemm and fp8_quantize: one row of a table a rule, on a runtime that never compiles. Arguments
 * that pass every rule end in MISS, since the cache is empty and the miss policy is never.
 */
#include "ops_fixture.h"

#define M 64
#define N 256
#define K 512

static void set_up(void)
{
    open_fake();
    struct cbn_runtime_options options = fake_options(NULL);
    options.miss_policy = CBN_MISS_NEVER;
    options.policy = "reference"; /* its thresholds stay where they are */
    create_runtime(&options);
}

static void tear_down(void)
{
    ck_assert_uint_eq(fake.launch_count(), 0);
    close_runtime();
}

static struct cbn_fp8_gemm_args quantised(void)
{
    struct cbn_fp8_gemm_args args = gemm_args(M, N, K, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    give_bias(&args, CBN_DTYPE_BF16);
    args.m_valid = PLACE(6);
    return args;
}

static void transpose(struct cbn_tensor *tensor)
{
    int64_t extent = tensor->extents[0], stride = tensor->strides[0];
    tensor->extents[0] = tensor->extents[1];
    tensor->strides[0] = tensor->strides[1];
    tensor->extents[1] = extent;
    tensor->strides[1] = stride;
}

/* X(name, change of `a`, the arguments; status; words that the message must hold) */
#define GEMM_RULES(X)                                                                                                  \
    X(a_missing, a->a.data = 0, INVALID, "a is missing")                                                               \
    X(w_missing, a->w.data = 0, INVALID, "w is missing")                                                               \
    X(d_missing, a->d.data = 0, INVALID, "d is missing")                                                               \
    X(w_scale_missing, a->w_scale = (struct cbn_tensor){0}, INVALID, "w_scale is missing")                             \
    X(w_scale_missing_says_what, a->w_scale.data = 0, INVALID, "[ceil(N/128), ceil(K/128)]")                           \
    X(a_scale_missing, a->a_scale = (struct cbn_tensor){0}, INVALID, "a_scale is missing")                             \
    X(m_negative, a->a.extents[0] = -1, INVALID, "a.extents[0] is -1")                                                 \
    X(k_negative, a->w.extents[1] = -512, INVALID, "w.extents[1] is -512")                                             \
    X(n_negative, a->w.extents[0] = INT64_MIN, INVALID, "w.extents[0] is -9223372036854775808")                        \
    X(d_extent_negative, a->d.extents[1] = -256, INVALID, "d.extents[1] is -256")                                      \
    X(scale_extent_negative, a->w_scale.extents[0] = -2, INVALID, "w_scale.extents[0] is -2")                          \
    X(a_k_differs, a->a.extents[1] = 511, INVALID, "a has extents [64, 511]")                                          \
    X(d_m_differs, a->d.extents[0] = 63, INVALID, "d has extents [63, 256] (rank 2); give [M, N] = [64, 256]")         \
    X(d_n_differs, a->d.extents[1] = 255, INVALID, "d has extents")                                                    \
    X(a_rank_3, a->a.rank = 3, INVALID, "a.rank is 3")                                                                 \
    X(w_rank_1, a->w.rank = 1, INVALID, "w.rank is 1")                                                                 \
    X(d_rank_9, a->d.rank = 9, INVALID, "d has extents")                                                               \
    X(w_scale_rank_0, a->w_scale.rank = 0, INVALID, "w_scale has extents no rank")                                     \
    X(w_scale_short, a->w_scale.extents[0] = 1, INVALID, "w_scale has extents [1, 4] (rank 2); give [ceil(N/128), ")   \
    X(w_scale_short_k, a->w_scale.extents[1] = 3, INVALID, "= [2, 4]")                                                 \
    X(w_scale_long, a->w_scale.extents[1] = 5, INVALID, "w_scale has extents [2, 5]")                                  \
    X(w_scale_transposed, transpose(&a->w_scale), INVALID, "w_scale has extents [4, 2]")                               \
    X(w_scale_of_rows_said_blocks, a->w_scale.extents[0] = N, INVALID, "w_scale has extents [256, 4]")                 \
    X(w_scale_of_blocks_said_rows, a->w_scale_gran = CBN_GRAN_ROW, INVALID, "give [N, ceil(K/128)] = [256, 4]")        \
    X(w_scale_packed_extents, a->w_scale.dtype = CBN_DTYPE_INT32, INVALID, "= [2, 1]")                                 \
    X(a_scale_short, a->a_scale.extents[0] = 63, INVALID, "a_scale has extents [63, 4]")                               \
    X(a_scale_short_k, a->a_scale.extents[1] = 3, INVALID, "give [rows, ceil(K/128)] = [64, 4]")                       \
    X(a_scale_transposed, transpose(&a->a_scale), INVALID, "a_scale has extents [4, 64]")                              \
    X(a_span_overflows, a->a.strides[0] = INT64_MAX / 4, INVALID, "a: extents times strides")                          \
    X(d_bytes_overflow, a->d.strides[0] = INT64_MAX / 64, INVALID, "d: extents times strides")                         \
    X(w_passes_the_address_space, a->w.data = UINT64_MAX - 4095, INVALID, "w: 131072 bytes from address")              \
    X(scale_passes_the_address_space, a->w_scale.data = UINT64_MAX - 3, INVALID, "w_scale: 32 bytes")                  \
    X(lda_below_k, a->a.strides[0] = K - 1, INVALID, "a.strides[0] is 511, below the 512")                             \
    X(ldw_below_k, a->w.strides[0] = K - 16, INVALID, "w.strides[0] is 496, below the 512")                            \
    X(ldd_below_n, a->d.strides[0] = N - 8, INVALID, "d.strides[0] is 248, below the 256")                             \
    X(w_is_k_by_n, (a->w.strides[0] = 1, a->w.strides[1] = N), INVALID, "w.strides[1] is 256 and must be 1")           \
    X(a_is_column_major, (a->a.strides[0] = 1, a->a.strides[1] = M), INVALID, "a.strides[1] is 64 and must be 1")      \
    X(d_is_column_major, (a->d.strides[0] = 1, a->d.strides[1] = M), INVALID, "d.strides[1] is 64 and must be 1")      \
    X(a_stride_0, a->a.strides[0] = 0, INVALID, "a.strides[0] is 0 on an extent of 64")                                \
    X(a_stride_negative, a->a.strides[0] = -K, INVALID, "a.strides[0] is -512")                                        \
    X(a_inner_stride_0, a->a.strides[1] = 0, INVALID, "a.strides[1] is 0")                                             \
    X(d_stride_0, a->d.strides[0] = 0, INVALID, "d.strides[0] is 0")                                                   \
    X(w_scale_stride_0, a->w_scale.strides[1] = 0, INVALID, "w_scale.strides[1] is 0")                                 \
    X(w_scale_stride_negative, a->w_scale.strides[0] = -4, INVALID, "w_scale.strides[0] is -4")                        \
    X(a_scale_stride_0, a->a_scale.strides[0] = 0, INVALID, "a_scale.strides[0] is 0")                                 \
    X(w_scale_at_2, a->w_scale.data += 2, INVALID, "fp32 elements need a multiple of 4")                               \
    X(a_scale_at_1, a->a_scale.data += 1, INVALID, "fp32 elements need a multiple of 4")                               \
    X(d_at_odd, a->d.data += 1, INVALID, "bf16 elements need a multiple of 2")                                         \
    X(bias_at_odd, a->bias.data += 1, INVALID, "bias.data")                                                            \
    X(bias_dtype, a->bias.dtype = CBN_DTYPE_FP16, INVALID, "bias.dtype is fp16 (2); give bf16, which is d's, or fp32") \
    X(bias_short, a->bias.extents[0] = N - 1, INVALID, "bias has extents [255] (rank 1); give [N] = [256]")            \
    X(bias_rank_2, a->bias.rank = 2, INVALID, "bias has extents")                                                      \
    X(bias_strided, a->bias.strides[0] = 2, INVALID, "bias.strides[0] is 2 and must be 1")                             \
    X(d_is_a, a->d.data = a->a.data, INVALID, "overlaps a [")                                                          \
    X(d_ends_in_a, a->d.data = a->a.data - M * N * 2 + 2, INVALID, "overlaps a [")                                     \
    X(d_begins_in_a, a->d.data = a->a.data + M * K - 2, INVALID, "overlaps a [")                                       \
    X(d_over_w, a->d.data = a->w.data + 4096, INVALID, "overlaps w [")                                                 \
    X(d_over_w_scale, a->d.data = a->w_scale.data, INVALID, "overlaps w_scale [")                                      \
    X(d_over_a_scale, a->d.data = a->a_scale.data, INVALID, "overlaps a_scale [")                                      \
    X(d_over_bias, a->d.data = a->bias.data + 2, INVALID, "overlaps bias [")                                           \
    X(d_over_m_valid, a->d.data = a->m_valid, INVALID, "overlaps m_valid [")                                           \
    X(d_beside_rows_of_a, (a->a.strides[0] = 4096, a->d.data = a->a.data + 512, a->d.strides[0] = 4096 / 2), MISS,     \
      "cubinet warm")                                                                                                  \
    X(d_before_rows_of_a, (a->a.strides[0] = 4096, a->d.data = a->a.data - 512, a->d.strides[0] = 4096 / 2), MISS,     \
      "cubinet warm")                                                                                                  \
    X(d_into_rows_of_a, (a->a.strides[0] = 4096, a->d.data = a->a.data + 510, a->d.strides[0] = 4096 / 2), INVALID,    \
      "overlaps a [")                                                                                                  \
    X(d_around_rows_of_a, (a->a.strides[0] = 4096, a->d.data = a->a.data + 3600, a->d.strides[0] = 4096 / 2), INVALID, \
      "overlaps a [")                                                                                                  \
    X(d_at_another_pitch, (a->a.strides[0] = 4096, a->d.data = a->a.data + 512, a->d.strides[0] = 2056), INVALID,      \
      "overlaps a [")                                                                                                  \
    X(layout_none, a->a_scale_layout = CBN_LAYOUT_NONE, INVALID, "a_scale_layout is 0")                                \
    X(layout_unknown, a->a_scale_layout = 17, INVALID, "a_scale_layout is 17")                                         \
    X(col4_by_rows, (a->a_scale.strides[0] = 4, a->a_scale.strides[1] = 1), INVALID, "layout COL4 needs exactly 1")    \
    X(row_by_columns, a->a_scale_layout = CBN_LAYOUT_ROW, INVALID, "a_scale.strides[1] is 64; layout ROW needs exact") \
    X(row_stride_short, (a->a_scale_layout = CBN_LAYOUT_ROW, a->a_scale.strides[0] = 3, a->a_scale.strides[1] = 1),    \
      INVALID, "layout ROW needs at least 4")                                                                          \
    X(col_stride_short, (a->a_scale_layout = CBN_LAYOUT_COL, a->a_scale.strides[1] = 63), INVALID, "at least 64")      \
    X(col4_stride_short, a->a_scale.strides[1] = 60, INVALID, "layout COL4 needs at least 64")                         \
    X(col4_stride_odd, a->a_scale.strides[1] = 66, INVALID, "layout COL4 needs a multiple of 4")                       \
    X(packed_layout_of_fp32, a->a_scale_layout = CBN_LAYOUT_PACKED_COL, INVALID, "a_scale.dtype is fp32 (3)")          \
    X(fp32_layout_of_packed, a->a_scale.dtype = CBN_DTYPE_INT32, INVALID, "a_scale.dtype is int32 (5)")                \
    X(a_scale_of_bf16, (a->a.dtype = CBN_DTYPE_BF16, a->a.data = PLACE(9)), INVALID, "a_scale is given and a is bf16") \
    X(a_dtype, a->a.dtype = CBN_DTYPE_INT32, INVALID, "a.dtype is int32 (5)")                                          \
    X(a_dtype_none, a->a.dtype = CBN_DTYPE_NONE, INVALID, "a.dtype is none (0)")                                       \
    X(a_dtype_unknown, a->a.dtype = 77, INVALID, "a.dtype is unknown (77)")                                            \
    X(w_dtype, a->w.dtype = CBN_DTYPE_BF16, INVALID, "w.dtype is bf16 (1); give one of: e4m3")                         \
    X(w_scale_dtype, a->w_scale.dtype = CBN_DTYPE_FP16, INVALID, "w_scale.dtype is fp16 (2)")                          \
    X(d_dtype, a->d.dtype = CBN_DTYPE_E4M3, INVALID, "d.dtype is e4m3 (4)")                                            \
    X(gran_unknown, a->w_scale_gran = 3, UNSUPPORTED, "w_scale_gran is 3")                                             \
    X(flag_unknown, a->flags = 0x100, INVALID, "0x100 is not known")                                                   \
    X(flag_of_plans, a->flags = CBN_OP_WEIGHTS_STATIC, INVALID, "0x10 is not known")                                   \
    X(flag_of_quantize, a->flags = CBN_OP_APPROX_DIVISION, INVALID, "0x20 is not known")                               \
    X(miss_policy_2, a->miss_policy = 2, INVALID, "miss_policy is 2")                                                  \
    X(m_valid_at_2, a->m_valid += 2, INVALID, "m_valid is")                                                            \
    X(size_0, a->size = 0, INVALID, "INIT macro")                                                                      \
    X(passes, (void)a, MISS, "cubinet warm")                                                                           \
    X(row_layout, (a->a_scale_layout = CBN_LAYOUT_ROW, a->a_scale.strides[0] = 4, a->a_scale.strides[1] = 1), MISS,    \
      "A_SCALE=1")                                                                                                     \
    X(row_layout_padded, (a->a_scale_layout = CBN_LAYOUT_ROW, a->a_scale.strides[0] = 9, a->a_scale.strides[1] = 1),   \
      MISS, "A_SCALE=1")                                                                                               \
    X(col_layout, a->a_scale_layout = CBN_LAYOUT_COL, MISS, "A_SCALE=1")                                               \
    X(col4_padded, a->a_scale.strides[1] = 1024, MISS, "A_SCALE=1")                                                    \
    X(packed_row,                                                                                                      \
      (a->a_scale_layout = CBN_LAYOUT_PACKED_ROW, a->a_scale = tensor_2d(PLACE(4), CBN_DTYPE_INT32, M, 1, 1, 1)),      \
      MISS, "A_SCALE=2")                                                                                               \
    X(packed_col,                                                                                                      \
      (a->a_scale_layout = CBN_LAYOUT_PACKED_COL, a->a_scale = tensor_2d(PLACE(4), CBN_DTYPE_INT32, M, 1, 1, M)),      \
      MISS, "A_SCALE=2")                                                                                               \
    X(w_scale_column_major, (a->w_scale.strides[0] = 1, a->w_scale.strides[1] = 4), MISS, "W_SCALE=1")                 \
    X(w_scale_far_apart, (a->w_scale.strides[0] = 100, a->w_scale.strides[1] = 7), MISS, "W_SCALE=1")                  \
    X(w_scale_at_4, a->w_scale.data += 4, MISS, "VEC=16")                                                              \
    X(w_scale_rows, (a->w_scale_gran = CBN_GRAN_ROW, a->w_scale.extents[0] = N), MISS, "W_GRAN=2")                     \
    X(w_scale_packed, pack_weight_scales(a), MISS, "W_SCALE=2 W_GRAN=1")                                               \
    X(bias_fp32, give_bias(a, CBN_DTYPE_FP32), MISS, "BIAS=2")                                                         \
    X(bias_of_out, give_bias(a, CBN_DTYPE_BF16), MISS, "BIAS=1")                                                       \
    X(no_bias, a->bias = (struct cbn_tensor){0}, MISS, "BIAS=0")                                                       \
    X(d_right_behind_a, a->d.data = a->a.data + M * K, MISS, "wgmma")                                                  \
    X(d_right_before_a, a->d.data = a->a.data - M * N * 2, MISS, "wgmma")                                              \
    X(a_at_1_takes_another_candidate, a->a.data += 1, MISS, "fp8_gemm/generic")                                        \
    X(lda_odd_takes_another_candidate, a->a.strides[0] = K + 1, MISS, "VEC=1")                                         \
    X(ldd_8_takes_another_candidate, a->d.strides[0] = N + 4, MISS, "fp8_gemm/generic")                                \
    X(fp16_out, (a->d.dtype = CBN_DTYPE_FP16, a->bias.dtype = CBN_DTYPE_FP16), MISS, "OUT=2")                          \
    X(strict_route_refuses_the_fallback, (a->a.data += 1, a->flags = CBN_OP_STRICT_ROUTE), UNSUPPORTED, "align")       \
    X(no_pdl, a->flags = CBN_OP_NO_PDL, MISS, "PDL=0")                                                                 \
    X(pow2_is_nothing_to_codes, a->flags = CBN_OP_POW2 | CBN_OP_PROPAGATE, MISS, "IN=4")

#define RULE(name, change, status, words)                                                                              \
    static void gemm_##name(struct cbn_fp8_gemm_args *a)                                                               \
    {                                                                                                                  \
        change;                                                                                                        \
    }
GEMM_RULES(RULE)
#undef RULE

static const struct {
    const char *name;
    void (*change)(struct cbn_fp8_gemm_args *args);
    int32_t status;
    const char *words;
} gemm_rules[] = {
#define RULE(name, change, status, words) {#name, gemm_##name, CBN_STATUS_##status, words},
    GEMM_RULES(RULE)
#undef RULE
};

/* Every rule is asked, and all that fail are named: one process for the table. */
struct tally {
    unsigned wrong;
    char text[4096];
};

static void judge(struct tally *tally, const char *name, int32_t status, int32_t expected, const char *words)
{
    size_t used = strlen(tally->text);
    if (status == expected && error.status == status && strstr(error.message, words))
        return;
    tally->wrong++;
    snprintf(tally->text + used, sizeof(tally->text) - used, "\n%s: %s instead of %s: %s", name,
             cbn_status_name(status), cbn_status_name(expected), error.message);
}

START_TEST(gemm_rules_hold)
{
    struct tally tally = {0, ""};
    size_t count = sizeof(gemm_rules) / sizeof(gemm_rules[0]);
    for (size_t i = 0; i < count; i++) {
        struct cbn_fp8_gemm_args args = quantised();
        gemm_rules[i].change(&args);
        memset(&error, 0, sizeof(error));
        int32_t status = cbn_fp8_gemm(runtime, &args, stream, &error);
        judge(&tally, gemm_rules[i].name, status, gemm_rules[i].status, gemm_rules[i].words);
        ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, NULL), status);
    }
    ck_assert_msg(tally.wrong == 0, "%s", tally.text);
    struct cbn_stats stats = stats_now();
    ck_assert_uint_eq(stats.calls, 2 * count);
    ck_assert_uint_eq(stats.noops, 0);
    ck_assert_uint_eq(stats.launches, 0);
}
END_TEST

/* One row of everything: strides of the extent 1 are whatever the caller left there. */
START_TEST(strides_of_extent_1_are_ignored)
{
    struct cbn_fp8_gemm_args args = gemm_args(1, 128, 128, CBN_DTYPE_E4M3, CBN_DTYPE_BF16);
    args.a.strides[0] = -7;
    args.d.strides[0] = 0;
    args.a_scale.strides[0] = INT64_MIN;
    args.a_scale.strides[1] = INT64_MAX;
    args.w_scale.strides[0] = args.w_scale.strides[1] = 0;
    ck_assert_msg(cbn_fp8_gemm(runtime, &args, stream, &error) == CBN_STATUS_MISS, "%s", error.message);
    ck_assert_ptr_nonnull(strstr(error.message, "fp8_gemm/swap_ab"));
    args = gemm_args(5, 1, 1, CBN_DTYPE_FP32, CBN_DTYPE_FP32);
    args.a.strides[1] = args.w.strides[1] = args.w.strides[0] = -1;
    args.d.strides[1] = 0;
    ck_assert_msg(cbn_fp8_gemm(runtime, &args, stream, &error) == CBN_STATUS_MISS, "%s", error.message);
}
END_TEST

START_TEST(k_0_needs_no_scales_and_no_inputs)
{
    struct cbn_fp8_gemm_args args = gemm_args(M, N, 0, CBN_DTYPE_BF16, CBN_DTYPE_BF16);
    args.a.data = args.w.data = 0;
    args.w_scale = (struct cbn_tensor){0};
    ck_assert_msg(cbn_fp8_gemm(runtime, &args, stream, &error) == CBN_STATUS_MISS, "%s", error.message);
    ck_assert_ptr_nonnull(strstr(error.message, "fp8_gemm/generic"));
    args.a.dtype = CBN_DTYPE_E4M3;
    ck_assert_msg(cbn_fp8_gemm(runtime, &args, stream, &error) == CBN_STATUS_MISS, "%s", error.message);
    args.d.data = 0;
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(error.message, "d is missing"));
    args.d.data = PLACE(3);
    args.d.extents[1] = N + 1;
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_INVALID);
}
END_TEST

START_TEST(misaligned_without_a_candidate_names_every_guard)
{
    struct cbn_runtime_options options = fake_options(NULL);
    options.disable = "generic";
    options.policy = "reference";
    cbn_runtime_destroy(runtime);
    create_runtime(&options);
    struct cbn_fp8_gemm_args args = quantised();
    args.a.data += 8;
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &args, stream, &error), CBN_STATUS_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "swap_ab wants m in [1,32) (it is 64)"));
    ck_assert_ptr_nonnull(strstr(error.message, "wgmma wants align % 16 == 0 (it is 8)"));
    ck_assert_ptr_nonnull(strstr(error.message, "generic is switched off"));
}
END_TEST

/* The struct of an older or a newer caller. */
START_TEST(other_struct_sizes)
{
    struct {
        struct cbn_fp8_gemm_args args;
        unsigned char newer[16];
    } given = {.args = quantised()};
    given.args.size = sizeof(given);
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &given.args, stream, &error), CBN_STATUS_MISS);
    given.newer[15] = 1;
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &given.args, stream, &error), CBN_STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(error.message, "newer"));
    given.args.size = offsetof(struct cbn_fp8_gemm_args, m_valid);
    given.args.m_valid = 2; /* beyond the size: not looked at */
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &given.args, stream, &error), CBN_STATUS_MISS);
    given.args.size = offsetof(struct cbn_fp8_gemm_args, a);
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &given.args, stream, &error), CBN_STATUS_OK); /* M is 0 by default */
}
END_TEST

START_TEST(null_arguments)
{
    struct cbn_fp8_gemm_args args = quantised();
    struct cbn_fp8_quantize_args quantize = quantize_args(M, K, CBN_DTYPE_BF16);
    uint64_t bytes = 77;
    ck_assert_int_eq(cbn_fp8_gemm(NULL, &args, stream, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_fp8_gemm(runtime, NULL, stream, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_fp8_quantize(NULL, &quantize, stream, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_fp8_quantize(runtime, NULL, stream, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_fp8_gemm_workspace_bytes(runtime, &args, NULL, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_fp8_gemm_workspace_bytes(NULL, &args, &bytes, &error), CBN_STATUS_INVALID);
    ck_assert_int_eq(cbn_fp8_gemm_workspace_bytes(runtime, NULL, &bytes, &error), CBN_STATUS_INVALID);
    ck_assert_uint_eq(bytes, 77);
}
END_TEST

/* Nothing but the size is looked at, with no driver at all. */
START_TEST(nothing_to_do_is_success)
{
    struct cbn_runtime_options options = fake_options(NULL);
    options.cuda_path = "/nonexistent/libcuda.so.1";
    cbn_runtime_destroy(runtime);
    create_runtime(&options);
    struct cbn_fp8_gemm_args gemm;
    memset(&gemm, 0xA5, sizeof(gemm));
    gemm.size = sizeof(gemm);
    gemm.a.extents[0] = 0;
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &gemm, stream, &error), CBN_STATUS_OK);
    gemm.a.extents[0] = -1;
    gemm.w.extents[0] = 0;
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &gemm, stream, &error), CBN_STATUS_OK);
    uint64_t bytes = 77;
    ck_assert_int_eq(cbn_fp8_gemm_workspace_bytes(runtime, &gemm, &bytes, &error), CBN_STATUS_OK);
    ck_assert_uint_eq(bytes, 0);
    struct cbn_fp8_quantize_args quantize;
    memset(&quantize, 0xA5, sizeof(quantize));
    quantize.size = sizeof(quantize);
    quantize.x.extents[0] = 0;
    ck_assert_int_eq(cbn_fp8_quantize(runtime, &quantize, stream, &error), CBN_STATUS_OK);
    struct cbn_stats stats = stats_now();
    ck_assert_uint_eq(stats.calls, 3);
    ck_assert_uint_eq(stats.noops, 3);
    gemm.size = 1;
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &gemm, stream, &error), CBN_STATUS_INVALID);
    struct cbn_fp8_gemm_args sound = quantised();
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &sound, stream, &error), CBN_STATUS_NO_DRIVER);
    sound.d.data = 0;
    ck_assert_int_eq(cbn_fp8_gemm(runtime, &sound, stream, &error), CBN_STATUS_INVALID);
}
END_TEST

/* fp8_quantize */

static struct cbn_fp8_quantize_args grouped(void)
{
    struct cbn_fp8_quantize_args args = quantize_args(10, 256, CBN_DTYPE_BF16);
    args.x = (struct cbn_tensor){PLACE(0), CBN_DTYPE_BF16, 3, {10, 8, 256}, {4096, 512, 1}};
    args.codes = (struct cbn_tensor){PLACE(1), CBN_DTYPE_E4M3, 3, {10, 8, 256}, {2048, 256, 1}};
    args.scales = (struct cbn_tensor){PLACE(2), CBN_DTYPE_FP32, 3, {10, 8, 2}, {1, 24, 12}};
    return args;
}

static void to_group_rows(struct cbn_fp8_quantize_args *args)
{
    args->scale_layout = CBN_LAYOUT_ROW;
    args->scales = (struct cbn_tensor){PLACE(2), CBN_DTYPE_FP32, 3, {10, 8, 2}, {2, 20, 1}};
}

static void to_group_packed(struct cbn_fp8_quantize_args *args)
{
    args->scale_layout = CBN_LAYOUT_PACKED_COL;
    args->scales = (struct cbn_tensor){PLACE(2), CBN_DTYPE_INT32, 3, {10, 8, 1}, {1, 12, 12}};
}

/* X(name, base, change, status, words) */
#define QUANTIZE_RULES(X)                                                                                              \
    X(x_missing, flat, a->x.data = 0, INVALID, "x is missing")                                                         \
    X(codes_missing, flat, a->codes.data = 0, INVALID, "codes is missing")                                             \
    X(scales_missing, flat, a->scales.data = 0, INVALID, "scales is missing")                                          \
    X(t_negative, flat, a->x.extents[0] = -3, INVALID, "x.extents[0] is -3")                                           \
    X(k_negative, flat, a->x.extents[1] = -3, INVALID, "x.extents[1] is -3")                                           \
    X(x_rank, flat, a->x.rank = 1, INVALID, "x.rank is 1")                                                             \
    X(x_dtype, flat, a->x.dtype = CBN_DTYPE_E4M3, INVALID, "x.dtype is e4m3")                                          \
    X(x_column_major, flat, (a->x.strides[0] = 1, a->x.strides[1] = M), INVALID, "x.strides[1] is 64 and must be 1")   \
    X(x_stride_short, flat, a->x.strides[0] = K - 1, INVALID, "x.strides[0] is 511, below the 512")                    \
    X(x_stride_0, flat, a->x.strides[0] = 0, INVALID, "x.strides[0] is 0")                                             \
    X(x_at_odd, flat, a->x.data += 1, INVALID, "x.data")                                                               \
    X(codes_short, flat, a->codes.extents[0] = M - 1, INVALID, "codes has extents [63, 512] (rank 2); give [T, K]")    \
    X(codes_dtype, flat, a->codes.dtype = CBN_DTYPE_BF16, INVALID, "codes.dtype is bf16")                              \
    X(codes_stride_short, flat, a->codes.strides[0] = K - 1, INVALID, "codes.strides[0] is 511")                       \
    X(scales_short, flat, a->scales.extents[1] = 3, INVALID, "scales has extents [64, 3]")                             \
    X(scales_layout_none, flat, a->scale_layout = 0, INVALID, "scales_layout is 0")                                    \
    X(scales_packed_fp32, flat, a->scale_layout = CBN_LAYOUT_PACKED_COL, INVALID, "scales.dtype is fp32")              \
    X(scales_by_rows, flat, (a->scales.strides[0] = 4, a->scales.strides[1] = 1), INVALID, "layout COL4")              \
    X(scales_at_2, flat, a->scales.data += 2, INVALID, "scales.data")                                                  \
    X(codes_over_x, flat, a->codes.data = a->x.data + 512, INVALID, "codes [0x")                                       \
    X(scales_over_x, flat, a->scales.data = a->x.data, INVALID, "scales [0x")                                          \
    X(scales_over_codes, flat, a->scales.data = a->codes.data, INVALID, "overlaps scales [")                           \
    X(codes_over_m_valid, flat, a->m_valid = a->codes.data + 4, INVALID, "overlaps m_valid [")                         \
    X(m_valid_at_1, flat, a->m_valid = PLACE(6) + 1, INVALID, "m_valid is")                                            \
    X(flag_unknown, flat, a->flags = 64, INVALID, "0x40 is not known")                                                 \
    X(miss_policy, flat, a->miss_policy = 4, INVALID, "miss_policy is 4")                                              \
    X(size_0, flat, a->size = 0, INVALID, "INIT macro")                                                                \
    X(group_col, grouped, a->scale_layout = CBN_LAYOUT_COL, INVALID, "with groups give ROW, COL4 or PACKED_COL")       \
    X(group_packed_row, grouped, a->scale_layout = CBN_LAYOUT_PACKED_ROW, INVALID, "scales_layout is PACKED_ROW")      \
    X(group_codes_strided, grouped, a->codes.strides[0] = 4096, INVALID, "codes.strides[0] is 4096; codes with")       \
    X(group_codes_flat, grouped, (a->codes.rank = 2, a->codes.extents[1] = 2048), INVALID, "give [T, G, D]")           \
    X(group_x_inner, grouped, a->x.strides[2] = 2, INVALID, "x.strides[2] is 2 and must be 1")                         \
    X(group_x_stride_0, grouped, a->x.strides[1] = 0, INVALID, "x.strides[1] is 0")                                    \
    X(group_scales_flat, grouped, a->scales.rank = 2, INVALID, "scales has extents [10, 8] (rank 2)")                  \
    X(group_scales_overlap, grouped, a->scales.strides[1] = 23, INVALID, "scales.strides[1] is 23; layout COL4 needs") \
    X(group_rows_overlap, grouped, (to_group_rows(a), a->scales.strides[1] = 19), INVALID, "at least 20")              \
    X(group_too_large, grouped, (a->x.extents[1] = 1ll << 40, a->x.extents[2] = 1ll << 40), INVALID, "pass 2^63")      \
    X(passes, flat, (void)a, MISS, "fp8_quantize/vector")                                                              \
    X(padded, flat, (a->x.strides[0] = 1024, a->codes.strides[0] = 528), MISS, "fp8_quantize/vector")                  \
    X(odd_stride_is_scalar, flat, a->x.strides[0] = 513, MISS, "fp8_quantize/scalar")                                  \
    X(pow2, flat, a->flags = CBN_OP_POW2, MISS, "POW2=1")                                                              \
    X(propagate, flat, a->flags = CBN_OP_PROPAGATE, MISS, "PROPAGATE=1")                                               \
    X(approximate, flat, a->flags = CBN_OP_APPROX_DIVISION, MISS, "PROPAGATE=0 APPROX=1 PDL=1")                        \
    X(approximate_group, grouped, a->flags = CBN_OP_APPROX_DIVISION, MISS, "APPROX=1")                                 \
    X(approximate_pow2, flat, a->flags = CBN_OP_APPROX_DIVISION | CBN_OP_POW2, INVALID, "CBN_OP_APPROX_DIVISION")      \
    X(approximate_packed, grouped, (to_group_packed(a), a->flags = CBN_OP_APPROX_DIVISION), INVALID,                   \
      "CBN_OP_APPROX_DIVISION")                                                                                        \
    X(packed_is_pow2, flat,                                                                                            \
      (a->scale_layout = CBN_LAYOUT_PACKED_COL, a->scales = tensor_2d(PLACE(2), CBN_DTYPE_INT32, M, 1, 1, M)), MISS,   \
      "SCALE=2 POW2=1")                                                                                                \
    X(group_passes, grouped, (void)a, MISS, "fp8_quantize/vector")                                                     \
    X(group_major_x, grouped, (a->x.strides[0] = 256, a->x.strides[1] = 2560), MISS, "fp8_quantize/vector")            \
    X(group_rows, grouped, to_group_rows(a), MISS, "SCALE=1")                                                          \
    X(group_packed, grouped, to_group_packed(a), MISS, "SCALE=2")

#define RULE(name, base, change, status, words)                                                                        \
    static void quantize_##name(struct cbn_fp8_quantize_args *a)                                                       \
    {                                                                                                                  \
        change;                                                                                                        \
    }
QUANTIZE_RULES(RULE)
#undef RULE

static struct cbn_fp8_quantize_args flat(void)
{
    return quantize_args(M, K, CBN_DTYPE_BF16);
}

static const struct {
    const char *name;
    struct cbn_fp8_quantize_args (*base)(void);
    void (*change)(struct cbn_fp8_quantize_args *args);
    int32_t status;
    const char *words;
} quantize_rules[] = {
#define RULE(name, base, change, status, words) {#name, base, quantize_##name, CBN_STATUS_##status, words},
    QUANTIZE_RULES(RULE)
#undef RULE
};

START_TEST(quantize_rules_hold)
{
    struct tally tally = {0, ""};
    size_t count = sizeof(quantize_rules) / sizeof(quantize_rules[0]);
    for (size_t i = 0; i < count; i++) {
        struct cbn_fp8_quantize_args args = quantize_rules[i].base();
        quantize_rules[i].change(&args);
        memset(&error, 0, sizeof(error));
        int32_t status = cbn_fp8_quantize(runtime, &args, stream, &error);
        judge(&tally, quantize_rules[i].name, status, quantize_rules[i].status, quantize_rules[i].words);
    }
    ck_assert_msg(tally.wrong == 0, "%s", tally.text);
    ck_assert_uint_eq(stats_now().calls, count);
    ck_assert_uint_eq(stats_now().noops, 0);
}
END_TEST

START_TEST(quantize_without_groups_or_elements_is_nothing)
{
    struct cbn_fp8_quantize_args args = grouped();
    args.x.extents[1] = args.codes.extents[1] = args.scales.extents[1] = 0;
    ck_assert_msg(cbn_fp8_quantize(runtime, &args, stream, &error) == CBN_STATUS_OK, "%s", error.message);
    args = quantize_args(M, 0, CBN_DTYPE_BF16);
    args.x.data = args.codes.data = args.scales.data = 0;
    ck_assert_msg(cbn_fp8_quantize(runtime, &args, stream, &error) == CBN_STATUS_OK, "%s", error.message);
    ck_assert_uint_eq(stats_now().noops, 2);
    args.codes.extents[0] = 1;
    ck_assert_int_eq(cbn_fp8_quantize(runtime, &args, stream, &error), CBN_STATUS_INVALID);
}
END_TEST

static Suite *suite(void)
{
    Suite *rules = suite_create("input_rules");
    TCase *cases = tcase_create("input rules");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, gemm_rules_hold);
    tcase_add_test(cases, quantize_rules_hold);
    tcase_add_test(cases, strides_of_extent_1_are_ignored);
    tcase_add_test(cases, k_0_needs_no_scales_and_no_inputs);
    tcase_add_test(cases, misaligned_without_a_candidate_names_every_guard);
    tcase_add_test(cases, other_struct_sizes);
    tcase_add_test(cases, null_arguments);
    tcase_add_test(cases, nothing_to_do_is_success);
    tcase_add_test(cases, quantize_without_groups_or_elements_is_nothing);
    suite_add_tcase(rules, cases);
    return rules;
}

int main(void)
{
    return run_suite(suite());
}
