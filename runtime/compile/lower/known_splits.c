/* SPDX-License-Identifier: Apache-2.0 */
#include "known_splits.h"

#include "backend.h"
#include "kernel_source.h"
#include "planner.h"

#include <string.h>
#include <xxhash.h>

uint64_t sl_known_splits_key(const struct sl_backend *backend, const struct sl_kernel_source *source)
{
        const struct sl_node_desc *node = source->node;
        uint64_t key = XXH3_64bits_withSeed(node, sizeof(*node), (uintptr_t)backend);

        for (uint32_t i = 0; i < node->n_inputs; i++) {
                const struct sl_packed *packed = source->packed ? &source->packed[i] : NULL;
                bool constant = source->constants && source->constants[i];

                key = XXH3_64bits_withSeed(&constant, sizeof(constant), key);
                if (packed && packed->data_bytes)
                        key = XXH3_64bits_withSeed(packed->form, packed->form_bytes, key + packed->data_bytes);
        }
        return source->times ? XXH3_64bits_withSeed(source->times, sizeof(*source->times), key) : key;
}

static uint32_t least_of(uint32_t a, uint32_t b)
{
        return a < b ? a : b;
}

bool sl_known_splits_find(const struct sl_known_splits *known, uint64_t key, struct sl_provision *ret_provision)
{
        for (uint32_t i = least_of(known->n, SL_KNOWN_SPLITS); i-- > 0;) {
                if (known->rows[i].key != key)
                        continue;
                memcpy(ret_provision->splits, known->rows[i].splits, sizeof(known->rows[i].splits));
                ret_provision->seconds = known->rows[i].seconds;
                return true;
        }
        return false;
}

void sl_known_splits_put(struct sl_known_splits *known, uint64_t key, const struct sl_provision *provision)
{
        uint32_t at = known->n++ % SL_KNOWN_SPLITS;

        known->rows[at].key = key;
        memcpy(known->rows[at].splits, provision->splits, sizeof(known->rows[at].splits));
        known->rows[at].seconds = provision->seconds;
}
