/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of Criterion's interface that the tests here use. Debian's Criterion cannot start in ThreadSanitizer's address space, and
 * its start, once a test, costs more than most tests. Each test runs in a child process of its own, one after the other, forked from
 * the loaded program.
 */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct plain_options {
        void (*init)(void);
        void (*fini)(void);
        double timeout; /* seconds until it is killed, more of them with a sanitizer; 0: the suite's, 0: never */
        int signal;     /* that ends the test */
        int exit_code;
};

struct criterion_test_params;

struct plain_test {
        const char *suite, *name;
        void (*run)(void); /* this and the next NULL: options of the whole suite */
        void (*run_with)(void *value);
        struct criterion_test_params (*values)(void);
        struct plain_options options;
        struct plain_test *next;
};

void plain_register(struct plain_test *test);
void plain_expect(const char *what, const char *file, int line, const char *format, ...) __attribute__((format(printf, 4, 5)));
void plain_assert(const char *what, const char *file, int line, const char *format, ...)
        __attribute__((noreturn, format(printf, 4, 5)));
void plain_skip(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void plain_log(const char *level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define PLAIN_REGISTER(id, ...)                                                                                                    \
        static struct plain_test id##_registered = {__VA_ARGS__};                                                                  \
        __attribute__((constructor)) static void id##_register(void)                                                               \
        {                                                                                                                          \
                plain_register(&id##_registered);                                                                                  \
        }

#define Test(suite_name, test_name, ...)                                                                                           \
        static void plain_test_##suite_name##_##test_name(void);                                                                   \
        PLAIN_REGISTER(plain_test_##suite_name##_##test_name, .suite = #suite_name, .name = #test_name,                            \
                .run = plain_test_##suite_name##_##test_name, .options = {__VA_ARGS__})                                            \
        static void plain_test_##suite_name##_##test_name(void)

#define TestSuite(suite_name, ...) PLAIN_REGISTER(plain_suite_##suite_name, .suite = #suite_name, .options = {__VA_ARGS__})

/* A message's arguments are only evaluated where the assertion fails. */
#define PLAIN_EXPECT(holds, ...)                                                                                                   \
        do {                                                                                                                       \
                if (!(holds))                                                                                                      \
                        plain_expect(#holds, __FILE__, __LINE__, " " __VA_ARGS__);                                                 \
        } while (0)
#define PLAIN_ASSERT(holds, ...)                                                                                                   \
        do {                                                                                                                       \
                if (!(holds))                                                                                                      \
                        plain_assert(#holds, __FILE__, __LINE__, " " __VA_ARGS__);                                                 \
        } while (0)

#define cr_log_info(...)                     plain_log("INFO", " " __VA_ARGS__)
#define cr_log_warn(...)                     plain_log("WARN", " " __VA_ARGS__)
#define cr_skip(...)                         plain_skip(" " __VA_ARGS__)
#define cr_skip_test(...)                    plain_skip(" " __VA_ARGS__)
#define cr_fail(...)                         PLAIN_EXPECT(false, __VA_ARGS__)
#define cr_assert_fail(...)                  PLAIN_ASSERT(false, __VA_ARGS__)
#define cr_assert(condition, ...)            PLAIN_ASSERT(condition, __VA_ARGS__)
#define cr_expect(condition, ...)            PLAIN_EXPECT(condition, __VA_ARGS__)
#define cr_assert_not(condition, ...)        PLAIN_ASSERT(!(condition), __VA_ARGS__)
#define cr_expect_not(condition, ...)        PLAIN_EXPECT(!(condition), __VA_ARGS__)
#define cr_assert_null(value, ...)           PLAIN_ASSERT((value) == NULL, __VA_ARGS__)
#define cr_expect_null(value, ...)           PLAIN_EXPECT((value) == NULL, __VA_ARGS__)
#define cr_assert_not_null(value, ...)       PLAIN_ASSERT((value) != NULL, __VA_ARGS__)
#define cr_expect_not_null(value, ...)       PLAIN_EXPECT((value) != NULL, __VA_ARGS__)
#define cr_assert_eq(a, b, ...)              PLAIN_ASSERT((a) == (b), __VA_ARGS__)
#define cr_expect_eq(a, b, ...)              PLAIN_EXPECT((a) == (b), __VA_ARGS__)
#define cr_assert_neq(a, b, ...)             PLAIN_ASSERT((a) != (b), __VA_ARGS__)
#define cr_expect_neq(a, b, ...)             PLAIN_EXPECT((a) != (b), __VA_ARGS__)
#define cr_assert_lt(a, b, ...)              PLAIN_ASSERT((a) < (b), __VA_ARGS__)
#define cr_expect_lt(a, b, ...)              PLAIN_EXPECT((a) < (b), __VA_ARGS__)
#define cr_assert_leq(a, b, ...)             PLAIN_ASSERT((a) <= (b), __VA_ARGS__)
#define cr_expect_leq(a, b, ...)             PLAIN_EXPECT((a) <= (b), __VA_ARGS__)
#define cr_assert_gt(a, b, ...)              PLAIN_ASSERT((a) > (b), __VA_ARGS__)
#define cr_expect_gt(a, b, ...)              PLAIN_EXPECT((a) > (b), __VA_ARGS__)
#define cr_assert_geq(a, b, ...)             PLAIN_ASSERT((a) >= (b), __VA_ARGS__)
#define cr_expect_geq(a, b, ...)             PLAIN_EXPECT((a) >= (b), __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...)          PLAIN_ASSERT(strcmp(a, b) == 0, __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...)          PLAIN_EXPECT(strcmp(a, b) == 0, __VA_ARGS__)
#define cr_assert_str_neq(a, b, ...)         PLAIN_ASSERT(strcmp(a, b) != 0, __VA_ARGS__)
#define cr_expect_str_neq(a, b, ...)         PLAIN_EXPECT(strcmp(a, b) != 0, __VA_ARGS__)
#define cr_expect_str_empty(a, ...)          PLAIN_EXPECT((a)[0] == '\0', __VA_ARGS__)
#define cr_expect_str_not_empty(a, ...)      PLAIN_EXPECT((a)[0] != '\0', __VA_ARGS__)
#define cr_assert_arr_eq(a, b, bytes, ...)   PLAIN_ASSERT(memcmp(a, b, bytes) == 0, __VA_ARGS__)
#define cr_expect_arr_eq(a, b, bytes, ...)   PLAIN_EXPECT(memcmp(a, b, bytes) == 0, __VA_ARGS__)
#define cr_expect_arr_neq(a, b, bytes, ...)  PLAIN_EXPECT(memcmp(a, b, bytes) != 0, __VA_ARGS__)
#define cr_assert_float_eq(a, b, bound, ...) PLAIN_ASSERT((a) - (b) <= (bound) && (b) - (a) <= (bound), __VA_ARGS__)
#define cr_expect_float_eq(a, b, bound, ...) PLAIN_EXPECT((a) - (b) <= (bound) && (b) - (a) <= (bound), __VA_ARGS__)
