/* SPDX-License-Identifier: Apache-2.0 */
#include "needs_text.h"

#include "base/error.h"
#include "base/value.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define COST_MAX    1e12
#define MS_MAX      3.6e6
#define SAMPLES_MAX 1048576.0

static int parse_real(const char *key, const char *text, double max, double *ret_real, struct sl_error *error)
{
        char wish[SL_WISH_BYTES];

        if (sl_value_real(text, 0, max, ret_real, wish) == 0)
                return 0;
        return sl_error_set(error, EINVAL, "%s: \"%s\" is %s", key, text, wish);
}

static int apply(struct sl_needs *needs, uint32_t *samples, const char *key, const char *value, struct sl_error *error)
{
        double real = 0;
        int r;

        if (strcmp(key, "closest") == 0 && !*value) {
                needs->closest = true;
                return 0;
        }
        if (strcmp(key, "accuracy") == 0)
                return parse_real(key, value, 1, &needs->accuracy, error);
        if (strcmp(key, "least") == 0)
                return parse_real(key, value, 1, &needs->accuracy_least, error);
        if (strcmp(key, "cost") == 0)
                return parse_real(key, value, COST_MAX, &needs->cost, error);
        if (strcmp(key, "latency_ms") == 0) {
                r = parse_real(key, value, MS_MAX, &real, error);
                needs->latency_ns = (uint64_t)(real * 1e6);
                return r;
        }
        if (strcmp(key, "samples") == 0) {
                r = parse_real(key, value, SAMPLES_MAX, &real, error);
                *samples = real < 1 ? 1 : (uint32_t)real;
                return r;
        }
        return sl_error_set(error, EINVAL, "\"%s\": a wish has accuracy, least, latency_ms, cost, samples and closest", key);
}

int sl_needs_parse(const char *text, struct sl_needs *ret_needs, uint32_t *ret_samples, struct sl_error *error)
{
        char list[SL_NEEDS_TEXT_BYTES], *rest = NULL;
        struct sl_needs needs = {0};
        uint32_t samples = 1;
        int r = 0;

        if ((size_t)snprintf(list, sizeof(list), "%s", text) >= sizeof(list))
                return sl_error_set(error, EINVAL, "a wish of more than %u bytes", SL_NEEDS_TEXT_BYTES - 1);
        for (char *key = strtok_r(list, ",", &rest); key && r == 0; key = strtok_r(NULL, ",", &rest)) {
                char *equals = strchr(key, '=');

                if (equals)
                        *equals = 0;
                r = apply(&needs, &samples, key, equals ? equals + 1 : "", error);
        }
        if (r == 0 && needs.accuracy_least > needs.accuracy)
                r = sl_error_set(error, EINVAL, "least %g is above accuracy, %g", needs.accuracy_least, needs.accuracy);
        if (r == 0) {
                *ret_needs = needs;
                *ret_samples = samples;
        }
        return r;
}
