/*
 * See aside.h.
 */
#include "cache/aside.h"

#include <signal.h>

static void *work(void *user)
{
    struct cbn__aside *aside = user;
    (void)pthread_mutex_lock(&aside->mutex);
    for (;;) {
        while (!aside->job && !aside->ends)
            (void)pthread_cond_wait(&aside->changed, &aside->mutex);
        if (!aside->job)
            break;
        cbn__aside_fn job = aside->job;
        void *job_user = aside->user;
        (void)pthread_mutex_unlock(&aside->mutex);
        job(job_user);
        (void)pthread_mutex_lock(&aside->mutex);
        aside->job = NULL;
        (void)pthread_cond_broadcast(&aside->changed);
    }
    (void)pthread_mutex_unlock(&aside->mutex);
    return NULL;
}

bool cbn__aside_thread(pthread_t *ret_thread, const pthread_attr_t *attributes, void *(*run)(void *), void *user)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(ret_thread, attributes, run, user) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void cbn__aside_begin(struct cbn__aside *aside)
{
    *aside = (struct cbn__aside){.ends = false};
    (void)pthread_mutex_init(&aside->mutex, NULL);
    (void)pthread_cond_init(&aside->changed, NULL);
}

/* Mutex held. */
static void wait_until_idle(struct cbn__aside *aside)
{
    while (aside->job)
        (void)pthread_cond_wait(&aside->changed, &aside->mutex);
}

void cbn__aside_run(struct cbn__aside *aside, cbn__aside_fn job, void *user)
{
    aside->started = aside->started || cbn__aside_thread(&aside->thread, NULL, work, aside);
    if (!aside->started) {
        job(user);
        return;
    }
    (void)pthread_mutex_lock(&aside->mutex);
    wait_until_idle(aside);
    aside->job = job;
    aside->user = user;
    (void)pthread_cond_broadcast(&aside->changed);
    (void)pthread_mutex_unlock(&aside->mutex);
}

void cbn__aside_wait(struct cbn__aside *aside)
{
    (void)pthread_mutex_lock(&aside->mutex);
    wait_until_idle(aside);
    (void)pthread_mutex_unlock(&aside->mutex);
}

void cbn__aside_end(struct cbn__aside *aside)
{
    (void)pthread_mutex_lock(&aside->mutex);
    aside->ends = true;
    (void)pthread_cond_broadcast(&aside->changed);
    (void)pthread_mutex_unlock(&aside->mutex);
    if (aside->started)
        (void)pthread_join(aside->thread, NULL);
    (void)pthread_cond_destroy(&aside->changed);
    (void)pthread_mutex_destroy(&aside->mutex);
}
