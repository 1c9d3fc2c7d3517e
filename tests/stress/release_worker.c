/*
 * One release of the library at work on a folder: built twice, from the cache as it is and from a copy whose format
 * number, and so whose tables, are the next ones.
 *
 *   release_worker FOLDER work ROUNDS   puts, finds and drops; what it finds must be its own; in the end all is there
 *   release_worker FOLDER verify        all of its entries are there and are its own
 *   release_worker FOLDER compact
 */
#include "../unit/cache_fixture.h"

#define KEYS 40u
#define OWN_SALT (1000u * CBN__FORMAT_VERSION) /* equal keys, another payload in each release */

static size_t size_of(uint64_t which)
{
    return 300 + (size_t)(which * 7919 % 9000) + CBN__FORMAT_VERSION;
}

static int32_t put_own(struct cbn__cabinet *cabinet, uint64_t which)
{
    struct test_key key = key_of(which);
    struct cbn__entry_facts facts = facts_of(13000);
    uint8_t payload[16384];
    fill_payload(payload, size_of(which), which + OWN_SALT);
    return cbn__cabinet_put(cabinet, RECORD(key), (struct cbn__blob){payload, size_of(which)}, cbn__blob_text("log"),
                            &facts, NULL);
}

static enum cbn__lookup find_own(struct cbn__cabinet *cabinet, uint64_t which)
{
    struct test_key key = key_of(which);
    struct cbn__entry entry;
    enum cbn__lookup found = cbn__cabinet_find(cabinet, RECORD(key), NULL, &entry);
    if (found != CBN__LOOKUP_HIT)
        return found;
    bool own = payload_is(&entry, size_of(which), which + OWN_SALT);
    cbn__entry_done(&entry);
    return own ? CBN__LOOKUP_HIT : CBN__LOOKUP_DAMAGED;
}

static int verify(struct cbn__cabinet *cabinet)
{
    int missing = 0;
    for (uint64_t i = 0; i < KEYS; i++)
        missing += find_own(cabinet, i) != CBN__LOOKUP_HIT;
    return missing;
}

static int work(struct cbn__cabinet *cabinet, int rounds)
{
    uint64_t state = (uint64_t)getpid();
    int wrong = 0;
    for (int i = 0; i < rounds; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        uint64_t which = (state >> 40) % KEYS;
        struct test_key key = key_of(which);
        struct cbn__hash hash = cbn__hash_blob(RECORD(key));
        if (state >> 33 & 1)
            (void)cbn__cabinet_drop(cabinet, &hash, NULL);
        wrong += put_own(cabinet, which) != CBN_STATUS_OK || find_own(cabinet, which) != CBN__LOOKUP_HIT;
    }
    for (uint64_t i = 0; i < KEYS; i++)
        wrong += put_own(cabinet, i) != CBN_STATUS_OK;
    return wrong + verify(cabinet);
}

int main(int count, char **values)
{
    struct events events = {0};
    struct cbn__cabinet *cabinet = NULL;
    if (count < 3)
        return 2;
    struct cbn__cabinet_options options = options_for(values[1], &events);
    options.max_bytes = 16 << 20;
    options.lock_timeout_ms = 60000;
    if (cbn__cabinet_open(&options, &cabinet, NULL) != CBN_STATUS_OK)
        return 3;
    int wrong = strcmp(values[2], "work") == 0     ? work(cabinet, count > 3 ? atoi(values[3]) : 0)
                : strcmp(values[2], "verify") == 0 ? verify(cabinet)
                                                   : cbn__cabinet_compact(cabinet, NULL);
    cbn__cabinet_close(cabinet);
    if (wrong || events.damages || events.notices)
        fprintf(stderr, "format %u: %d wrong, %d damages, %d notices: %s\n", CBN__FORMAT_VERSION, wrong, events.damages,
                events.notices, events.last);
    return wrong || events.damages || events.notices;
}
