/* SPDX-License-Identifier: Apache-2.0 */
#include "compile_zygote.h"
#include "starter.h"
#include "zygote.h"

#include <criterion/criterion.h>

static struct sl_compile_zygote *zygote;

struct sl_compile_zygote *starter_zygote(const char *program)
{
        if (!zygote)
                cr_assert_eq(sl_compile_zygote_new(program, &zygote), 0);
        cr_assert_eq(sl_zygote_await(sl_compile_zygote_of(zygote)), 0);
        return zygote;
}

void starter_end(void)
{
        zygote = sl_compile_zygote_free(zygote);
}
