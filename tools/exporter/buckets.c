/* SPDX-License-Identifier: Apache-2.0 */
#include "buckets.h"

#include <string.h>

void buckets_fold(const struct sl_histogram *histogram, uint64_t ret_counts[BUCKETS])
{
        uint32_t from = 0;

        memset(ret_counts, 0, BUCKETS * sizeof(ret_counts[0]));
        for (uint32_t i = 0; i < BUCKETS; i++) {
                uint32_t end = i < BUCKET_BOUNDS ? sl_histogram_bucket(bucket_bound_ns(i)) + 1 : SL_HISTOGRAM_BUCKETS;

                for (; from < end; from++)
                        ret_counts[i] += sl_counter_read(&histogram->buckets[from]);
        }
}
