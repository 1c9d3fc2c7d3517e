/*
 * cuBLASLt's block-scaled product, by dlopen: weights in 128 x 128 blocks, activations in vectors of 128, bf16 out.
 * Numbers and layouts: cublasLt.h of CUDA 13.0 and cuBLAS' chapter on 1D and 2D block scaling for FP8.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "product.h"
#include "rows.h"

#define COMPUTE_32F 68
#define TYPE_32F 0
#define TYPE_BF16 14
#define TYPE_E4M3 28
#define OPERATION_N 0
#define OPERATION_T 1

enum { DESC_TRANSA = 3, DESC_TRANSB = 4, DESC_A_SCALE = 17, DESC_B_SCALE = 18, DESC_A_MODE = 31, DESC_B_MODE = 32 };
#define MODE_VEC128 4
#define MODE_BLOCK128 5
#define PREFERENCE_WORKSPACE 1
#define CONFIG_TILE 1
#define CONFIG_SPLIT 2

struct heuristic { /* cublasLtMatmulHeuristicResult_t */
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

#define CUBLASLT_MAP(X)                                                                                                \
    X(cublasLtCreate, (void **))                                                                                       \
    X(cublasLtMatmulDescCreate, (void **, int, int))                                                                   \
    X(cublasLtMatmulDescSetAttribute, (void *, int, const void *, size_t))                                             \
    X(cublasLtMatmulDescDestroy, (void *))                                                                             \
    X(cublasLtMatrixLayoutCreate, (void **, int, uint64_t, uint64_t, int64_t))                                         \
    X(cublasLtMatrixLayoutDestroy, (void *))                                                                           \
    X(cublasLtMatmulPreferenceCreate, (void **))                                                                       \
    X(cublasLtMatmulPreferenceSetAttribute, (void *, int, const void *, size_t))                                       \
    X(cublasLtMatmulPreferenceDestroy, (void *))                                                                       \
    X(cublasLtMatmulAlgoGetHeuristic,                                                                                  \
      (void *, void *, void *, void *, void *, void *, void *, int, struct heuristic *, int *))                        \
    X(cublasLtMatmulAlgoConfigGetAttribute, (const uint64_t *, int, void *, size_t, size_t *))                         \
    X(cublasLtMatmul, (void *, void *, const void *, uint64_t, void *, uint64_t, void *, const void *, uint64_t,       \
                       void *, uint64_t, void *, const uint64_t *, uint64_t, size_t, void *))

static struct {
#define CUBLASLT_X(name, arguments) int(*name) arguments;
    CUBLASLT_MAP(CUBLASLT_X)
#undef CUBLASLT_X
} blas;

static void *handle;
static size_t version;

/* D^T [N, M] = W [N, K] . A^T in the library's column-major words: its first operand is W, transposed. */
struct matmul {
    const struct problem *problem;
    void *desc, *w, *a, *d;
    struct heuristic heuristic;
};

static bool find_functions(void *library)
{
    void *symbol = NULL;
#define CUBLASLT_X(name, arguments)                                                                                    \
    symbol = dlsym(library, #name);                                                                                    \
    memcpy(&blas.name, &symbol, sizeof(symbol));                                                                       \
    if (!symbol)                                                                                                       \
        return false;
    CUBLASLT_MAP(CUBLASLT_X)
#undef CUBLASLT_X
    size_t (*get_version)(void) = NULL;
    symbol = dlsym(library, "cublasLtGetVersion");
    memcpy(&get_version, &symbol, sizeof(symbol));
    version = get_version ? get_version() : 0;
    return true;
}

bool cublaslt_open(const char *path)
{
    static const char *const names[] = {"libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13",
                                        "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.12"};
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    for (size_t i = 0; !path && !library && i < sizeof(names) / sizeof(names[0]); i++)
        library = dlopen(names[i], RTLD_NOW);
    if (!library || !find_functions(library) || blas.cublasLtCreate(&handle)) {
        printf("cublaslt: SKIPPED: %s\n", library ? "it lacks a function, or does not start" : dlerror());
        return false;
    }
    printf("cublaslt: version %zu\n", version);
    return true;
}

static int64_t padded_rows(const struct problem *problem)
{
    return (problem->m + 3) / 4 * 4; /* it refuses others */
}

static int set(void *desc, int attribute, const void *value, size_t bytes)
{
    return blas.cublasLtMatmulDescSetAttribute(desc, attribute, value, bytes);
}

static int set_scales(const struct matmul *matmul, int copy)
{
    const struct problem *problem = matmul->problem;
    uint64_t w_scale = problem->w_scale_padded + (uint64_t)(copy * problem->scale_bytes);
    int status = set(matmul->desc, DESC_A_SCALE, &w_scale, sizeof(w_scale));
    return status ? status : set(matmul->desc, DESC_B_SCALE, &problem->scales, sizeof(problem->scales));
}

static int describe_product(struct matmul *matmul)
{
    const int transposed = OPERATION_T, plain = OPERATION_N, w_mode = MODE_BLOCK128, a_mode = MODE_VEC128;
    int status = blas.cublasLtMatmulDescCreate(&matmul->desc, COMPUTE_32F, TYPE_32F);
    if (status == 0)
        status = set(matmul->desc, DESC_TRANSA, &transposed, sizeof(transposed));
    if (status == 0)
        status = set(matmul->desc, DESC_TRANSB, &plain, sizeof(plain));
    if (status == 0)
        status = set(matmul->desc, DESC_A_MODE, &w_mode, sizeof(w_mode));
    if (status == 0)
        status = set(matmul->desc, DESC_B_MODE, &a_mode, sizeof(a_mode));
    return status ? status : set_scales(matmul, 0);
}

static int describe_matrices(struct matmul *matmul)
{
    const struct problem *problem = matmul->problem;
    uint64_t m = (uint64_t)padded_rows(problem), n = (uint64_t)problem->n, k = (uint64_t)problem->k;
    int status = blas.cublasLtMatrixLayoutCreate(&matmul->w, TYPE_E4M3, k, n, problem->k);
    if (status == 0)
        status = blas.cublasLtMatrixLayoutCreate(&matmul->a, TYPE_E4M3, k, m, problem->k);
    return status ? status : blas.cublasLtMatrixLayoutCreate(&matmul->d, TYPE_BF16, n, m, problem->n);
}

static int choose_algorithm(struct matmul *matmul)
{
    const struct problem *problem = matmul->problem;
    size_t bytes = (size_t)problem->workspace_bytes;
    void *preference = NULL;
    int found = 0, status = blas.cublasLtMatmulPreferenceCreate(&preference);
    if (status == 0)
        status = blas.cublasLtMatmulPreferenceSetAttribute(preference, PREFERENCE_WORKSPACE, &bytes, sizeof(bytes));
    if (status == 0)
        status = blas.cublasLtMatmulAlgoGetHeuristic(handle, matmul->desc, matmul->w, matmul->a, matmul->d, matmul->d,
                                                     preference, 1, &matmul->heuristic, &found);
    if (preference)
        (void)blas.cublasLtMatmulPreferenceDestroy(preference);
    return status ? status : (found > 0 ? matmul->heuristic.state : -1);
}

static void destroy(struct matmul *matmul)
{
    void *layouts[] = {matmul->w, matmul->a, matmul->d};
    for (int i = 0; i < 3; i++)
        if (layouts[i])
            (void)blas.cublasLtMatrixLayoutDestroy(layouts[i]);
    if (matmul->desc)
        (void)blas.cublasLtMatmulDescDestroy(matmul->desc);
}

static bool launch(void *user, int index)
{
    struct matmul *matmul = user;
    const struct problem *problem = matmul->problem;
    const float one = 1.0f, zero = 0.0f;
    int copy = problem_copy(problem, index), status = set_scales(matmul, copy);
    uint64_t w = problem->w + (uint64_t)(copy * problem->w_bytes);
    if (status == 0)
        status = blas.cublasLtMatmul(handle, matmul->desc, &one, w, matmul->w, problem->codes, matmul->a, &zero,
                                     problem->d, matmul->d, problem->d, matmul->d, matmul->heuristic.algorithm,
                                     problem->workspace, (size_t)problem->workspace_bytes, device.stream);
    if (status)
        fprintf(stderr, "gemm_bench: cublasLtMatmul failed (%d)\n", status);
    return status == 0;
}

static int config(const struct matmul *matmul, int attribute)
{
    int value = 0;
    size_t written = 0;
    (void)blas.cublasLtMatmulAlgoConfigGetAttribute(matmul->heuristic.algorithm, attribute, &value, sizeof(value),
                                                    &written);
    return value;
}

static void add_refusal(const struct problem *problem, int status)
{
    char notes[ROW_NOTES_BYTES];
    (void)snprintf(notes, sizeof(notes), "no algorithm (status %d) version=%zu", status, version);
    rows_add(&(struct row){.peer = "cublaslt",
                           .op = "gemm",
                           .m = problem->m,
                           .n = problem->n,
                           .k = problem->k,
                           .error = (double)__builtin_nanf(""),
                           .notes = notes});
}

static bool measure_m(struct problem *problem)
{
    char notes[128];
    struct matmul matmul = {.problem = problem};
    int status = describe_product(&matmul);
    if (status == 0)
        status = describe_matrices(&matmul);
    if (status == 0)
        status = choose_algorithm(&matmul);
    if (status)
        add_refusal(problem, status); /* a peer without the mode fails nothing */
    (void)snprintf(notes, sizeof(notes), "Mp=%d version=%zu tile=%d splitk=%d", (int)padded_rows(problem), version,
                   config(&matmul, CONFIG_TILE), config(&matmul, CONFIG_SPLIT));
    const struct subject subject = {.peer = "cublaslt",
                                    .rows = padded_rows(problem),
                                    .bytes = problem_bytes(problem, CBN_DTYPE_E4M3),
                                    .launch = launch,
                                    .user = &matmul,
                                    .notes = notes};
    bool measured = status || problem_measure(problem, &subject);
    destroy(&matmul);
    return measured;
}

int cublaslt_measure(struct problem *problem, const int64_t *ms, int m_count)
{
    int failures = 0;
    for (int i = 0; i < m_count; i++)
        failures += !problem_set_m(problem, ms[i]) || !measure_m(problem);
    rows_end_line();
    return failures;
}
