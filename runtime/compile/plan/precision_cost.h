/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a plan of bytes or bfloat16 faster than the same network in float32 would be, on a core of given figures? Of every product
 * that is computed so, what it should take by the core's rate for that precision, or by Winograd's algorithm where the plan has
 * that for it, beside what the fastest algorithm for the same product in float32 should take there. Windows of single channels wait
 * for memory either way and are left out. Estimates, of a run at the smallest batch; nothing is run. Pure; any thread.
 */
#pragma once

#include "target.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_plan;

struct sl_precision_cost {
        const char *precision; /* "int8", "bf16": that of most products; NULL: all are float32 */
        uint32_t products;     /* that are not float32 */
        double seconds, float_seconds;
        double rate, float_rate; /* operations/s of a product that lies in the cache */
};

/*
 * @core: of which 0 is not known: without both rates nothing is said of a precision; the rest is typical then. Return: 0; -EBADMSG
 * the steps of the plan contradict each other; -ENOMEM.
 */
int sl_precision_cost(const struct sl_plan *plan, const struct sl_core_figures *core, struct sl_precision_cost *ret_cost);

#define SL_PRECISION_TEXT_BYTES 256

/* True: it should be slower than float32; the text says so, with both figures. */
bool sl_precision_is_slower(const struct sl_precision_cost *cost, char ret_text[SL_PRECISION_TEXT_BYTES]);
