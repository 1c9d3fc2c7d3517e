/*
 * What NVRTC is given for a specialisation: source text and options. Pure.
 */
#include <stdio.h>
#include <string.h>

#include <cubinet/route.h>

#include "jit/build.h"
#include "jit/digest.h"

/* C has no literal for the smallest value, and a minus must not meet another operator. */
static void append_value(struct cbn__buf *source, int64_t value)
{
    if (value == INT64_MIN)
        cbn__buf_append_text(source, "(-9223372036854775807LL - 1)");
    else if (value < 0)
        cbn__buf_append_format(source, "(%lld)", (long long)value);
    else
        cbn__buf_append_format(source, "%lld", (long long)value);
}

void cbn__spec_source(const struct cbn__spec *spec, struct cbn__buf *ret_source)
{
    const struct cbn__template *template = spec->template;
    for (uint32_t i = 0; i < template->param_count; i++) {
        cbn__buf_append_format(ret_source, "#define %s ", template->param_names[i]);
        append_value(ret_source, spec->params[i]);
        cbn__buf_append_text(ret_source, "\n");
    }
    if (template->source_name)
        cbn__buf_append_format(ret_source, "#line 1 \"%s\"\n", cbn__file_name(template->source_name));
    cbn__buf_append_text(ret_source, template->source ? template->source : "");
}

/* -v gives the registers, spills and shared bytes that the entry keeps. Never fast math: it changes the quantiser. */
void cbn__spec_options(const struct cbn__spec *spec, struct cbn__spec_options *ret_options)
{
    char name[16];
    cbn_arch_format(spec->arch, name, sizeof(name));
    (void)snprintf(ret_options->arch, sizeof(ret_options->arch), "--gpu-architecture=%s", name);
    const char *const items[] = {ret_options->arch, "--std=c++17", "-default-device", "--ptxas-options=-v"};
    _Static_assert(sizeof(items) / sizeof(items[0]) <= CBN__OPTIONS_MAX, "the option list is too short");
    memcpy(ret_options->items, items, sizeof(items));
    ret_options->count = (int)(sizeof(items) / sizeof(items[0]));
}
