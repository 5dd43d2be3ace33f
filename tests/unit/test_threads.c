/* Jobs run exactly once each, on any number of threads. */
#include "tests/unit/support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "ir/support/threads.h"

enum { JOBS = 1000 };

struct record {
    _Atomic unsigned runs[JOBS];
    _Atomic unsigned total;
};

static void note(void *user, uint32_t index)
{
    struct record *record = user;
    atomic_fetch_add(&record->runs[index], 1);
    atomic_fetch_add(&record->total, 1);
}

static void every_job_runs_once(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 2, 3, 7, JOBS}, threads[] = {0, 1, 2, 5, 64, UINT32_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (size_t j = 0; j < sizeof threads / sizeof *threads; j++) {
            struct record record = {0};
            assert_true(run_jobs(counts[i], threads[j], note, &record));
            assert_int_equal(record.total, counts[i]);
            for (uint32_t k = 0; k < counts[i]; k++)
                assert_int_equal(record.runs[k], 1);
        }
}

static void no_jobs_is_no_failure(void **state)
{
    (void)state;
    struct record record = {0};
    assert_true(run_jobs(0, 4, note, &record));
    assert_int_equal(record.total, 0);
}

struct meeting {
    pthread_barrier_t barrier;
    pthread_t threads[2];
};

static void meet(void *user, uint32_t index)
{
    struct meeting *meeting = user;
    meeting->threads[index] = pthread_self();
    pthread_barrier_wait(&meeting->barrier); /* ends only when the other job runs at the same time */
}

static void two_threads_run_at_the_same_time(void **state)
{
    (void)state;
    struct meeting meeting;
    assert_int_equal(pthread_barrier_init(&meeting.barrier, NULL, 2), 0);
    assert_true(run_jobs(2, 2, meet, &meeting));
    assert_false(pthread_equal(meeting.threads[0], meeting.threads[1]));
    pthread_barrier_destroy(&meeting.barrier);
}

static void the_count_follows_the_affinity(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_int_equal(cpu_count(), CPU_COUNT(&before));
    size_t first = 0;
    while (!CPU_ISSET(first, &before))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(cpu_count(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_job_runs_once),
        cmocka_unit_test(no_jobs_is_no_failure),
        cmocka_unit_test(two_threads_run_at_the_same_time),
        cmocka_unit_test(the_count_follows_the_affinity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
