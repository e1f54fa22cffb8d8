/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of a processor's name: it tells apart what a cloud calls the same, and says no more than the system does.
 */
#include "base/processor.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static void expect_name(const char *cpuinfo, const char *wanted)
{
        char name[SL_PROCESSOR_BYTES];

        sl_processor_name_in(cpuinfo, name);
        cr_expect_str_eq(name, wanted);
}

Test(processor, its_name_has_family_and_model_of_the_first_that_is_listed)
{
        expect_name("processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\n"
                    "processor\t: 1\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: other\n",
                "AMD EPYC, family 25, model 17");
}

Test(processor, what_the_system_does_not_say_is_left_out)
{
        expect_name("model name\t: Old\nflags\t: fpu\n", "Old");
        expect_name("model name\t: Old\nmodel\t: 7", "Old, model 7");
        expect_name("model\t: \ncpu family: 6\n", "unknown, family 6");
        expect_name("processor\t: 0\nBogoMIPS\t: 50.00\n", "unknown");
        expect_name("", "unknown");
}

Test(processor, a_name_that_is_too_long_is_cut)
{
        char text[512], name[SL_PROCESSOR_BYTES];

        snprintf(text, sizeof(text), "model name : %0300d\ncpu family : 6\n", 1);
        sl_processor_name_in(text, name);
        cr_expect_eq(strlen(name), SL_PROCESSOR_BYTES - 1);
}

Test(processor, of_this_host_it_is_one_line)
{
        char name[SL_PROCESSOR_BYTES];

        sl_processor_name(name);
        cr_expect(name[0] && !strchr(name, '\n') && !strchr(name, ':'), "%s", name);
}
