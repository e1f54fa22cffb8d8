/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models: looking them up and what they say of themselves.
 */
#include "world.h"

static void expect_unopened(struct world *w, const char *name, int code, const char *words)
{
        struct starling_model *model = NULL;

        cr_assert_eq(starling_model_open(w->client, name, &model, &w->error), -code);
        cr_assert_null(model);
        cr_assert_not_null(strstr(w->error.text, words), "\"%s\" says nothing of \"%s\"", w->error.text, words);
}

Test(model, says_its_inputs_outputs_and_limits)
{
        struct world w;
        struct starling_model *model;

        world_enter(&w);
        cr_assert_eq(starling_model_open(w.client, "pair", &model, &w.error), 0, "%s", w.error.text);

        const struct starling_model_info *info = starling_model_describe(model);

        cr_assert_str_eq(info->name, "pair");
        cr_assert_eq(info->ensemble, 1);
        cr_assert_eq(info->n_inputs, 2);
        cr_assert_eq(info->n_outputs, 2);
        cr_assert_eq(info->samples_max, 1024);
        cr_assert_eq(info->segment_samples, 128);
        cr_assert_str_eq(info->inputs[1].name, "ids");
        cr_assert_eq(info->inputs[1].dtype, STARLING_I64);
        cr_assert_eq(info->inputs[1].rank, 2);
        cr_assert_eq(info->inputs[1].dims[0], -1);
        cr_assert_eq(info->inputs[1].dims[1], 3);
        cr_assert_eq(info->inputs[1].batch_axis, 0);
        cr_assert_str_eq(info->outputs[0].name, "y");
        cr_assert_null(starling_model_close(model));
        cr_assert_eq(starling_model_open(w.client, "vector", &model, NULL), 0);
        cr_assert_eq(starling_model_describe(model)->inputs[0].batch_axis, -1);
        starling_model_close(NULL);
        world_leave(&w);
}

Test(model, one_that_is_not_ready_is_refused_with_its_cause)
{
        struct world w;

        world_enter(&w);
        expect_unopened(&w, NULL, EINVAL, "a model without a name");
        expect_unopened(&w, "resnet", ENOENT, "no model \"resnet\"; the runtime serves \"echo\", \"pair\"");
        expect_unopened(&w, "", ENOENT, "no model \"\"");
        expect_unopened(&w, "loading", EAGAIN, "still loading");
        expect_unopened(&w, "failed", EIO, "model \"failed\" cannot be served: not an ONNX file");
        world_leave(&w);
}
