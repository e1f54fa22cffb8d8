#include "op.h"

#include <errno.h>
#include <string.h>

static const struct {
        const char *name;
        uint32_t traits;
} ops[SL_OP_COUNT] = {
#define X(id, label, least, most, outputs, rule, bits) [SL_OP_##id] = {.name = label, .traits = bits},
        SL_OPS(X)
#undef X
};

const char *sl_op_name(uint32_t op)
{
        return op < SL_OP_COUNT ? ops[op].name : "unknown";
}

int sl_op_find(const char *name)
{
        /* Internal names have a dot, ONNX's have none. */
        if (strchr(name, '.'))
                return -ENOENT;
        for (int op = 0; op < SL_OP_COUNT; op++)
                if (!strcmp(ops[op].name, name))
                        return op;
        return -ENOENT;
}

uint32_t sl_op_traits(uint32_t op)
{
        return op < SL_OP_COUNT ? ops[op].traits : 0;
}
