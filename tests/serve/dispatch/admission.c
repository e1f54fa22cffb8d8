/* SPDX-License-Identifier: Apache-2.0 */
#include "admission.h"
#include "base/clock.h"
#include "fixture.h"

#include <criterion/criterion.h>
#include <errno.h>

#define INPUTS  4u
#define CLASSES 10u
#define SAMPLES 300u

struct attempt {
        struct sl_entry entry;
        struct sl_descriptor descriptors[2];
};

static struct attempt good(void)
{
        return (struct attempt){
                .entry = {.n_inputs = 1, .n_outputs = 1, .samples = SAMPLES},
                .descriptors =
                        {
                                {.bytes = SAMPLES * INPUTS * 4, .dtype = SL_DTYPE_F32, .rank = 2, .dims = {SAMPLES, INPUTS}},
                                {.offset = 8192, .bytes = SAMPLES * CLASSES * 4, .dtype = SL_DTYPE_F32, .rank = 2},
                        },
        };
}

static int admit(struct fixture *f, const struct attempt *attempt, struct sl_refused *ret_refused)
{
        struct sl_place tensors[SL_TENSORS_MAX];

        return sl_admit(
                &attempt->entry, attempt->descriptors, f->channel->regions, 1, f->ensemble, sl_clock_ns(), ret_refused, tensors);
}

Test(admission, takes_a_request_that_fits)
{
        struct fixture *f = fixture_new(2, SL_RULE_MEAN, INPUTS, CLASSES, 128);
        struct attempt attempt = good();
        struct sl_refused refused;

        cr_assert_eq(admit(f, &attempt, &refused), 0);
        fixture_free(f);
}

/* Each row breaks one field of a good request. */
#define REFUSALS(X)                                                                                                                \
        X(entry.flags = 2, EINVAL, FIELDS)                                                                                         \
        X(entry.reserved2 = 1, EINVAL, FIELDS)                                                                                     \
        X(entry.session = 1, ENOTSUP, SESSION)                                                                                     \
        X(entry.priority = SL_CLASSES, EINVAL, FIELDS)                                                                             \
        X(entry.n_inputs = 2, EINVAL, COUNTS)                                                                                      \
        X(entry.n_outputs = 0, EINVAL, COUNTS)                                                                                     \
        X(entry.samples = 0, EINVAL, DIMENSION)                                                                                    \
        X(entry.samples = 301, EINVAL, DIMENSION)                                                                                  \
        X(entry.samples = UINT32_MAX, E2BIG, SAMPLES)                                                                              \
        X(entry.deadline_ns = 1, ETIME, PASSED)                                                                                    \
        X(descriptors[0].dtype = SL_DTYPE_F64, EINVAL, TYPE)                                                                       \
        X(descriptors[0].dtype = 255, EINVAL, TYPE)                                                                                \
        X(descriptors[0].rank = 3, EINVAL, RANK)                                                                                   \
        X(descriptors[0].rank = 255, EINVAL, RANK)                                                                                 \
        X(descriptors[0].dims[1] = 5, EINVAL, DIMENSION)                                                                           \
        X(descriptors[0].dims[0] = 299, EINVAL, DIMENSION)                                                                         \
        X(descriptors[0].bytes = 4799, EINVAL, BYTES)                                                                              \
        X(descriptors[0].bytes = UINT64_MAX, EINVAL, BYTES)                                                                        \
        X(descriptors[0].offset = 32, EINVAL, ALIGNMENT)                                                                           \
        X(descriptors[0].offset = UINT64_MAX - 63, EFAULT, PLACE)                                                                  \
        X(descriptors[0].offset = 1ull << 40, EFAULT, PLACE)                                                                       \
        X(descriptors[0].region = 1, EFAULT, REGION)                                                                               \
        X(descriptors[0].region = UINT16_MAX, EFAULT, REGION)                                                                      \
        X(descriptors[1].dtype = SL_DTYPE_I32, EINVAL, TYPE)                                                                       \
        X(descriptors[1].bytes = SAMPLES * CLASSES * 4 - 1, EMSGSIZE, CAPACITY)                                                    \
        X(descriptors[1].bytes = UINT64_MAX, EFAULT, PLACE)                                                                        \
        X(descriptors[1].region = 63, EFAULT, REGION)

Test(admission, refuses_each_wrong_field_with_its_own_cause)
{
        struct fixture *f = fixture_new(2, SL_RULE_MEAN, INPUTS, CLASSES, 128);
        struct sl_refused refused = {0};

#define X(change, error, why)                                                                                                      \
        {                                                                                                                          \
                struct attempt attempt = good();                                                                                   \
                attempt.change;                                                                                                    \
                int r = admit(f, &attempt, &refused);                                                                              \
                cr_expect_eq(refused.reason.code, SL_REASON_##why, "%s: %u", #change, refused.reason.code);                        \
                cr_expect_eq(r, -error, "%s: %d", #change, r);                                                                     \
        }
        REFUSALS(X)
#undef X
        fixture_free(f);
}

Test(admission, says_how_much_a_small_output_lacks)
{
        struct fixture *f = fixture_new(2, SL_RULE_MEAN, INPUTS, CLASSES, 128);
        struct attempt attempt = good();
        struct sl_refused refused = {0};

        attempt.descriptors[1].bytes = 64;
        cr_assert_eq(admit(f, &attempt, &refused), -EMSGSIZE);
        cr_assert_eq(refused.bytes_needed, SAMPLES * CLASSES * 4);
        fixture_free(f);
}

/* A region that ends exactly with the tensor is large enough; one byte less is not. */
Test(admission, bounds_a_tensor_by_the_end_of_its_region)
{
        struct fixture *f = fixture_new(1, SL_RULE_NONE, INPUTS, CLASSES, 128);
        struct attempt attempt = good();
        struct sl_refused refused;

        attempt.descriptors[1].offset = f->channel->regions[0].bytes - attempt.descriptors[1].bytes - 32;
        attempt.descriptors[1].offset &= ~63ull;
        cr_assert_eq(admit(f, &attempt, &refused), 0);
        attempt.descriptors[1].bytes = f->channel->regions[0].bytes - attempt.descriptors[1].offset + 1;
        cr_assert_eq(admit(f, &attempt, &refused), -EFAULT);
        fixture_free(f);
}

/* Sizes of an open model are the client's claim: what does not hold in its own memory is refused before anything is made for it. */
#define FALSE_CLAIMS(X)                                                                                                            \
        X(entry.flags = 2, EINVAL)                                                                                                 \
        X(entry.samples = UINT32_MAX, E2BIG)                                                                                       \
        X(entry.deadline_ns = 1, ETIME)                                                                                            \
        X(descriptors[0].dims[1] = 1u << 30, EINVAL)                                                                               \
        X(descriptors[0].bytes = SAMPLES * INPUTS * 4 - 4, EINVAL)                                                                 \
        X(descriptors[0].dtype = 255, EINVAL)                                                                                      \
        X(descriptors[0].rank = SL_WIRE_RANK_MAX + 1, EINVAL)                                                                      \
        X(descriptors[0].offset = 1ull << 40, EFAULT)                                                                              \
        X(descriptors[0].offset = UINT64_MAX - 63, EFAULT)                                                                         \
        X(descriptors[0].offset = 32, EINVAL)                                                                                      \
        X(descriptors[0].region = 1, EFAULT)                                                                                       \
        X(descriptors[1].bytes = UINT64_MAX, EFAULT)                                                                               \
        X(descriptors[1].region = 63, EFAULT)

static int admit_open(struct fixture *f, const struct attempt *attempt)
{
        struct sl_refused refused;

        return sl_admit_open(&attempt->entry, attempt->descriptors, f->channel->regions, 1, f->ensemble, sl_clock_ns(), &refused);
}

Test(admission, tensors_of_open_sizes_have_to_be_there)
{
        struct fixture *f = fixture_new(1, SL_RULE_NONE, INPUTS, CLASSES, 128);
        struct attempt claim = good();

        cr_assert_eq(admit_open(f, &claim), 0);
        claim.descriptors[0].dims[1] = 1u << 30;
        claim.descriptors[0].bytes = (uint64_t)SAMPLES * 4 << 30;
        cr_expect_eq(admit_open(f, &claim), -EFAULT, "bytes that agree lie nowhere");
        for (uint32_t i = 0; i < SL_WIRE_RANK_MAX; i++)
                claim.descriptors[0].dims[i] = 1u << 31;
        claim.descriptors[0].rank = SL_WIRE_RANK_MAX;
        claim.descriptors[0].bytes = 0;
        cr_expect_eq(admit_open(f, &claim), -EINVAL, "a product that wraps to 0");
#define X(change, error)                                                                                                           \
        {                                                                                                                          \
                struct attempt attempt = good();                                                                                   \
                attempt.change;                                                                                                    \
                int r = admit_open(f, &attempt);                                                                                   \
                cr_expect_eq(r, -error, "%s: %d", #change, r);                                                                     \
        }
        FALSE_CLAIMS(X)
#undef X
        fixture_free(f);
}

Test(admission, an_input_may_be_left_out_where_the_model_has_a_fallback_for_it)
{
        struct fixture *f = fixture_new(2, SL_RULE_MEAN, INPUTS, CLASSES, 128);
        struct attempt attempt = good();
        struct sl_refused refused = {0};
        struct sl_place tensors[SL_TENSORS_MAX];

        attempt.descriptors[0] = (struct sl_descriptor){.batch_axis = SL_NO_BATCH_AXIS};
        cr_expect_eq(admit(f, &attempt, &refused), -EINVAL);
        cr_expect_eq(refused.reason.code, SL_REASON_TYPE);
        f->ensemble->inputs[0].port.fallback = 1;
        cr_assert_eq(sl_admit(&attempt.entry, attempt.descriptors, f->channel->regions, 1, f->ensemble, sl_clock_ns(), &refused,
                             tensors),
                0);
        cr_expect_eq(tensors[0].region, SL_NO_REGION);
        attempt.descriptors[0].bytes = 1;
        cr_expect_eq(admit(f, &attempt, &refused), -EINVAL, "what is there is looked at");
        fixture_free(f);
}

/* Samples are one run, and sizes are what the request says; what it says of bytes has to agree. */
Test(admission, an_input_of_any_size_is_as_large_as_it_says)
{
        struct fixture *f = fixture_new(1, SL_RULE_NONE, INPUTS, CLASSES, 128);
        struct sl_port *port = &f->ensemble->inputs[0].port;
        struct attempt attempt = good(), other;
        struct sl_refused refused = {0};

        attempt.entry.samples = 1;
        port->batch_axis = SL_PORT_NO_BATCH;
        port->shape.dims[0] = SL_DIM_UNKNOWN;
        f->ensemble->batchable = false;
        f->ensemble->assembly.open_inputs = true;
        cr_assert_eq(admit(f, &attempt, &refused), 0);
        other = attempt;
        other.descriptors[0].dims[0] = 7;
        cr_expect_eq(admit(f, &other, &refused), -EINVAL);
        cr_expect_eq(refused.reason.code, SL_REASON_CLAIM);
        other.descriptors[0].bytes = 7 * INPUTS * 4;
        cr_expect_eq(admit(f, &other, &refused), 0);
        other.descriptors[0].dims[0] = 0;
        other.descriptors[0].bytes = 0;
        cr_expect_eq(admit(f, &other, &refused), 0);
        other.descriptors[0].dims[1] = INPUTS + 1;
        cr_expect_eq(admit(f, &other, &refused), -EINVAL, "what is no symbol is as the model says");
        other = attempt;
        other.descriptors[0].dims[0] = UINT32_MAX;
        other.descriptors[0].bytes = (uint64_t)UINT32_MAX * INPUTS * 4;
        cr_expect_eq(admit(f, &other, &refused), -EFAULT, "so many bytes are not there");
        fixture_free(f);
}
