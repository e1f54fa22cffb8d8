/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include <inttypes.h>

static int check_list(const struct sl_node_desc *node, uint32_t index, uint32_t dtype, struct sl_error *error)
{
        const struct sl_tensor *list = &node->inputs[index];

        if (list->dtype != dtype || list->shape.rank != 1)
                return sl_error_set(error, EINVAL, "input %u is %s of rank %u, wants a vector of %s", index,
                        sl_dtype_name(list->dtype), list->shape.rank, sl_dtype_name(dtype));
        return 0;
}

static int check_grams(const struct sl_node_desc *node, struct sl_error *error)
{
        int64_t least = sl_attrs_int(&node->attrs, SL_ATTR_MIN_GRAM, 0), most = sl_attrs_int(&node->attrs, SL_ATTR_MAX_GRAM, 0);
        int64_t skips = sl_attrs_int(&node->attrs, SL_ATTR_MAX_SKIP, 0), counts = node->inputs[2].shape.dims[0];

        if (least < 1 || most < least || (sl_dim_known(counts) && most > counts))
                return sl_error_set(error, EINVAL, "grams of %" PRId64 " to %" PRId64 " items, of which input 2 knows %" PRId64,
                        least, most, counts);
        if (skips < 0 || skips > INT32_MAX)
                return sl_error_set(error, EINVAL, "attribute max_skip_count is %" PRId64 ", outside [0,%d]", skips, INT32_MAX);
        return 0;
}

int sl_shape_ngram(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        int64_t length = sl_attrs_int(&node->attrs, SL_ATTR_LENGTH, 0), mode = sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0);
        struct sl_shape *out = &node->outputs[0].shape;
        int r = 0;

        if (node->inputs[0].dtype != SL_DTYPE_I32 && node->inputs[0].dtype != SL_DTYPE_I64)
                return sl_error_set(error, EINVAL, "input 0 is %s, wants int32 or int64", sl_dtype_name(node->inputs[0].dtype));
        if (in->rank < 1 || in->rank > 2)
                return sl_error_set(error, EINVAL, "input 0 has rank %u, wants 1 or 2", in->rank);
        if (length < 1 || length > INT32_MAX || mode < 0 || mode > 2)
                return sl_error_set(error, EINVAL, "attributes length and mode are %" PRId64 " and %" PRId64, length, mode);
        for (uint32_t i = 1; i < 4 && !r; i++)
                r = check_list(node, i, SL_DTYPE_I64, error);
        if (!r && sl_input_present(node, 4))
                r = check_list(node, 4, SL_DTYPE_F32, error);
        r = r ? r : check_grams(node, error);
        if (r)
                return r;
        node->outputs[0].dtype = SL_DTYPE_F32;
        *out = *in;
        out->dims[in->rank - 1] = length;
        return 0;
}
