/*
 * One job at a time in a thread beside the caller's: hashing, or storing, goes on while the next bytes are read.
 *
 * Owns one thread between the first job and the end; where none can be had the caller's own does the work. Used by one
 * thread. What a job touches is the job's until the next call here returns.
 */
#ifndef CBN_CACHE_ASIDE_H
#define CBN_CACHE_ASIDE_H

#include <pthread.h>
#include <stdbool.h>

typedef void (*cbn__aside_fn)(void *user);

struct cbn__aside {
    pthread_t thread;
    bool started;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    cbn__aside_fn job; /* NULL: none */
    void *user;
    bool ends;
};

/* A thread that handles none of the process' signals: they may want another stack, or wait for what it holds. */
bool cbn__aside_thread(pthread_t *ret_thread, const pthread_attr_t *attributes, void *(*run)(void *), void *user);

void cbn__aside_begin(struct cbn__aside *aside);
/* Begins the job once the one before is done. */
void cbn__aside_run(struct cbn__aside *aside, cbn__aside_fn job, void *user);
void cbn__aside_wait(struct cbn__aside *aside);
void cbn__aside_end(struct cbn__aside *aside);

#endif
