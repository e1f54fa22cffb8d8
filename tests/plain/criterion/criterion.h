/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of Criterion's interface that the tests here use, for builds under ThreadSanitizer, in whose address space Debian's
 * Criterion cannot start. Each test runs in a child process of its own, one after the other. Not included where Criterion works.
 */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct plain_options {
        void (*init)(void);
        void (*fini)(void);
        double timeout; /* ignored: ctest has one */
        int signal;     /* that ends the test */
        int exit_code;
        bool disabled;
        const char *description;
};

struct plain_test {
        const char *suite, *name;
        void (*run)(void); /* NULL: options of the whole suite */
        struct plain_options options;
        struct plain_test *next;
};

void plain_register(struct plain_test *test);
void plain_check(bool fatal, bool holds, const char *what, const char *file, int line, const char *format, ...)
        __attribute__((format(printf, 6, 7)));
void plain_skip(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#define PLAIN_REGISTER(id, suite_name, test_name, function, ...)                                                                   \
        static struct plain_test id##_test = {.suite = suite_name, .name = test_name, .run = function, .options = {__VA_ARGS__}};  \
        __attribute__((constructor)) static void id##_register(void)                                                               \
        {                                                                                                                          \
                plain_register(&id##_test);                                                                                        \
        }

#define Test(suite, name, ...)                                                                                                     \
        static void plain_##suite##_##name(void);                                                                                  \
        PLAIN_REGISTER(plain_##suite##_##name, #suite, #name, plain_##suite##_##name, __VA_ARGS__)                                 \
        static void plain_##suite##_##name(void)

#define TestSuite(suite, ...) PLAIN_REGISTER(plain_##suite, #suite, "", NULL, __VA_ARGS__)

#define PLAIN_CHECK(fatal, holds, ...) plain_check(fatal, holds, #holds, __FILE__, __LINE__, " " __VA_ARGS__)

#define cr_skip(...)                         plain_skip(" " __VA_ARGS__)
#define cr_skip_test(...)                    plain_skip(" " __VA_ARGS__)
#define cr_fail(...)                         PLAIN_CHECK(false, false, __VA_ARGS__)
#define cr_assert_fail(...)                  PLAIN_CHECK(true, false, __VA_ARGS__)
#define cr_assert(condition, ...)            PLAIN_CHECK(true, !!(condition), __VA_ARGS__)
#define cr_expect(condition, ...)            PLAIN_CHECK(false, !!(condition), __VA_ARGS__)
#define cr_assert_not(condition, ...)        PLAIN_CHECK(true, !(condition), __VA_ARGS__)
#define cr_expect_not(condition, ...)        PLAIN_CHECK(false, !(condition), __VA_ARGS__)
#define cr_assert_null(value, ...)           PLAIN_CHECK(true, (value) == NULL, __VA_ARGS__)
#define cr_expect_null(value, ...)           PLAIN_CHECK(false, (value) == NULL, __VA_ARGS__)
#define cr_assert_not_null(value, ...)       PLAIN_CHECK(true, (value) != NULL, __VA_ARGS__)
#define cr_expect_not_null(value, ...)       PLAIN_CHECK(false, (value) != NULL, __VA_ARGS__)
#define cr_assert_eq(a, b, ...)              PLAIN_CHECK(true, (a) == (b), __VA_ARGS__)
#define cr_expect_eq(a, b, ...)              PLAIN_CHECK(false, (a) == (b), __VA_ARGS__)
#define cr_assert_neq(a, b, ...)             PLAIN_CHECK(true, (a) != (b), __VA_ARGS__)
#define cr_expect_neq(a, b, ...)             PLAIN_CHECK(false, (a) != (b), __VA_ARGS__)
#define cr_assert_lt(a, b, ...)              PLAIN_CHECK(true, (a) < (b), __VA_ARGS__)
#define cr_expect_lt(a, b, ...)              PLAIN_CHECK(false, (a) < (b), __VA_ARGS__)
#define cr_assert_leq(a, b, ...)             PLAIN_CHECK(true, (a) <= (b), __VA_ARGS__)
#define cr_expect_leq(a, b, ...)             PLAIN_CHECK(false, (a) <= (b), __VA_ARGS__)
#define cr_assert_gt(a, b, ...)              PLAIN_CHECK(true, (a) > (b), __VA_ARGS__)
#define cr_expect_gt(a, b, ...)              PLAIN_CHECK(false, (a) > (b), __VA_ARGS__)
#define cr_assert_geq(a, b, ...)             PLAIN_CHECK(true, (a) >= (b), __VA_ARGS__)
#define cr_expect_geq(a, b, ...)             PLAIN_CHECK(false, (a) >= (b), __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...)          PLAIN_CHECK(true, strcmp(a, b) == 0, __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...)          PLAIN_CHECK(false, strcmp(a, b) == 0, __VA_ARGS__)
#define cr_assert_str_neq(a, b, ...)         PLAIN_CHECK(true, strcmp(a, b) != 0, __VA_ARGS__)
#define cr_expect_str_neq(a, b, ...)         PLAIN_CHECK(false, strcmp(a, b) != 0, __VA_ARGS__)
#define cr_assert_arr_eq(a, b, bytes, ...)   PLAIN_CHECK(true, memcmp(a, b, bytes) == 0, __VA_ARGS__)
#define cr_expect_arr_eq(a, b, bytes, ...)   PLAIN_CHECK(false, memcmp(a, b, bytes) == 0, __VA_ARGS__)
#define cr_assert_float_eq(a, b, bound, ...) PLAIN_CHECK(true, (a) - (b) <= (bound) && (b) - (a) <= (bound), __VA_ARGS__)
#define cr_expect_float_eq(a, b, bound, ...) PLAIN_CHECK(false, (a) - (b) <= (bound) && (b) - (a) <= (bound), __VA_ARGS__)
