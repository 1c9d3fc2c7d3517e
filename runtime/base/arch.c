/*
 * Architecture names.
 */
#include "base/arch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* SM counts: A100, A40, Orin, L40S, H100/H200 SXM, B200, B300, Thor, RTX 5090, GB10 by their public data sheets. */
static const struct {
    uint32_t capability;
    char suffix;
    uint32_t usual_sms;
} known[] = {
    {80, 0, 108},    {86, 0, 84},     {87, 0, 16},    {89, 0, 142},    {90, 'a', 132},
    {100, 'a', 148}, {103, 'a', 148}, {110, 'a', 20}, {120, 'a', 170}, {121, 'a', 48},
};

#define KNOWN_COUNT (sizeof(known) / sizeof(known[0]))

static const char known_names[] = "sm_80, sm_86, sm_87, sm_89, sm_90a, sm_100a, sm_103a, sm_110a, sm_120a, sm_121a";

uint32_t cbn__arch_of_capability(uint32_t capability)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++)
        if (known[i].capability == capability)
            return CBN_ARCH(capability, known[i].suffix);
    return 0;
}

uint32_t cbn__arch_usual_sms(uint32_t arch)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++)
        if (CBN_ARCH(known[i].capability, known[i].suffix) == arch)
            return known[i].usual_sms;
    return 0;
}

void cbn_arch_format(uint32_t arch, char *ret_name, size_t name_bytes)
{
    char suffix[2] = {(char)(arch % 256), 0};
    (void)snprintf(ret_name, name_bytes, "sm_%u%s", cbn__arch_capability(arch), suffix);
}

int32_t cbn_arch_parse(const char *name, uint32_t *ret_arch, struct cbn_error *err)
{
    if (!name || !ret_arch)
        return cbn__error_own(err, CBN_STATUS_INVALID, "arch: NULL; give one of %s", known_names);
    uint32_t capability = 0;
    size_t digits = strncmp(name, "sm_", 3) == 0 ? strspn(name + 3, "0123456789") : 0;
    if (digits >= 2 && digits <= 3)
        capability = (uint32_t)strtoul(name + 3, NULL, 10);
    uint32_t arch = cbn__arch_of_capability(capability);
    if (!arch)
        return cbn__error_own(err, CBN_STATUS_INVALID, "arch '%.32s' is not known; give one of %s", name, known_names);
    char right[16];
    cbn_arch_format(arch, right, sizeof(right));
    if (strcmp(name, right) != 0)
        return cbn__error_own(err, CBN_STATUS_INVALID, "arch '%.32s': the kernels need '%s'; give that", name, right);
    *ret_arch = arch;
    return CBN_STATUS_OK;
}
