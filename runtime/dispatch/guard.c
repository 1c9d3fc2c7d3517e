/*
 * Refusals as text: what explain prints beside a candidate.
 */
#include "dispatch/guard.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <cubinet/route.h>

#include "dispatch/decide.h"

#define VALUE_BYTES 24

static const char *relation_sign(uint32_t relation)
{
    switch (relation) {
#define CBN_X(number, name, sign)                                                                                      \
    case number:                                                                                                       \
        return sign;
        CBN_RELATION_MAP(CBN_X)
#undef CBN_X
    default:
        return "?";
    }
}

static bool is_dtype(const char *fact, int64_t value)
{
    if (strcmp(fact, "in") != 0 && strcmp(fact, "out") != 0)
        return false;
    return value >= 0 && value <= UINT32_MAX && strcmp(cbn_dtype_name((uint32_t)value), "unknown") != 0;
}

/* Facts whose numbers mean a name print it. */
static void format_value(const char *fact, int64_t value, char ret_text[VALUE_BYTES])
{
    if (is_dtype(fact, value))
        (void)snprintf(ret_text, VALUE_BYTES, "%s", cbn_dtype_name((uint32_t)value));
    else if (strcmp(fact, "arch") == 0 && value > 0 && value <= UINT32_MAX)
        cbn_arch_format((uint32_t)value, ret_text, VALUE_BYTES);
    else
        (void)snprintf(ret_text, VALUE_BYTES, "%" PRId64, value);
}

static void format_guard(const char *fact, const struct cbn__guard *guard, char *ret_text, size_t text_bytes)
{
    char low[VALUE_BYTES], high[VALUE_BYTES];
    format_value(fact, guard->value, low);
    format_value(fact, guard->value_end, high);
    const char *sign = relation_sign(guard->relation);
    if (guard->relation == CBN_RELATION_MULTIPLE_OF)
        (void)snprintf(ret_text, text_bytes, "%s %s%" PRId64 " == 0", fact, sign, guard->value);
    else if (guard->relation == CBN_RELATION_IN_RANGE)
        (void)snprintf(ret_text, text_bytes, "%s %s [%s,%s)", fact, sign, low, high);
    else
        (void)snprintf(ret_text, text_bytes, "%s %s %s", fact, sign, low);
}

void cbn__guard_format(const struct cbn__family *family, const struct cbn__decision *decision, uint32_t candidate,
                       char *ret_text, size_t text_bytes)
{
    const struct cbn__guard *guard = decision->candidates[candidate].guard;
    switch (decision->candidates[candidate].refusal) {
    case CBN__REFUSAL_DISABLED:
    case CBN__REFUSAL_OFF:
        (void)snprintf(ret_text, text_bytes, "enabled");
        return;
    case CBN__REFUSAL_POLICY:
        (void)snprintf(ret_text, text_bytes, "policy %s", family->policies[decision->policy]);
        return;
    case CBN__REFUSAL_GUARD:
        format_guard(family->facts[guard->fact], guard, ret_text, text_bytes);
        return;
    case CBN__REFUSAL_STRICT:
        (void)snprintf(ret_text, text_bytes, "strict_route");
        return;
    case CBN__REFUSAL_NONE:
        break;
    }
    (void)snprintf(ret_text, text_bytes, "%s", "");
}

static void format_refusal(const struct cbn__family *family, const struct cbn__decision *decision, uint32_t candidate,
                           char *ret_text, size_t text_bytes)
{
    const char *name = family->candidates[candidate].template.name;
    char guard[CBN_TEXT_BYTES], value[VALUE_BYTES];
    switch (decision->candidates[candidate].refusal) {
    case CBN__REFUSAL_DISABLED:
        (void)snprintf(ret_text, text_bytes, "%s is switched off", name);
        return;
    case CBN__REFUSAL_OFF:
        (void)snprintf(ret_text, text_bytes, "%s is off unless enabled by name", name);
        return;
    case CBN__REFUSAL_POLICY:
        (void)snprintf(ret_text, text_bytes, "%s is not in policy %s", name, family->policies[decision->policy]);
        return;
    case CBN__REFUSAL_STRICT:
        (void)snprintf(ret_text, text_bytes, "%s is a fallback, which strict_route refuses", name);
        return;
    case CBN__REFUSAL_GUARD:
        cbn__guard_format(family, decision, candidate, guard, sizeof(guard));
        format_value(family->facts[decision->candidates[candidate].guard->fact], decision->candidates[candidate].value,
                     value);
        (void)snprintf(ret_text, text_bytes, "%s wants %s (it is %s)", name, guard, value);
        return;
    case CBN__REFUSAL_NONE:
        break;
    }
    (void)snprintf(ret_text, text_bytes, "%s was not asked", name);
}

void cbn__refusals_format(const struct cbn__family *family, const struct cbn__decision *decision, char *ret_text,
                          size_t text_bytes)
{
    size_t used = 0;
    ret_text[0] = 0;
    for (uint32_t i = 0; i < family->candidate_count && used + 1 < text_bytes; i++) {
        char refusal[2 * CBN_TEXT_BYTES + 64];
        format_refusal(family, decision, i, refusal, sizeof(refusal));
        int written = snprintf(ret_text + used, text_bytes - used, "%s%s", i ? "; " : "", refusal);
        used += written > 0 ? (size_t)written : 0;
    }
}
