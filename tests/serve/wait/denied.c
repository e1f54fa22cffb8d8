/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts that deny io_uring: the wait falls back, and says by what it was denied when io_uring is asked for. */
#include "base/error.h"
#include "wait.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <seccomp.h>
#include <string.h>

static void deny_io_uring(int code)
{
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

        cr_assert(filter);
        /* By number: libseccomp 2.5.4 knows the name, older ones may not. */
        cr_assert_eq(seccomp_rule_add(filter, SCMP_ACT_ERRNO((uint32_t)code), 425, 0), 0);
        cr_assert_eq(seccomp_load(filter), 0);
        seccomp_release(filter);
}

static int codes[] = {EPERM, ENOSYS};

ParameterizedTestParameters(wait_denied, any_kind_falls_back_to_epoll)
{
        return cr_make_param_array(int, codes, 2);
}

ParameterizedTest(int *code, wait_denied, any_kind_falls_back_to_epoll)
{
        struct sl_wait *wait = NULL;
        struct sl_wait_event event;

        deny_io_uring(*code);
        cr_assert_eq(sl_wait_new(SL_WAIT_ANY, &wait, NULL), 0);
        cr_assert_str_eq(sl_wait_name(wait), "epoll");
        cr_assert_eq(sl_wait_post(NULL, wait, 3), 0);
        cr_assert_eq(sl_wait_for(wait, &event, 1, 1000000000), 1);
        cr_assert_eq(event.token, 3);
        sl_wait_free(wait);
}

ParameterizedTestParameters(wait_denied, io_uring_asked_for_is_refused_with_the_cause)
{
        return cr_make_param_array(int, codes, 2);
}

ParameterizedTest(int *code, wait_denied, io_uring_asked_for_is_refused_with_the_cause)
{
        struct sl_wait *wait = NULL;
        struct sl_error error = {""};

        deny_io_uring(*code);
        cr_assert_eq(sl_wait_new(SL_WAIT_URING, &wait, &error), -*code);
        cr_assert_null(wait);
        cr_assert(strstr(error.text, "io_uring: "), "%s", error.text);
        cr_assert(strstr(error.text, "seccomp"), "%s", error.text);
}
