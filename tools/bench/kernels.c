/*
 * See kernels.h.
 */
#include "kernels.h"

#include <stdio.h>

#include <bench_text.h> /* generated: bench.cu as a string */

#include "device.h"

#define FAMILY "gemm_bench"
#define BLOCKS_MAX 16384
#define THREADS 256
#define FLOOR_THREADS 32

enum { FACT_BLOCKS, FACT_KERNEL, FACT_SHARED, FACT_PDL, FACT_COUNT };
static const char *const facts[FACT_COUNT] = {"blocks", "kernel", "shared", "pdl"};

enum { PARAM_KERNEL, PARAM_PDL, PARAM_COUNT };

static void place(const int64_t *params, const int64_t *values, struct cbn_geometry *ret_geometry)
{
    *ret_geometry = (struct cbn_geometry){
        .grid = {(uint32_t)values[FACT_BLOCKS], 1, 1},
        .block = {params[PARAM_KERNEL] == BENCH_KERNEL_read_floor ? FLOOR_THREADS : THREADS, 1, 1},
        .shared_bytes = (uint32_t)values[FACT_SHARED],
    };
}

#define KERNEL_PARAMS(number)                                                                                          \
    {                                                                                                                  \
        {.name = "KERNEL", .source = CBN_PARAM_CONST, .value = number},                                                \
        {                                                                                                              \
            .name = "PDL", .source = CBN_PARAM_FACT, .fact = "pdl"                                                     \
        }                                                                                                              \
    }
#define KERNEL_GUARD(number)                                                                                           \
    {                                                                                                                  \
        .fact = "kernel", .relation = CBN_RELATION_EQ, .value = number                                                 \
    }

static const struct cbn_param params[BENCH_KERNEL_COUNT][PARAM_COUNT] = {
#define BENCH_X(number, name) KERNEL_PARAMS(number),
    BENCH_KERNEL_MAP(BENCH_X)
#undef BENCH_X
};

static const struct cbn_guard guards[BENCH_KERNEL_COUNT] = {
#define BENCH_X(number, name) KERNEL_GUARD(number),
    BENCH_KERNEL_MAP(BENCH_X)
#undef BENCH_X
};

static const char *const names[BENCH_KERNEL_COUNT] = {
#define BENCH_X(number, name) #name,
    BENCH_KERNEL_MAP(BENCH_X)
#undef BENCH_X
};

static bool told(int32_t status, const char *what, const struct cbn_error *err)
{
    if (status != CBN_STATUS_OK)
        fprintf(stderr, "gemm_bench: %s: %s\n", what, err->message);
    return status == CBN_STATUS_OK;
}

bool kernels_register(struct cbn_runtime *runtime)
{
    struct cbn_candidate candidates[BENCH_KERNEL_COUNT];
    struct cbn_error err = {0};
    for (int i = 0; i < BENCH_KERNEL_COUNT; i++)
        candidates[i] = (struct cbn_candidate){.name = names[i],
                                               .source = bench_text,
                                               .source_name = "bench.cu",
                                               .symbol = names[i],
                                               .flags = i == BENCH_KERNEL_read_floor ? CBN_CANDIDATE_PDL : 0,
                                               .params = params[i],
                                               .param_count = i == BENCH_KERNEL_read_floor ? PARAM_COUNT : 1,
                                               .guards = &guards[i],
                                               .guard_count = 1,
                                               .geometry = place,
                                               .argument_bytes = sizeof(struct bench_args)};
    const struct cbn_family family = {.size = sizeof(family),
                                      .argument_layout = 1,
                                      .name = FAMILY,
                                      .facts = facts,
                                      .fact_count = FACT_COUNT,
                                      .sweep_fact = "blocks",
                                      .candidates = candidates,
                                      .candidate_count = BENCH_KERNEL_COUNT};
    return told(cbn_family_register(runtime, &family, &err), "bench.cu", &err);
}

bool kernels_launch(struct cbn_runtime *runtime, enum bench_kernel kernel, int64_t blocks, int64_t shared_bytes,
                    bool pdl, const struct bench_args *bench_args)
{
    const struct cbn_fact call_facts[] = {{"blocks", blocks}, {"kernel", kernel}, {"shared", shared_bytes}};
    struct cbn_launch_args args = CBN_LAUNCH_ARGS_INIT;
    struct cbn_error err = {0};
    args.op = FAMILY;
    args.flags = pdl ? 0 : CBN_OP_NO_PDL;
    args.facts = call_facts;
    args.fact_count = 3;
    args.arguments = bench_args;
    args.argument_bytes = sizeof(*bench_args);
    return told(cbn_launch(runtime, &args, device.stream, &err), names[kernel], &err);
}

bool kernels_launch_over(struct cbn_runtime *runtime, enum bench_kernel kernel, int64_t elements,
                         const struct bench_args *args)
{
    int64_t blocks = (elements + THREADS - 1) / THREADS;
    return kernels_launch(runtime, kernel, blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX, 0, false, args);
}
