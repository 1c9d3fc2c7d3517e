/*
 * A small template that needs no header, and specialisations of it.
 */
#ifndef CBN_TESTS_JIT_SAMPLE_H
#define CBN_TESTS_JIT_SAMPLE_H

#include "jit/spec.h"

#define SAMPLE_SOURCE                                                                                                  \
    "extern \"C\" __global__ void __launch_bounds__(256) sample(float *out)\n"                                         \
    "{\n"                                                                                                              \
    "    __shared__ float tile[SIZE];\n"                                                                               \
    "    tile[threadIdx.x % SIZE] = out[threadIdx.x] * SCALE;\n"                                                       \
    "    __syncthreads();\n"                                                                                           \
    "#if PDL\n"                                                                                                        \
    "    asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n"                                                     \
    "#endif\n"                                                                                                         \
    "    out[threadIdx.x] = tile[(threadIdx.x ^ 3) % SIZE];\n"                                                         \
    "}\n"

/* Everything that a key test may change, in one place of its own. */
struct sample {
    struct cbn__template template;
    struct cbn__spec spec;
    char *param_names[CBN_PARAMS_MAX];
    char *header_names[4];
    char *header_texts[4];
};

static inline char *sample_text(const char *text)
{
    return (char *)(uintptr_t)text;
}

static inline void sample_init(struct sample *sample)
{
    *sample = (struct sample){
        .template = {.family = sample_text("house"),
                     .name = sample_text("plain"),
                     .source = sample_text(SAMPLE_SOURCE),
                     .source_name = sample_text("sample.cuh"),
                     .symbol = sample_text("sample"),
                     .argument_layout = 3,
                     .argument_bytes = 8,
                     .param_count = 3},
        .spec = {.arch = CBN_ARCH(90, 'a'), .params = {256, -2, 1}},
        .param_names = {sample_text("SIZE"), sample_text("SCALE"), sample_text("PDL")},
    };
    sample->template.param_names = sample->param_names;
    sample->template.header_names = sample->header_names;
    sample->template.header_texts = sample->header_texts;
    sample->template.digest = cbn__template_digest(&sample->template);
    sample->spec.template = &sample->template;
}

static inline void sample_set_source(struct sample *sample, const char *source)
{
    sample->template.source = sample_text(source);
    sample->template.digest = cbn__template_digest(&sample->template);
}

static inline void sample_add_header(struct sample *sample, const char *name, const char *text)
{
    uint32_t index = sample->template.header_count++;
    sample->header_names[index] = sample_text(name);
    sample->header_texts[index] = sample_text(text);
    sample->template.digest = cbn__template_digest(&sample->template);
}

#endif
