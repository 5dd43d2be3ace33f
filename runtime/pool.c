/* One word, `ticket`, announces a job: its upper bits count jobs, its lower bits hold how many parts it has.
 * Parts are taken one by one from `claim`, which says of which job it is: the caller takes those that no
 * worker has come for, so a worker that is not on a CPU holds nothing up. Who has run a part lowers
 * `pending`; the caller waits for 0, so a job's fields are stable while anyone who has a part reads them.
 * Workers that saw no ticket for a while sleep on a condition; `sleepers` tells the caller that it must
 * signal (both sides store before they look at the other's word, in sequentially consistent order). */
#include "runtime/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "runtime/float_mode.h"

enum {
    PART_BITS = 16,
    PART_MASK = (1 << PART_BITS) - 1,
    SPINS = 2000,         /* pauses before a worker gives its time slice away */
    YIELDS = 50,          /* slices given away before it sleeps, outside begin .. end */
    YIELDS_ACTIVE = 2000, /* and inside */
    MAX_THREADS = 1024
};

struct pool {
    _Atomic uint64_t ticket, claim;
    _Atomic uint32_t pending, sleepers;
    _Atomic bool active, stop;
    void (*job)(void *user, uint32_t part);
    void *user;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    uint32_t threads, started;
    pthread_t *workers; /* from 1 on: 0 is the caller */
};

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Waits until the ticket differs from `seen`. */
static uint64_t next_ticket(struct pool *pool, uint64_t seen)
{
    for (uint32_t yields = 0;
         yields < (atomic_load_explicit(&pool->active, memory_order_relaxed) ? YIELDS_ACTIVE : YIELDS);
         yields++) {
        for (uint32_t spin = 0; spin < (yields ? 20 : SPINS); spin++) {
            uint64_t ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
            if (ticket != seen)
                return ticket;
            pause_briefly();
        }
        sched_yield();
    }
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleepers, 1);
    while (atomic_load(&pool->ticket) == seen)
        pthread_cond_wait(&pool->wake, &pool->lock);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->lock);
    return atomic_load(&pool->ticket);
}

/* The next part of the ticket's job; false: all are taken, or another job is on. */
static bool take_part(struct pool *pool, uint64_t ticket, uint32_t *part)
{
    uint64_t claim = atomic_load_explicit(&pool->claim, memory_order_acquire);
    do {
        if (claim >> PART_BITS != ticket >> PART_BITS || (claim & PART_MASK) >= (ticket & PART_MASK))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&pool->claim, &claim, claim + 1, memory_order_acq_rel,
                                                    memory_order_acquire));
    *part = (uint32_t)(claim & PART_MASK);
    return true;
}

static void run_parts(struct pool *pool, uint64_t ticket)
{
    uint32_t part;
    while (take_part(pool, ticket, &part)) {
        pool->job(pool->user, part);
        atomic_fetch_sub_explicit(&pool->pending, 1, memory_order_release);
    }
}

static void *work(void *argument)
{
    struct pool *pool = argument;
    uint64_t seen = 0;
    float_mode_enter();
    for (;;) {
        seen = next_ticket(pool, seen);
        if (atomic_load_explicit(&pool->stop, memory_order_acquire))
            return NULL;
        run_parts(pool, seen);
    }
}

/* Part 0 is the caller's already. Returns the ticket. */
static uint64_t announce(struct pool *pool, uint32_t parts)
{
    const uint64_t old = atomic_load_explicit(&pool->ticket, memory_order_relaxed);
    const uint64_t job = ((old >> PART_BITS) + 1) << PART_BITS;
    atomic_store_explicit(&pool->claim, job | 1, memory_order_release);
    atomic_store(&pool->ticket, job | parts);
    if (atomic_load(&pool->sleepers)) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->lock);
    }
    return job | parts;
}

struct pool *pool_create(uint32_t threads)
{
    threads = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
    struct pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pool->workers = calloc(threads, sizeof *pool->workers);
    pool->threads = threads;
    bool locked = pthread_mutex_init(&pool->lock, NULL) == 0;
    bool waking = locked && pthread_cond_init(&pool->wake, NULL) == 0;
    bool good = waking && pool->workers;
    pool->started = 1;
    while (good && pool->started < threads) {
        good = pthread_create(&pool->workers[pool->started], NULL, work, pool) == 0;
        pool->started += good;
    }
    if (good)
        return pool;
    if (waking) {
        pool_destroy(pool);
        return NULL;
    }
    if (locked)
        pthread_mutex_destroy(&pool->lock);
    free(pool->workers);
    free(pool);
    return NULL;
}

void pool_destroy(struct pool *pool)
{
    if (!pool)
        return;
    atomic_store(&pool->stop, true);
    announce(pool, 0);
    for (uint32_t i = 1; i < pool->started; i++)
        pthread_join(pool->workers[i], NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    free(pool->workers);
    free(pool);
}

uint32_t pool_threads(const struct pool *pool)
{
    return pool->threads;
}

void pool_begin(struct pool *pool)
{
    if (pool->threads == 1)
        return;
    atomic_store_explicit(&pool->active, true, memory_order_relaxed);
    /* An empty job: whoever sleeps is awake before the first real one. */
    if (atomic_load(&pool->sleepers))
        announce(pool, 0);
}

void pool_end(struct pool *pool)
{
    atomic_store_explicit(&pool->active, false, memory_order_relaxed);
}

void pool_run(struct pool *pool, uint32_t parts, void (*job)(void *user, uint32_t part), void *user)
{
    if (parts <= 1) {
        if (parts)
            job(user, 0);
        return;
    }
    pool->job = job;
    pool->user = user;
    atomic_store_explicit(&pool->pending, parts - 1, memory_order_relaxed);
    const uint64_t ticket = announce(pool, parts);
    job(user, 0);
    run_parts(pool, ticket);
    for (uint32_t spins = 0; atomic_load_explicit(&pool->pending, memory_order_acquire); spins++) {
        if (spins < SPINS)
            pause_briefly();
        else
            sched_yield();
    }
}

uint32_t pool_cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    uint32_t count = 0;
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        count += CPU_ISSET(i, &set) ? 1 : 0;
    return count ? count : 1;
}
