/* SPDX-License-Identifier: Apache-2.0 */
#include "examples.h"

#include "node_bench.h"

#define INPUTS_MAX 9
#define ATTRS_MAX  5

#define EXAMPLES_MAX 4 /* of an operator */

struct example_attr {
        uint32_t type, id, count;
        int64_t ints[8];
        double floats[8];
};

struct example {
        uint32_t op, n_outputs;
        struct sl_tensor inputs[INPUTS_MAX];
        struct example_attr attrs[ATTRS_MAX];
};

#define T(type, ...)                                                                                                               \
        {                                                                                                                          \
                .dtype = SL_DTYPE_##type, .shape = SHAPE(__VA_ARGS__)                                                              \
        }
#define S(type)                                                                                                                    \
        {                                                                                                                          \
                .dtype = SL_DTYPE_##type, .shape = SCALAR                                                                          \
        }
#define NONE                                                                                                                       \
        {                                                                                                                          \
                .dtype = SL_DTYPE_NONE                                                                                             \
        }
#define INT(id, value)                                                                                                             \
        {                                                                                                                          \
                SL_ATTR_TYPE_INT, SL_ATTR_##id, 1, {value},                                                                        \
                {                                                                                                                  \
                        0                                                                                                          \
                }                                                                                                                  \
        }
#define REAL(id, value)                                                                                                            \
        {                                                                                                                          \
                SL_ATTR_TYPE_FLOAT, SL_ATTR_##id, 1, {0},                                                                          \
                {                                                                                                                  \
                        value                                                                                                      \
                }                                                                                                                  \
        }
#define INTS(id, ...)                                                                                                              \
        {                                                                                                                          \
                SL_ATTR_TYPE_INTS, SL_ATTR_##id, sizeof((int64_t[]){__VA_ARGS__}) / 8, {__VA_ARGS__},                              \
                {                                                                                                                  \
                        0                                                                                                          \
                }                                                                                                                  \
        }
#define REALS(id, ...)                                                                                                             \
        {                                                                                                                          \
                SL_ATTR_TYPE_FLOATS, SL_ATTR_##id, sizeof((double[]){__VA_ARGS__}) / 8, {0},                                       \
                {                                                                                                                  \
                        __VA_ARGS__                                                                                                \
                }                                                                                                                  \
        }

static const struct example examples[] = {
#include "examples.inc"
};

bool example_node(uint32_t op, uint32_t which, struct sl_node_desc *ret_node)
{
        const struct example *rows[EXAMPLES_MAX], *example;
        uint32_t n = 0;

        for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++)
                if (examples[i].op == op && n < EXAMPLES_MAX)
                        rows[n++] = &examples[i];
        if (!n)
                return false;
        example = rows[which % n];
        *ret_node = bench_node(op);
        ret_node->n_outputs = example->n_outputs;
        for (uint32_t i = 0; i < INPUTS_MAX; i++) {
                ret_node->inputs[i] = example->inputs[i];
                if (example->inputs[i].dtype != SL_DTYPE_NONE)
                        ret_node->n_inputs = i + 1;
        }
        for (uint32_t i = 0; i < ATTRS_MAX; i++) {
                const struct example_attr *attr = &example->attrs[i];

                if (attr->type == SL_ATTR_TYPE_INT)
                        sl_attrs_set_int(&ret_node->attrs, attr->id, attr->ints[0]);
                else if (attr->type == SL_ATTR_TYPE_FLOAT)
                        sl_attrs_set_float(&ret_node->attrs, attr->id, attr->floats[0]);
                else if (attr->type == SL_ATTR_TYPE_INTS)
                        sl_attrs_set_ints(&ret_node->attrs, attr->id, attr->ints, attr->count);
                else if (attr->type == SL_ATTR_TYPE_FLOATS)
                        sl_attrs_set_floats(&ret_node->attrs, attr->id, attr->floats, attr->count);
        }
        return true;
}
