/* SPDX-License-Identifier: Apache-2.0 */
#include "compare.h"

#include "base/bytes.h"
#include "ref/element.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sums of subnormals differ by steps of these; below it, an activation may end with the least normal number and not at 0. */
#define SUBNORMAL_ERROR (4 * 0x1p-149)
#define SMALL_ERROR     1e-37

#define ODD_LARGEST 0.1 /* at least, where most of an output may be no number */

/* max |a - b| / max |b|, where a NaN on one side only, or an infinity, counts as infinite. */
static double relative_error_of(const double *a, const double *b, uint64_t elements, const struct test_case *test)
{
        const enum odd_kind odd = test->odd;
        const double least = odd == ODD_TINY ? SUBNORMAL_ERROR : SMALL_ERROR;
        double error = 0.0, largest = odd == ODD_NONE || odd == ODD_TINY ? 0.0 : ODD_LARGEST;

        for (uint64_t i = 0; i < elements; i++) {
                double difference = fabs(a[i] - b[i]);

                if (isnan(a[i]) != isnan(b[i]) || (!isnan(a[i]) && (isinf(a[i]) || isinf(b[i])) && a[i] != b[i]))
                        return INFINITY;
                if (test->signs && a[i] == 0 && b[i] == 0 && signbit(a[i]) != signbit(b[i]))
                        return INFINITY;
                if (isfinite(difference) && difference > least && difference > error)
                        error = difference;
                if (isfinite(b[i]) && fabs(b[i]) > largest)
                        largest = fabs(b[i]);
        }
        return error == 0.0 ? 0.0 : error / largest;
}

/* The same of floats of any width. */
static double relative_error(uint32_t dtype, const void *a, const void *b, uint64_t elements, const struct test_case *test)
{
        double *wide = malloc(2 * elements * sizeof(*wide) + 1), error;

        for (uint64_t i = 0; i < elements; i++) {
                wide[i] = sl_ref_load(a, (int64_t)i, dtype);
                wide[elements + i] = sl_ref_load(b, (int64_t)i, dtype);
        }
        error = relative_error_of(wide, wide + elements, elements, test);
        free(wide);
        return error;
}

/* Bytes that a factor in float32 has put on the other side of a tie differ by one; more than a few ties are a mistake. */
static bool bytes_are_close(const uint8_t *a, const uint8_t *b, bool has_sign, uint64_t elements)
{
        uint64_t differ = 0;

        for (uint64_t i = 0; i < elements; i++) {
                int difference = has_sign ? (int8_t)a[i] - (int8_t)b[i] : a[i] - b[i];

                if (abs(difference) > 1)
                        return false;
                differ += difference != 0;
        }
        return differ <= 2 + elements / 100;
}

/* What a type can tell apart is the least that is asked for. */
static double least_error(uint32_t dtype, const struct test_case *test)
{
        if (dtype == SL_DTYPE_BF16)
                return fmax(test->loose, 1.0 / 128);
        return dtype == SL_DTYPE_F32 ? test->loose : test->close;
}

void case_compare(const struct test_case *test, uint32_t output, const struct sl_tensor *tensor, const void *got, const void *want)
{
        uint64_t elements = sl_shape_elements(&tensor->shape);

        if (sl_attrs_find(&test->node.attrs, SL_ATTR_Y_SCALE)) {
                cr_expect(bytes_are_close(got, want, tensor->dtype == SL_DTYPE_I8, elements), "%s: output %u differs", test->line,
                        output);
        } else if (sl_dtype_is_float(tensor->dtype) && least_error(tensor->dtype, test) > 0) {
                double error = relative_error(tensor->dtype, got, want, elements, test), most = least_error(tensor->dtype, test);

                cr_expect(error <= most, "%s: output %u differs by %g, at most %g", test->line, output, error, most);
        } else {
                cr_expect(!memcmp(got, want, sl_tensor_bytes(tensor)), "%s: output %u differs", test->line, output);
        }
}
