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
        for (uint32_t i = 0; i < 2; i++) {
                const struct starling_port *ids = i ? &info->outputs[1] : &info->inputs[1];

                cr_assert_eq(ids->n_labels, 2);
                cr_assert_str_eq(ids->labels[0], "cat");
                cr_assert_str_eq(starling_label(ids, 1), "a dog");
                cr_assert_null(starling_label(ids, 2));
                cr_assert_null(starling_label(ids, -1));
        }
        cr_assert_eq(info->outputs[0].n_labels, 0);
        cr_assert_null(starling_label(&info->outputs[0], 0));
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

/* The fake runtime has other inputs and outputs of "echo" after each load. */
Test(model, one_says_whether_it_has_changed)
{
        struct starling_client *admin;
        struct starling_model *old, *other, *new;
        struct world w;

        world_enter(&w);
        cr_assert_eq(starling_model_open(w.client, "echo", &old, &w.error), 0, "%s", w.error.text);
        cr_assert_eq(starling_model_open(w.client, "pair", &other, &w.error), 0, "%s", w.error.text);
        cr_expect_eq(starling_model_changed(old), 0);
        w.options.role = STARLING_ROLE_ADMIN;
        cr_assert_eq(starling_connect(&w.options, &admin, &w.error), 0, "%s", w.error.text);
        cr_assert_eq(starling_admin_load(admin, "echo", &w.error), 0, "%s", w.error.text);
        for (int i = 0; i < 2; i++) {
                cr_expect_eq(starling_model_changed(old), 1);
                cr_expect_eq(starling_model_changed(other), 0);
        }
        cr_assert_eq(starling_model_open(w.client, "echo", &new, &w.error), 0, "%s", w.error.text);
        cr_expect_eq(starling_model_changed(new), 0);
        cr_expect_eq(starling_model_changed(old), 1);
        cr_assert_eq(starling_admin_load(admin, "echo", &w.error), 0, "%s", w.error.text);
        cr_expect_eq(starling_model_changed(new), 1);
        starling_close(admin);
        world_leave(&w);
}
