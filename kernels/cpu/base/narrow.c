/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/base/narrow.h"

#include "cpu/base/bfloat16.h"
#include "cpu/base/float16.h"
#include "cpu/base/isa.h"

#include <errno.h>
#include <math.h>

uint32_t sl_narrow_wish(const struct sl_node_desc *node)
{
        int64_t dtype = sl_attrs_int(&node->attrs, SL_ATTR_WEIGHTS, SL_DTYPE_NONE);

        return dtype == SL_DTYPE_F16 || dtype == SL_DTYPE_BF16 ? (uint32_t)dtype : SL_DTYPE_NONE;
}

uint32_t sl_narrow_dtype(const struct sl_node_desc *node, uint32_t index, int64_t elements)
{
        const struct sl_tensor *weights = &node->inputs[index];
        uint32_t dtype = weights->dtype == SL_DTYPE_F32 ? sl_narrow_wish(node) : SL_DTYPE_NONE;

        if (dtype == SL_DTYPE_F16 && !sl_cpu_has_f16c())
                return SL_DTYPE_NONE;
        return (uint64_t)elements * sizeof(uint16_t) < sl_tensor_bytes(weights) ? dtype : SL_DTYPE_NONE;
}

/* What is infinite already stays so. */
static int check_range(const float *from, const uint16_t *to, int64_t n, uint16_t infinity)
{
        for (int64_t i = 0; i < n; i++)
                if ((to[i] & 0x7fff) == infinity && !isinf(from[i]))
                        return -ERANGE;
        return 0;
}

int sl_narrow(uint32_t dtype, const float *from, int64_t n, uint16_t *to)
{
        for (int64_t i = 0; i < n; i++)
                to[i] = dtype == SL_DTYPE_F16 ? sl_narrow_f16(from[i]) : sl_narrow_bf16(from[i]);
        return check_range(from, to, n, dtype == SL_DTYPE_F16 ? 0x7c00 : 0x7f80);
}
