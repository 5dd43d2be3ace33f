/* Jobs are handed out by a counter, one at a time, to the caller's thread and its helpers. Threads live for
 * one call: a compile makes a handful of calls, each far longer than the start of a thread. */
#include "ir/support/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

enum { MOST_THREADS = 256 };

/* LLVM and NVRTC recurse deeply on large functions; the C library's default can be as small as 2 MiB. */
static const size_t stack_bytes = (size_t)8 << 20;

struct job_queue {
    _Atomic uint64_t next; /* passes `count` by at most the number of threads */
    uint32_t count;
    void (*job)(void *user, uint32_t index);
    void *user;
};

static void *work(void *argument)
{
    struct job_queue *queue = argument;
    uint64_t index;
    while ((index = atomic_fetch_add(&queue->next, 1)) < queue->count)
        queue->job(queue->user, (uint32_t)index);
    return NULL;
}

bool run_jobs(uint32_t count, uint32_t threads, void (*job)(void *user, uint32_t index), void *user)
{
    struct job_queue queue = {.count = count, .job = job, .user = user};
    pthread_t helpers[MOST_THREADS];
    if (!threads)
        threads = cpu_count();
    if (threads > count)
        threads = count;
    if (threads > MOST_THREADS)
        threads = MOST_THREADS;
    uint32_t wanted = threads ? threads - 1 : 0, started = 0;

    pthread_attr_t attributes;
    if (wanted && pthread_attr_init(&attributes) == 0) {
        if (pthread_attr_setstacksize(&attributes, stack_bytes) == 0)
            while (started < wanted && pthread_create(&helpers[started], &attributes, work, &queue) == 0)
                started++;
        pthread_attr_destroy(&attributes);
    }
    work(&queue);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(helpers[i], NULL);
    return started > 0 || wanted == 0;
}

uint32_t cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (uint32_t)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* more CPUs than a cpu_set_t holds */
    return online > 0 && online <= INT32_MAX ? (uint32_t)online : 1;
}
