/*
 * Every INIT macro, compiled as C11 and as C++17 by headers_and_exports.sh: as an initialiser it sets the size, and all
 * that it does not name is zero.
 */
#include <cubinet/cubinet.h>

/* X(struct, macro) */
#define INIT_MAP(X)                                                                                                    \
    X(cbn_profile, CBN_PROFILE_INIT)                                                                                   \
    X(cbn_runtime_options, CBN_RUNTIME_OPTIONS_INIT)                                                                   \
    X(cbn_version, CBN_VERSION_INIT)                                                                                   \
    X(cbn_query, CBN_QUERY_INIT)                                                                                       \
    X(cbn_model_options, CBN_MODEL_OPTIONS_INIT)                                                                       \
    X(cbn_fp8_quantize_args, CBN_FP8_QUANTIZE_ARGS_INIT)                                                               \
    X(cbn_fp8_gemm_args, CBN_FP8_GEMM_ARGS_INIT)                                                                       \
    X(cbn_fp8_gemm_plan_options, CBN_FP8_GEMM_PLAN_OPTIONS_INIT)                                                       \
    X(cbn_fp8_gemm_run_args, CBN_FP8_GEMM_RUN_ARGS_INIT)                                                               \
    X(cbn_launch_args, CBN_LAUNCH_ARGS_INIT)                                                                           \
    X(cbn_fleet_info, CBN_FLEET_INFO_INIT)                                                                             \
    X(cbn_prune_options, CBN_PRUNE_OPTIONS_INIT)                                                                       \
    X(cbn_pack_options, CBN_PACK_OPTIONS_INIT)                                                                         \
    X(cbn_unpack_options, CBN_UNPACK_OPTIONS_INIT)

int main(void)
{
    int wrong = 0;
#define CHECK_SIZE(name, macro)                                                                                        \
    {                                                                                                                  \
        struct name made = macro;                                                                                      \
        wrong += made.size != sizeof(made);                                                                            \
    }
    INIT_MAP(CHECK_SIZE)
#undef CHECK_SIZE
    return wrong;
}
