/* SPDX-License-Identifier: Apache-2.0 */
/* Sleep of the process of a GPU: on words of several links, or none. */
#include "gpu_sleep.h"

#include "base/clock.h"

#include <criterion/criterion.h>

#define LIMIT_NS (200 * SL_NS_PER_MS)
#define LONG_NS  (60 * SL_NS_PER_SECOND) /* longer than a machine leaves the test without a processor */
#define NAP_NS   (100 * SL_NS_PER_US)

static uint64_t sleep_ns(const _Atomic uint32_t *const *words, const uint32_t *values, uint32_t n, uint64_t limit_ns)
{
        uint64_t begun_ns = sl_clock_ns();

        sl_gpu_sleep(words, values, n, limit_ns);
        return sl_clock_ns() - begun_ns;
}

Test(sleep, ends_at_the_limit_or_for_a_word_that_has_changed)
{
        _Atomic uint32_t one = 1, other = 2;
        const _Atomic uint32_t *const words[] = {&one, &other};

        cr_expect_geq(sleep_ns(words, (uint32_t[]){1, 2}, 2, LIMIT_NS), LIMIT_NS);
        cr_expect_lt(sleep_ns(words, (uint32_t[]){1, 3}, 2, LONG_NS), LONG_NS);
}

/* Somebody waits for room, and nobody is there whose word it could be. */
Test(sleep, on_no_word_does_not_spin)
{
        for (int i = 0; i < 5; i++)
                cr_expect_geq(sleep_ns(NULL, NULL, 0, LIMIT_NS), NAP_NS);
}
