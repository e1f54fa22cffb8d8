/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/onednn/divided_call.h"

#include "cpu/base/threads.h"
#include "kernel_source.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct sl_divided_call {
        struct sl_primitive_spec spec;
        struct sl_packed packed;
        bool has_packed;
        int64_t units;
        uint32_t count;
        struct {
                struct sl_primitive *primitive;
                struct sl_part part;
                size_t offsets[SL_ARGUMENT_COUNT];
        } parts[SL_DIVIDED_PARTS_MAX];
};

struct sl_divided_call *sl_divided_call_new(const struct sl_primitive_spec *spec, const struct sl_packed *packed)
{
        struct sl_divided_call *call = sl_primitive_units(spec) > 1 ? calloc(1, sizeof(*call)) : NULL;

        if (!call)
                return NULL;
        call->spec = *spec;
        call->has_packed = packed && packed->data_bytes;
        if (call->has_packed)
                call->packed = *packed;
        call->units = sl_primitive_units(spec);
        return call;
}

static void drop_parts(struct sl_divided_call *call)
{
        for (uint32_t i = 0; i < SL_DIVIDED_PARTS_MAX; i++)
                call->parts[i].primitive = sl_primitive_free(call->parts[i].primitive);
        call->count = 0;
}

struct sl_divided_call *sl_divided_call_free(struct sl_divided_call *call)
{
        if (call)
                drop_parts(call);
        free(call);
        return NULL;
}

int64_t sl_divided_call_units(const struct sl_divided_call *call)
{
        return call->units;
}

/* Reference code would be slower in parts than the whole is in one. */
static int make_part(struct sl_divided_call *call, uint32_t i, size_t scratch_bytes)
{
        struct sl_primitive_spec spec;
        bool slow = true;
        int r;

        sl_primitive_cut(&call->spec, &call->parts[i].part, &spec, call->parts[i].offsets);
        if (!sl_primitive_possible(&spec, &slow, NULL) || slow)
                return -ENOTSUP;
        r = sl_primitive_new(&spec, call->has_packed ? &call->packed : NULL, &call->parts[i].primitive, NULL);
        return r == 0 && sl_primitive_scratch_bytes(call->parts[i].primitive) > scratch_bytes ? -ENOTSUP : r;
}

int sl_divided_call_divide(struct sl_divided_call *call, uint32_t count, size_t scratch_bytes)
{
        int r = count <= SL_DIVIDED_PARTS_MAX && count <= call->units ? 0 : -ENOTSUP;

        drop_parts(call);
        for (uint32_t i = 0; i < count && r == 0; i++) {
                call->parts[i].part = sl_part_of(SL_AXIS_ROWS, call->units, i, count);
                r = make_part(call, i, scratch_bytes);
        }
        if (r == 0)
                call->count = count;
        else
                drop_parts(call);
        return r;
}

int sl_divided_call_run(struct sl_divided_call *call, const struct sl_part *part, void *const pointers[SL_ARGUMENT_COUNT])
{
        void *own[SL_ARGUMENT_COUNT];
        uint32_t i = 0;

        while (i < call->count && call->parts[i].part.first != part->first)
                i++;
        if (i == call->count)
                return -EIO;
        for (int k = 0; k < SL_ARGUMENT_COUNT; k++)
                own[k] = pointers[k] ? (char *)pointers[k] + call->parts[i].offsets[k] : NULL;
        sl_cpu_use_one_thread(); /* the member's own setting, which oneDNN looks at */
        return sl_primitive_run(call->parts[i].primitive, own);
}
