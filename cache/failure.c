/*
 * Failed builds in the lock file. See failure.h.
 */
#include "cache/failure.h"

#include <string.h>
#include <unistd.h>

#include "base/record.h"

#define AT_KEY CBN__HASH_BYTES
#define AT_COUNT (AT_KEY + CBN__HASH_BYTES)
#define AT_DROPPED (AT_COUNT + 8u)
#define AT_COMPILER (AT_DROPPED + 8u)
#define AT_STATUS (AT_COMPILER + 4u)
#define AT_DOMAIN (AT_STATUS + 4u)
#define AT_NATIVE (AT_DOMAIN + 4u)
#define AT_MESSAGE (AT_NATIVE + 8u)
_Static_assert(AT_MESSAGE + CBN_ERROR_MESSAGE_BYTES == CBN__FAILURE_BYTES, "a slot holds a whole error");
_Static_assert(CBN__FAILURE_BYTES <= CBN__FAILURE_SLOT_BYTES, "slots do not overlap");

uint32_t cbn__failure_slot(const struct cbn__hash *key)
{
    return key->bytes[CBN__HASH_BYTES - 1] % CBN__FAILURE_SLOTS;
}

void cbn__failure_add(struct cbn__failure *failure, uint32_t compiler, const struct cbn_error *error)
{
    failure->count = (failure->compiler == compiler ? failure->count : 0) + 1;
    failure->compiler = compiler;
    failure->error = *error;
}

uint64_t cbn__failure_since(const struct cbn__failure *failure, const struct cbn__failure *before, uint32_t compiler)
{
    if (compiler == 0 || failure->compiler != compiler)
        return 0;
    uint64_t known = before->compiler == compiler ? before->count : 0;
    return failure->count > known ? failure->count - known : 0;
}

static struct cbn__hash seal_of(const uint8_t *bytes)
{
    return cbn__hash_blob((struct cbn__blob){bytes + AT_KEY, CBN__FAILURE_BYTES - AT_KEY});
}

void cbn__failure_encode(const struct cbn__hash *key, const struct cbn__failure *failure,
                         uint8_t ret_bytes[CBN__FAILURE_BYTES])
{
    memset(ret_bytes, 0, CBN__FAILURE_BYTES);
    memcpy(ret_bytes + AT_KEY, key->bytes, CBN__HASH_BYTES);
    cbn__store_u64(ret_bytes + AT_COUNT, failure->count);
    cbn__store_u64(ret_bytes + AT_DROPPED, failure->dropped);
    cbn__store_u32(ret_bytes + AT_COMPILER, failure->compiler);
    cbn__store_u32(ret_bytes + AT_STATUS, (uint32_t)failure->error.status);
    cbn__store_u32(ret_bytes + AT_DOMAIN, failure->error.domain);
    cbn__store_u64(ret_bytes + AT_NATIVE, (uint64_t)failure->error.native_code);
    memcpy(ret_bytes + AT_MESSAGE, failure->error.message,
           strnlen(failure->error.message, CBN_ERROR_MESSAGE_BYTES - 1));
    struct cbn__hash seal = seal_of(ret_bytes);
    memcpy(ret_bytes, seal.bytes, CBN__HASH_BYTES);
}

static bool is_blank(const uint8_t *bytes)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, CBN__FAILURE_BYTES - 1) == 0;
}

bool cbn__failure_decode(const uint8_t bytes[CBN__FAILURE_BYTES], const struct cbn__hash *key,
                         struct cbn__failure *ret_failure)
{
    *ret_failure = (struct cbn__failure){0};
    if (is_blank(bytes))
        return true;
    struct cbn__hash seal = seal_of(bytes);
    if (memcmp(bytes, seal.bytes, CBN__HASH_BYTES) != 0)
        return false;
    if (memcmp(bytes + AT_KEY, key->bytes, CBN__HASH_BYTES) != 0)
        return true;
    ret_failure->count = cbn__load_u64(bytes + AT_COUNT);
    ret_failure->dropped = cbn__load_u64(bytes + AT_DROPPED);
    ret_failure->compiler = cbn__load_u32(bytes + AT_COMPILER);
    ret_failure->error.status = (int32_t)cbn__load_u32(bytes + AT_STATUS);
    ret_failure->error.domain = cbn__load_u32(bytes + AT_DOMAIN);
    ret_failure->error.native_code = (int64_t)cbn__load_u64(bytes + AT_NATIVE);
    memcpy(ret_failure->error.message, bytes + AT_MESSAGE, CBN_ERROR_MESSAGE_BYTES);
    return ret_failure->error.message[CBN_ERROR_MESSAGE_BYTES - 1] == 0;
}

static off_t offset_of(const struct cbn__hash *key)
{
    return (off_t)(CBN__FAILURE_FIRST_BYTE + cbn__failure_slot(key) * CBN__FAILURE_SLOT_BYTES);
}

bool cbn__failure_read(int fd, const struct cbn__hash *key, struct cbn__failure *ret_failure)
{
    uint8_t bytes[CBN__FAILURE_BYTES] = {0};
    ssize_t got = pread(fd, bytes, sizeof(bytes), offset_of(key));
    *ret_failure = (struct cbn__failure){0};
    return got >= 0 && cbn__failure_decode(bytes, key, ret_failure);
}

void cbn__failure_write(int fd, const struct cbn__hash *key, const struct cbn__failure *failure, uint64_t size_limit)
{
    uint8_t bytes[CBN__FAILURE_BYTES];
    if ((uint64_t)offset_of(key) + sizeof(bytes) > size_limit)
        return; /* past RLIMIT_FSIZE a write is a signal */
    cbn__failure_encode(key, failure, bytes);
    (void)!pwrite(fd, bytes, sizeof(bytes), offset_of(key));
}
