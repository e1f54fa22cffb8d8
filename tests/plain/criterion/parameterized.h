/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of one parameter: a child process for each value. */
#pragma once

#include <criterion/criterion.h>
#include <stddef.h>

struct criterion_test_params {
        size_t size; /* of a value */
        void *params;
        size_t length; /* how many */
};

#define cr_make_param_array(type, values, n)                                                                                       \
        (struct criterion_test_params)                                                                                             \
        {                                                                                                                          \
                .size = sizeof(type), .params = (values), .length = (n)                                                            \
        }

#define ParameterizedTestParameters(suite_name, test_name)                                                                         \
        static struct criterion_test_params plain_values_##suite_name##_##test_name(void)

#define ParameterizedTest(parameter, suite_name, test_name, ...)                                                                   \
        static void plain_test_##suite_name##_##test_name(parameter);                                                              \
        static void plain_with_##suite_name##_##test_name(void *value)                                                             \
        {                                                                                                                          \
                plain_test_##suite_name##_##test_name(value);                                                                      \
        }                                                                                                                          \
        PLAIN_REGISTER(plain_test_##suite_name##_##test_name, .suite = #suite_name, .name = #test_name,                            \
                .run_with = plain_with_##suite_name##_##test_name, .values = plain_values_##suite_name##_##test_name,              \
                .options = {__VA_ARGS__})                                                                                          \
        static void plain_test_##suite_name##_##test_name(parameter)
