/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that a process makes, and with which arguments; every other one is answered as by a kernel that lacks it
 * (ENOSYS), because that is what libraries have fallbacks for. Calls of another architecture's table end the process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <seccomp.h>

#define SL_CALL_RULE_ARGS 2

/* A call that is allowed when all comparisons hold. Several rows for one call are alternatives. */
struct sl_call_rule {
        int call;
        unsigned n_args;
        struct scmp_arg_cmp args[SL_CALL_RULE_ARGS];
};

/* A row: with any arguments; with one comparison; with two. */
#define SL_CALL(call_name)                                                                                                         \
        {                                                                                                                          \
                .call = SCMP_SYS(call_name)                                                                                        \
        }
#define SL_CALL_WITH(call_name, ...)                                                                                               \
        {                                                                                                                          \
                .call = SCMP_SYS(call_name), .n_args = 1, .args = { __VA_ARGS__ }                                                  \
        }
#define SL_CALL_WITH_BOTH(call_name, ...)                                                                                          \
        {                                                                                                                          \
                .call = SCMP_SYS(call_name), .n_args = 2, .args = { __VA_ARGS__ }                                                  \
        }

/*
 * Argument @n is @value; is it in the lower half, which is all that the kernel reads of many; is another one; has all of @bits; has
 * no bits but those in @bits; has none of @bits.
 */
#define SL_ARG_IS(n, value)     SCMP_CMP64(n, SCMP_CMP_EQ, (scmp_datum_t)(value))
#define SL_ARG_LOW_IS(n, value) SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, 0xffffffffu, (scmp_datum_t)(value))
#define SL_ARG_IS_NOT(n, value) SCMP_CMP64(n, SCMP_CMP_NE, (scmp_datum_t)(value))
#define SL_ARG_HAS(n, bits)     SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, (scmp_datum_t)(bits), (scmp_datum_t)(bits))
#define SL_ARG_WITHIN(n, bits)  SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, ~(scmp_datum_t)(bits), 0)
#define SL_ARG_WITHOUT(n, bits) SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, (scmp_datum_t)(bits), 0)

/* Does the kernel have filters, and does nobody deny them? */
bool sl_call_filter_is_there(void);

/*
 * For the calling thread, which is alone. Return: 0; -ENOSYS the kernel lacks filters, or denies them; -ENOMEM; -errno.
 */
int sl_call_filter_load(const struct sl_call_rule *rules, size_t n_rules);

/*
 * The opposite, for who runs what nobody has a list of: calls that match a row of @refused are refused (EPERM); those of
 * @passed_over say that they succeeded, and do nothing; all others go on. For all threads of the process, which gets no new
 * privileges from then on. Return: as above.
 */
int sl_call_filter_refuse(
        const struct sl_call_rule *refused, size_t n_refused, const struct sl_call_rule *passed_over, size_t n_passed_over);
