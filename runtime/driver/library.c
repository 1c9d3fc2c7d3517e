/*
 * Searching for libraries. Owns nothing beyond the search; must not read the environment.
 */
#include "driver/library.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

void cbn__search_done(struct cbn__search *search)
{
    cbn__buf_done(&search->places);
    cbn__buf_done(&search->reason);
}

static bool is_noted(const char *places, const char *place)
{
    size_t length = strlen(place);
    for (const char *at = places; *at; at += at[0] == ';' ? 2 : 0) {
        size_t noted = strcspn(at, ";");
        if (noted == length && memcmp(at, place, length) == 0)
            return true;
        at += noted;
    }
    return false;
}

void cbn__search_note(struct cbn__search *search, const char *place)
{
    if (is_noted(cbn__buf_text(&search->places), place))
        return;
    if (search->places.size)
        cbn__buf_append_text(&search->places, "; ");
    cbn__buf_append_text(&search->places, place);
}

/* Only what was there and would not load is worth words: that a file is absent says its place already. */
static void keep_reason(struct cbn__search *search, const char *file)
{
    const char *reason = dlerror();
    bool exists = strchr(file, '/') && access(file, F_OK) == 0;
    if (reason && exists && search->reason.size == 0)
        cbn__buf_append_text(&search->reason, reason);
}

bool cbn__search_try(struct cbn__search *search, const char *file, int flags)
{
    void *handle = dlopen(file, flags);
    if (!handle) {
        keep_reason(search, file);
        return false;
    }
    if (search->accept && !search->accept(handle, &search->reason)) {
        (void)dlclose(handle);
        return false;
    }
    search->handle = handle;
    return true;
}

static void done_glob(glob_t *found)
{
    globfree(found);
}

bool cbn__search_try_glob(struct cbn__search *search, const char *folder, const char *pattern, int flags)
{
    if (!folder || folder[0] != '/')
        return false;
    CBN__BUF_AUTO path = CBN__BUF_INIT;
    cbn__buf_append_format(&path, "%s/%s", folder, pattern);
    __attribute__((cleanup(done_glob))) glob_t found = {0};
    if (glob(cbn__buf_text(&path), GLOB_NOSORT, NULL, &found) != 0)
        return false;
    /* Sorted here by bytes: glob's own order follows the locale. */
    for (size_t i = 0; i < found.gl_pathc; i++)
        for (size_t k = i + 1; k < found.gl_pathc; k++)
            if (strcmp(found.gl_pathv[i], found.gl_pathv[k]) < 0) {
                char *swap = found.gl_pathv[i];
                found.gl_pathv[i] = found.gl_pathv[k];
                found.gl_pathv[k] = swap;
            }
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (cbn__search_try(search, found.gl_pathv[i], flags))
            return true;
    return false;
}

const char *cbn__library_path(void *handle)
{
    struct link_map *map = NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_name || !map->l_name[0])
        return NULL;
    return map->l_name;
}

/* glibc has relocated the addresses of the dynamic section when dlopen returns. */
const char *cbn__library_soname(void *handle)
{
    struct link_map *map = NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_ld)
        return NULL;
    const char *strings = NULL;
    const ElfW(Dyn) *soname = NULL;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB)
            strings = (const char *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_SONAME)
            soname = entry;
    }
    return strings && soname ? strings + soname->d_un.d_val : NULL;
}
