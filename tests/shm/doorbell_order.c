/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What doorbell.pml proves holds for steps in an order. This is the order of the C: doorbell.c itself is compiled here with atomic
 * operations and system calls that write down what they do.
 *
 *     S store of a "sleeps" word   F fence of all orders   L load   W wait   R wake
 */
#include "doorbell.h"

#include "base/clock.h"
#include "pair.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

static char steps[64];

static void note(char step)
{
        size_t n = strlen(steps);

        if (n + 1 < sizeof(steps))
                steps[n] = step;
}

/* The one who is waited for answers at once. */
static long note_futex(const _Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *limit)
{
        cr_expect(operation == FUTEX_WAIT ? limit && value == *word : value == 1, "operation %d, %u", operation, value);
        note(operation == FUTEX_WAIT ? 'W' : 'R');
        if (operation == FUTEX_WAIT)
                __atomic_fetch_add((uint32_t *)word, 1, __ATOMIC_SEQ_CST);
        return 0;
}

#undef atomic_thread_fence
#undef atomic_load
#undef atomic_store
#undef atomic_store_explicit
#define atomic_thread_fence(order)                          note((order) == memory_order_seq_cst ? 'F' : 'f')
#define atomic_load(word)                                   (note('L'), __atomic_load_n((const uint32_t *)(word), __ATOMIC_SEQ_CST))
#define atomic_store(word, value)                           (note('S'), __atomic_store_n((uint32_t *)(word), value, __ATOMIC_SEQ_CST))
#define atomic_store_explicit(word, v, how)                 __atomic_store_n((uint32_t *)(word), v, how)
#define syscall(number, word, operation, value, limit, ...) note_futex(word, operation, (uint32_t)(value), limit)

#include "../../shm/doorbell.c"

static void expect_steps(const char *wanted)
{
        cr_expect_str_eq(steps, wanted, "%s, wanted %s", steps, wanted);
        memset(steps, 0, sizeof(steps));
}

Test(doorbell_order, who_publishes_has_a_fence_between_that_and_the_look_at_the_sleeper)
{
        struct pair pair = pair_new(8, 1);
        struct sl_dispatcher_line line = {0};

        sl_dispatcher_sleeps(&line);
        expect_steps("FL");
        sl_client_wake(&pair.map, -1);
        expect_steps("FL");
        pair.map.request->sleep = SL_ASLEEP_FUTEX;
        sl_client_wake(&pair.map, -1);
        expect_steps("FLR");
        pair_free(&pair);
}

Test(doorbell_order, a_sleeper_says_so_then_looks_once_more_and_only_then_waits)
{
        struct pair pair = pair_new(8, 1);
        struct sl_dispatcher_line line = {0};

        sl_dispatcher_sleep(&line);
        expect_steps("SF"); /* the caller looks */
        cr_expect_eq(sl_client_sleep(&pair.map, 0, SL_NS_PER_SECOND), 0);
        expect_steps("SFLWL");
        cr_expect_eq(sl_client_sleep(&pair.map, 0, SL_NS_PER_SECOND), 0, "there is something already");
        expect_steps("SFL");
        pair_free(&pair);
}
