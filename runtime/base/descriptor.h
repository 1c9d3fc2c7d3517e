/*
 * Descriptors 0, 1 and 2 of a process that runs with some of them closed: what is opened meanwhile must not become its
 * stdout, or its next printf would go into a cache file.
 */
#ifndef CBN_BASE_DESCRIPTOR_H
#define CBN_BASE_DESCRIPTOR_H

struct cbn__low_descriptors {
    int held[3];
    int count;
};

/* Takes those of 0, 1 and 2 that are closed, until the release. thread: any. */
struct cbn__low_descriptors cbn__low_descriptors_hold(void);
void cbn__low_descriptors_release(struct cbn__low_descriptors *low);

#define CBN__LOW_DESCRIPTORS_AUTO                                                                                      \
    __attribute__((cleanup(cbn__low_descriptors_release), unused)) struct cbn__low_descriptors

#endif
