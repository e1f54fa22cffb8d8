/* SPDX-License-Identifier: Apache-2.0 */
#include "part.h"

static int64_t end_of(const struct sl_reach *reach)
{
        return reach->first + (reach->runs - 1) * reach->pitch + reach->bytes;
}

static bool is_empty(const struct sl_reach *reach)
{
        return reach->runs <= 0 || reach->bytes <= 0;
}

/* Columns of matrices with rows of one length: do they lie side by side in each row? */
static bool share_no_column(const struct sl_reach *a, const struct sl_reach *b, int64_t distance)
{
        int64_t pitch = a->pitch, apart;

        if (a->runs < 2 || b->runs < 2 || b->pitch != pitch)
                return false;
        apart = distance % pitch;
        apart += apart < 0 ? pitch : 0;
        return apart >= a->bytes && apart + b->bytes <= pitch;
}

bool sl_reaches_meet(const struct sl_reach *a, int64_t a_at, const struct sl_reach *b, int64_t b_at)
{
        if (is_empty(a) || is_empty(b) || a_at + end_of(a) <= b_at + b->first || b_at + end_of(b) <= a_at + a->first)
                return false;
        return !share_no_column(a, b, b_at + b->first - a_at - a->first);
}
