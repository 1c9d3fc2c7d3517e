/*
 * dlopen of a library whose place is not known: a search that remembers where it looked.
 */
#ifndef CBN_DRIVER_LIBRARY_H
#define CBN_DRIVER_LIBRARY_H

#include <stdbool.h>

#include "base/buf.h"

struct cbn__search {
    void *handle;           /* NULL until a library loaded */
    struct cbn__buf places; /* "a; b; c" */
    struct cbn__buf reason; /* the loader's words about the first file that exists and does not load */
    /* Is this the library that is wanted? NULL: every one that loads. A refusal is a reason. */
    bool (*accept)(void *handle, struct cbn__buf *ret_reason);
};

void cbn__search_done(struct cbn__search *search); /* leaves handle alone */

/* Names a place for the error text, once. */
void cbn__search_note(struct cbn__search *search, const char *place);
/* One file, or one name for the loader (no slash). True when search->handle is set. */
bool cbn__search_try(struct cbn__search *search, const char *file, int flags);
/* Every file that folder/pattern matches, the last in order of name first. Relative folders are passed over. */
bool cbn__search_try_glob(struct cbn__search *search, const char *folder, const char *pattern, int flags);

/* The path that the loader gave the library; NULL on failure. Borrowed from the loader. */
const char *cbn__library_path(void *handle);
/* The name that the library itself has (DT_SONAME); NULL when it has none. Borrowed from the library. */
const char *cbn__library_soname(void *handle);

#endif
