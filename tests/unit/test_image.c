/*
 * What the library reads from a cubin, of real NVRTC and of the stand-in, whole and damaged; and the builds that fail
 * for it.
 */
#include <check.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cubinet/runtime.h>

#include "jit/build.h"
#include "jit/image.h"
#include "unit/jit_sample.h"

#define STUB CBN_TEST_BINARY_DIR "/tests/fake/libnvrtc_stub.so"
#define BUILD_AUTO __attribute__((cleanup(cbn__build_done))) struct cbn__build

static int32_t run(const char *nvrtc, const char *program, const struct cbn__spec *spec, struct cbn__build *build,
                   struct cbn_error *err)
{
    struct cbn__builder *builder = NULL;
    const char *env = getenv("CUBINET_NVRTC");
    const struct cbn__builder_options options = {
        .nvrtc_path = nvrtc, .nvrtc_env = env && *env ? env : NULL, .builder_path = program, .timeout_ms = 60000};
    ck_assert_int_eq(cbn__builder_create(&options, &builder, NULL), CBN_STATUS_OK);
    int32_t status = cbn__build_run(builder, spec, build, err);
    cbn__builder_destroy(builder);
    ck_assert_int_eq(status == CBN_STATUS_OK, build->cubin.size > 0);
    return status;
}

/* In process and in a child: a launch would find it missing, so it is no build. */
START_TEST(a_cubin_has_the_kernel_it_is_built_for)
{
    static const struct {
        const char *source, *words; /* NULL: it builds */
    } cases[] = {
        {"extern \"C\" __global__ void other(float *p) {}\nextern \"C\" __global__ void sample_2(float *p) {}\n",
         "house/plain sm_90a: the cubin has no extern \"C\" kernel sample; it has "},
        {"__global__ void sample(float *p) {}\n", "kernel sample; it has _Z6samplePf; "},
        {"extern \"C\" __device__ __noinline__ int sample(int n) { return n * 3; }\n"
         "extern \"C\" __global__ void other(int *p) { *p = sample(*p); }\n",
         "kernel sample; it has other; "},
        {"int nothing;\n", "kernel sample; it has none at all; "},
        {"extern \"C\" __global__ void sample(float *p, int n) {}\n",
         "house/plain sm_90a: sample takes 12 bytes of parameters, and argument_bytes is 8"},
        {"extern \"C\" __global__ void sample(int n) {}\n", "sample takes 4 bytes of parameters"},
        {"struct five { char c[5]; };\nextern \"C\" __global__ void sample(five f) {}\n",
         "sample takes 5 bytes of parameters"},
        {"struct alignas(64) wide { char c[192]; };\n" /* stands off the start of the parameters */
         "extern \"C\" __global__ void sample(const __grid_constant__ wide w) {}\n",
         "sample takes 192 bytes of parameters"},
        {"extern \"C\" __global__ void sample(float a, float b) {}\n", NULL},
        {"extern \"C\" __global__ void other(int n) {}\nextern \"C\" __global__ void sample(float *p) {}\n", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sample sample;
        sample_init(&sample);
        sample_set_source(&sample, cases[i].source);
        sample.spec.params[2] = 0;
        BUILD_AUTO build = CBN__BUILD_INIT;
        struct cbn_error err = {0};
        int32_t status = run(NULL, _i ? "/proc/self/exe" : NULL, &sample.spec, &build, &err);
        ck_assert_msg(status == (cases[i].words ? CBN_STATUS_COMPILE_FAILED : CBN_STATUS_OK), "case %zu: %s", i,
                      err.message);
        if (cases[i].words)
            ck_assert_msg(strstr(err.message, cases[i].words) != NULL, "case %zu: %s", i, err.message);
    }
}
END_TEST

static struct cbn__blob build_sample(const char *nvrtc, struct cbn__build *build)
{
    struct sample sample;
    struct cbn_error err = {0};
    sample_init(&sample);
    ck_assert_msg(run(nvrtc, NULL, &sample.spec, build, &err) == CBN_STATUS_OK, "%s", err.message);
    return cbn__buf_blob(&build->cubin);
}

START_TEST(a_kernel_is_found_with_its_parameters)
{
    BUILD_AUTO real = CBN__BUILD_INIT, fake = CBN__BUILD_INIT;
    struct cbn__image_kernel kernel;
    cbn__image_find(build_sample(NULL, &real), "sample", &kernel);
    ck_assert(kernel.readable && kernel.found && kernel.argument_bytes_known);
    ck_assert_uint_eq(kernel.argument_bytes, 8);
    ck_assert_str_eq(kernel.others, "sample");
    cbn__image_find(cbn__buf_blob(&real.cubin), "sampl", &kernel);
    ck_assert(kernel.readable && !kernel.found && !kernel.argument_bytes_known);
    cbn__image_find(build_sample(STUB, &fake), "sample", &kernel);
    ck_assert(kernel.readable && kernel.found && !kernel.argument_bytes_known);
}
END_TEST

/* On the heap and of exactly its size, so that a sanitizer sees a read beyond it. */
static struct cbn__image_kernel find_in_copy(const uint8_t *data, size_t size)
{
    struct cbn__image_kernel kernel;
    uint8_t *copy = malloc(size ? size : 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, data, size);
    cbn__image_find((struct cbn__blob){copy, size}, "sample", &kernel);
    free(copy);
    return kernel;
}

START_TEST(a_cut_image_cannot_be_read)
{
    BUILD_AUTO build = CBN__BUILD_INIT;
    struct cbn__blob cubin = build_sample(_i ? STUB : NULL, &build);
    Elf64_Ehdr header;
    memcpy(&header, cubin.data, sizeof(header));
    size_t end = header.e_shoff + (size_t)header.e_shnum * sizeof(Elf64_Shdr); /* of the table of sections */
    ck_assert_uint_le(end, cubin.size);
    for (size_t size = 0; size < end; size++)
        ck_assert_msg(!find_in_copy(cubin.data, size).readable, "%zu of %zu bytes", size, cubin.size);
    ck_assert(find_in_copy(cubin.data, end).readable);
}
END_TEST

/* Every byte wrong in turn, and every aligned word at its largest: nothing is read outside the image. */
START_TEST(a_damaged_image_is_read_within_its_bounds)
{
    BUILD_AUTO build = CBN__BUILD_INIT;
    struct cbn__blob cubin = build_sample(_i ? STUB : NULL, &build);
    uint8_t *bytes = build.cubin.data;
    int unreadable = 0;
    for (size_t at = 0; at < cubin.size; at++) {
        bytes[at] ^= 0xFF;
        unreadable += !find_in_copy(bytes, cubin.size).readable;
        bytes[at] ^= 0xFF;
    }
    for (size_t at = 0; at + 8 <= cubin.size; at += 8) {
        uint8_t kept[8];
        memcpy(kept, bytes + at, sizeof(kept));
        memset(bytes + at, 0xFF, sizeof(kept));
        unreadable += !find_in_copy(bytes, cubin.size).readable;
        memcpy(bytes + at, kept, sizeof(kept));
    }
    ck_assert_int_gt(unreadable, 16); /* the magic, the table's place and size, ... */
    ck_assert(find_in_copy(bytes, cubin.size).found);
}
END_TEST

START_TEST(many_names_are_cut)
{
    char source[4096] = "";
    struct sample sample;
    struct cbn_error err = {0};
    BUILD_AUTO build = CBN__BUILD_INIT;
    for (int i = 0; i < 30; i++)
        (void)snprintf(source + strlen(source), sizeof(source) - strlen(source),
                       "extern \"C\" __global__ void kernel_%d(float *p) {}\n", i);
    sample_init(&sample);
    sample_set_source(&sample, source);
    ck_assert_int_eq(run(STUB, NULL, &sample.spec, &build, &err), CBN_STATUS_COMPILE_FAILED);
    ck_assert_ptr_nonnull(strstr(err.message, "it has kernel_0, kernel_1, "));
    ck_assert_ptr_nonnull(strstr(err.message, "; correct symbol, or the source"));
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--cubinet-builder") == 0)
        return cbn_builder_main(argc, argv);
    Suite *suite = suite_create("image");
    TCase *tcase = tcase_create("image");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, a_cubin_has_the_kernel_it_is_built_for, 0, 2);
    tcase_add_test(tcase, a_kernel_is_found_with_its_parameters);
    tcase_add_loop_test(tcase, a_cut_image_cannot_be_read, 0, 2);
    tcase_add_loop_test(tcase, a_damaged_image_is_read_within_its_bounds, 0, 2);
    tcase_add_test(tcase, many_names_are_cut);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
