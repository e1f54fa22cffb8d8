/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/base/operator.h"

#include <string.h>

/* How a form begins; oneDNN's are descriptors of a fixed size. */
struct form {
        char mark[8], name[20];
        uint32_t narrow; /* SL_DTYPE_F16, SL_DTYPE_BF16; NONE: float32 */
        int64_t dims[4];
};

static const char form_mark[8] = "own form";

void sl_cpu_form_narrow(struct sl_packed *ret_packed, const char *name, const int64_t dims[4], int64_t elements, uint32_t narrow)
{
        struct form form = {0};

        memcpy(form.mark, form_mark, sizeof(form_mark));
        strncpy(form.name, name, sizeof(form.name) - 1);
        memcpy(form.dims, dims, sizeof(form.dims));
        form.narrow = narrow;
        *ret_packed = (struct sl_packed){.data_bytes = (uint64_t)elements * sl_dtype_bytes(narrow ? narrow : SL_DTYPE_F32),
                .form_bytes = sizeof(form)};
        memcpy(ret_packed->form, &form, sizeof(form));
}

void sl_cpu_form(struct sl_packed *ret_packed, const char *name, const int64_t dims[4], int64_t floats)
{
        sl_cpu_form_narrow(ret_packed, name, dims, floats, SL_DTYPE_NONE);
}

bool sl_cpu_form_is_own(const struct sl_packed *packed)
{
        return packed->data_bytes && packed->form_bytes == sizeof(struct form) &&
               !memcmp(packed->form, form_mark, sizeof(form_mark));
}
