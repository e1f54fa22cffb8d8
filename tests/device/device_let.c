/* SPDX-License-Identifier: Apache-2.0 */
/* Names of lets of cores. */
#include "device_let.h"

#include "base/error.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

/* One thread of each core, as some hosts number them. */
static cpu_set_t even(int n)
{
        cpu_set_t cores;

        CPU_ZERO(&cores);
        for (int i = 0; i < n; i++)
                CPU_SET(2 * i, &cores);
        return cores;
}

Test(device_let, of_all_cores_has_a_name_however_they_lie)
{
        const cpu_set_t few = even(4), many = even(32);
        struct sl_error error = {""};
        struct sl_device_let let, again;

        cr_assert_eq(sl_device_let_parse("cpu", &few, &let, &error), 0, "%s", error.text);
        cr_expect_str_eq(let.name, "cpu:0+2+4+6");
        cr_assert_eq(sl_device_let_parse("cpu", &many, &let, &error), 0, "%s", error.text);
        cr_expect_str_eq(let.name, "cpu", "it would be of more than 63 bytes");
        cr_expect_eq(let.n_cores, 32);
        cr_assert_eq(sl_device_let_parse(let.name, &many, &again, &error), 0, "%s", error.text);
        cr_expect(CPU_EQUAL(&again.cores, &let.cores));
}

Test(device_let, that_is_none_is_told_why)
{
        const cpu_set_t few = even(4);
        struct sl_error error = {""};
        struct sl_device_let let;

        cr_expect_eq(sl_device_let_parse("cpu:1", &few, &let, &error), -EINVAL);
        cr_expect_not_null(strstr(error.text, "core 1 is not among those"), "%s", error.text);
        cr_expect_eq(sl_device_let_parse("tpu", &few, &let, &error), -EINVAL);
        cr_expect_not_null(strstr(error.text, "not cpu, cpu:CORE"), "%s", error.text);
}
