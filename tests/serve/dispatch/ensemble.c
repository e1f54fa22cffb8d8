/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

/* Makes an ensemble of the fixture's models @first and @second. */
static int make(struct fixture *f, uint32_t first, uint32_t second, struct sl_error *error)
{
        struct sl_model *members[2] = {&f->models[first], &f->models[second]};
        const struct sl_ensemble_options options = {
                .name = "both", .rule = SL_RULE_MEAN, .segment_samples = 16, .samples_max = 16, .clients_max = 1};
        struct sl_ensemble *ensemble;
        int r = sl_ensemble_new(&options, members, 2, &ensemble, error);

        if (r == 0)
                sl_ensemble_free(ensemble);
        return r;
}

Test(ensemble, takes_members_whose_tensors_have_no_elements)
{
        struct fixture *f = fixture_new(2, SL_RULE_MEAN, 4, 10, 16);
        struct sl_error error;

        cr_assert_eq(make(f, 0, 1, &error), 0);
        f->info.outputs[0].shape.dims[1] = 0;
        cr_assert_eq(make(f, 0, 1, &error), 0, "%s", error.text);
        f->info.outputs[0].shape.dims[1] = 10;
        f->info.inputs[0].shape.dims[1] = 0;
        cr_assert_eq(make(f, 0, 1, &error), 0, "%s", error.text);
        fixture_free(f);
}

Test(ensemble, refuses_a_model_that_is_a_member_twice)
{
        struct fixture *f = fixture_new(2, SL_RULE_MEAN, 4, 10, 16);
        struct sl_error error;

        cr_assert_eq(make(f, 1, 1, &error), -EINVAL);
        cr_expect_not_null(strstr(error.text, "member1"), "%s", error.text);
        fixture_free(f);
}
