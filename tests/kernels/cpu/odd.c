/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers at the edges of float against `ref`: a NaN and infinities in each place, subnormals, and all of them mixed, in every
 * kernel and around every width of a vector or block.
 */
#include "case.h"

#include "cpu/base/threads.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define ALL_KINDS UINT32_MAX

Test(cpu_odd, each_element_of_a_softmax_may_be_one)
{
        sl_cpu_use_one_thread();
        for (int n = 1; n <= 70; n++) {
                char line[64];

                snprintf(line, sizeof(line), "Softmax 2x%d", n);
                case_check_odd(line, ALL_KINDS, 2 * (uint64_t)n);
                snprintf(line, sizeof(line), "LogSoftmax 2x%d", n);
                case_check_odd(line, ALL_KINDS, 2 * (uint64_t)n);
        }
        case_check_odd("Softmax 3x1000", ALL_KINDS, 40);
        case_check_odd("LogSoftmax 3x4100 loose:1e-4", ALL_KINDS, 40);
        case_check_odd("Softmax 2x5x7 axis=1", ALL_KINDS, 70);
        case_check_odd("LogSoftmax 2x5x33 axis=1", ALL_KINDS, 330);
}
