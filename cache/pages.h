/*
 * Looks at the pages of a data file with bounds on every step, before LMDB does: LMDB aborts or faults on damaged
 * pages. Reads with pread, never through a map; takes no lock (the caller holds the store's).
 *
 * Outside contract: the page layout of LMDB 0.9, 64-bit little-endian (struct MDB_page, MDB_meta, MDB_node in mdb.c).
 */
#ifndef CBN_CACHE_PAGES_H
#define CBN_CACHE_PAGES_H

#include <stdint.h>

#define CBN__PAGES_PROBLEM_BYTES 96

struct cbn__pages_meta {
    uint32_t page_bytes;
    uint64_t last_page;
    uint64_t transaction;
    uint64_t free_root, main_root; /* UINT64_MAX: an empty tree */
    uint64_t file_bytes;
};

/* The newer of the two meta pages. NULL, or what is wrong. */
const char *cbn__pages_read_meta(int fd, struct cbn__pages_meta *ret_meta);

/*
 * Meta, branch and leaf pages of every tree, each page reached at most once and inside the file. 0 when LMDB can be
 * let at it; EBADMSG when it is damaged, and ret_problem says what is wrong and where; ENOMEM.
 *
 * Of the runs of pages that large values have to themselves it sees that they are inside the file and nobody else's;
 * their heads are looked at by runs.c, right before LMDB goes by one: here they would be a read an entry.
 */
int cbn__pages_check(int fd, struct cbn__pages_meta *ret_meta, char ret_problem[CBN__PAGES_PROBLEM_BYTES]);
/* The same, and every head. */
int cbn__pages_check_runs(int fd, struct cbn__pages_meta *ret_meta, char ret_problem[CBN__PAGES_PROBLEM_BYTES]);

/*
 * The version that both meta pages name, when both name the same and it is not the one that is read here: a file that
 * another LMDB keeps, which no single damage makes of ours. 0: none such.
 */
uint32_t cbn__pages_other_version(int fd);

#endif
