/*
 * Keeping descriptors 0, 1 and 2 out of the way.
 */
#include "base/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

struct cbn__low_descriptors cbn__low_descriptors_hold(void)
{
    struct cbn__low_descriptors low = {.count = 0};
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && (low.held[low.count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
            low.count++;
    return low;
}

void cbn__low_descriptors_release(struct cbn__low_descriptors *low)
{
    while (low->count > 0)
        (void)close(low->held[--low->count]);
}
