/*
 * Architectures: names, the suffix that kernels need, facts that follow from the name.
 */
#ifndef CBN_BASE_ARCH_H
#define CBN_BASE_ARCH_H

#include <stdbool.h>
#include <stdint.h>

#include <cubinet/route.h>

static inline uint32_t cbn__arch_capability(uint32_t arch)
{
    return arch / 256;
}

/* Programmatic dependent launch exists from sm_90 on (PTX ISA, griddepcontrol). */
static inline bool cbn__arch_has_pdl(uint32_t arch)
{
    return cbn__arch_capability(arch) >= 90;
}

/* The arch whose cubins a device of this compute capability (90 for 9.0) runs; 0 when there is none. */
uint32_t cbn__arch_of_capability(uint32_t capability);
/* SMs of the arch's usual data-centre part, for decisions made without a device. */
uint32_t cbn__arch_usual_sms(uint32_t arch);

#endif
