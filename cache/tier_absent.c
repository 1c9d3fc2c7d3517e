/*
 * In the place of tier_redis.c where the library is built without hiredis: no link is ever made.
 */
#include "cache/tier_link.h"

#include "base/error.h"

int32_t cbn__link_supports(const struct cbn__tier_address *address, struct cbn_error *err)
{
    return cbn__error_own(err, CBN_STATUS_UNSUPPORTED,
                          "fleet: this library was built without a fleet tier, %.200s cannot be used; build it with "
                          "-DCUBINET_FLEET=ON, or unset CUBINET_FLEET",
                          address->shown);
}

int32_t cbn__link_create(const struct cbn__tier_address *address, int fd, struct cbn__link **ret_link,
                         struct cbn_error *err)
{
    (void)fd, (void)ret_link;
    return cbn__link_supports(address, err);
}

void cbn__link_destroy(struct cbn__link *link)
{
    (void)link;
}

int cbn__link_fd(const struct cbn__link *link)
{
    (void)link;
    return -1;
}

bool cbn__link_is_stale(const struct cbn__link *link)
{
    (void)link;
    return true;
}

int32_t cbn__link_send(struct cbn__link *link, const struct cbn__tier_command *command, struct cbn_error *err)
{
    (void)link, (void)command;
    return cbn__error_own(err, CBN_STATUS_UNSUPPORTED, "there is no fleet tier in this library");
}

int32_t cbn__link_receive(struct cbn__link *link, uint64_t deadline_ns, struct cbn__tier_reply *ret_reply,
                          struct cbn_error *err)
{
    (void)link, (void)deadline_ns, (void)ret_reply;
    return cbn__error_own(err, CBN_STATUS_UNSUPPORTED, "there is no fleet tier in this library");
}
