/*
 * NVRTC keeps memory from start to end of the process. LeakSanitizer calls it leaked once the library is unmapped, so
 * a test pins what is mapped before the library under test closes it.
 */
#ifndef CBN_TESTS_FAKE_PIN_H
#define CBN_TESTS_FAKE_PIN_H

#include <dlfcn.h>
#include <link.h>
#include <string.h>

static int pin_one(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    (void)user;
    if (strstr(info->dlpi_name, "libnvrtc"))
        (void)dlopen(info->dlpi_name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    return 0;
}

static inline void pin_nvrtc(void)
{
    (void)dl_iterate_phdr(pin_one, NULL);
}

#endif
