/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `precision: bf16` becomes on processors with and without products of bfloat16.
 */
#include "base/error.h"
#include "cpu/base/isa.h"
#include "lower.h"
#include "lower_options.h"
#include "network.h"

#include <criterion/criterion.h>

/* A convolution, lowered; how many of its graph's values are bfloat16. */
static uint32_t count_narrow(uint32_t precision)
{
        struct sl_lower_options options;
        struct sl_lowered *lowered;
        struct sl_error error;
        struct network net;
        uint32_t x, n = 0;

        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 16, 8, 8));
        network_output(&net, network_conv(&net, x, 16, 16, 3, 1, 1));
        network_finish(&net);
        sl_lower_options_init(&options);
        options.precision = precision;
        cr_assert_eq(sl_lower_rewrite(net.graph, &options, &error), 0, "%s", error.text);
        for (uint32_t i = 0; i < net.graph->n_values; i++)
                n += !net.graph->values[i].dead && net.graph->values[i].tensor.dtype == SL_DTYPE_BF16;
        cr_assert_eq(sl_lowered_new(net.graph, &options, &lowered, &error), 0, "%s", error.text);
        sl_lowered_free(lowered);
        network_deinit(&net);
        return n;
}

Test(precision, bf16_is_narrow_where_the_processor_multiplies_it_and_fp32_elsewhere)
{
        cr_expect_eq(count_narrow(SL_PRECISION_FP32), 0);
        if (sl_cpu_has_avx512())
                cr_expect_gt(count_narrow(SL_PRECISION_BF16), 0);
        else
                cr_expect_eq(count_narrow(SL_PRECISION_BF16), 0);
}
