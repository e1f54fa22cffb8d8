/* SPDX-License-Identifier: Apache-2.0 */
#include "classes.h"

#include "rules.h"

#include <inttypes.h>

static int read_modes(const struct sl_node_desc *node, struct sl_class_scores *scores, struct sl_error *error)
{
        int64_t post = sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0), form = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 0);

        if (post < 0 || post >= SL_POST_LIMIT || form < 0 || form >= SL_SCORES_LIMIT)
                return sl_error_set(error, EINVAL, "attributes mode and group are %" PRId64 " and %" PRId64, post, form);
        if (form != SL_SCORES_PLAIN && scores->scores != 1)
                return sl_error_set(error, EINVAL, "%" PRId64 " scores in a row, wants 1 that stands for two", scores->scores);
        scores->post = (enum sl_post_transform)post;
        scores->form = (enum sl_score_form)form;
        scores->threshold = sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 0);
        return 0;
}

int sl_class_scores_read(const struct sl_node_desc *node, struct sl_class_scores *ret_scores, struct sl_error *error)
{
        const struct sl_tensor *x = &node->inputs[0];
        struct sl_class_scores scores = {.rows = x->shape.dims[0], .scores = x->shape.dims[1]};
        int r = sl_size_wanted(node, 0, 1, error);

        if (r)
                return r;
        if ((x->dtype != SL_DTYPE_F32 && x->dtype != SL_DTYPE_F64) || x->shape.rank != 2 || x->shape.dims[1] < 1 ||
                x->shape.dims[1] > SL_CLASS_SCORES_MAX)
                return sl_error_set(error, EINVAL, "input 0 is %s of rank %u, wants rows of 1 to %d numbers of float32 or float64",
                        sl_dtype_name(x->dtype), x->shape.rank, SL_CLASS_SCORES_MAX);
        scores.has_labels = sl_input_present(node, 1);
        if (scores.has_labels != (node->n_outputs > 1))
                return sl_error_set(error, EINVAL, "labels go in and out, or neither");
        if (scores.has_labels && node->inputs[1].dtype != SL_DTYPE_I64)
                return sl_error_set(error, EINVAL, "input 1 is %s, wants int64", sl_dtype_name(node->inputs[1].dtype));
        r = scores.has_labels ? sl_vector_of(node, 1, scores.scores == 1 ? 2 : scores.scores, error) : 0;
        r = r ? r : read_modes(node, &scores, error);
        if (!r)
                *ret_scores = scores;
        return r;
}

int sl_shape_class_scores(struct sl_node_desc *node, struct sl_error *error)
{
        struct sl_class_scores scores;
        int r = sl_class_scores_read(node, &scores, error);

        if (r)
                return r;
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = node->inputs[0].shape;
        if (scores.form != SL_SCORES_PLAIN)
                node->outputs[0].shape.dims[1] = 2;
        if (node->n_outputs > 1) {
                node->outputs[1].dtype = SL_DTYPE_I64;
                node->outputs[1].shape = (struct sl_shape){.rank = 1, .dims = {scores.rows}};
        }
        return 0;
}

int sl_pair_classes_read(const struct sl_node_desc *node, struct sl_pair_classes *ret_classes, struct sl_error *error)
{
        const struct sl_tensor *x = &node->inputs[0], *labels = &node->inputs[1];
        struct sl_pair_classes classes = {.rows = x->shape.dims[0], .classes = labels->shape.dims[0]};
        int r = sl_size_wanted(node, 1, 0, error);

        r = r ? r : sl_size_wanted(node, 0, 1, error);
        if (r)
                return r;
        if (labels->dtype != SL_DTYPE_I64 || labels->shape.rank != 1 || classes.classes < 2 ||
                classes.classes > SL_PAIR_CLASSES_MAX)
                return sl_error_set(error, EINVAL, "input 1 is %s of rank %u, wants 2 to %d labels", sl_dtype_name(labels->dtype),
                        labels->shape.rank, SL_PAIR_CLASSES_MAX);
        classes.pairs = classes.classes * (classes.classes - 1) / 2;
        if (x->dtype != SL_DTYPE_F32 || x->shape.rank != 2 || x->shape.dims[1] != classes.pairs)
                return sl_error_set(error, EINVAL, "input 0 wants rows of %" PRId64 " decisions of float32", classes.pairs);
        classes.has_probabilities = sl_input_present(node, 2);
        if (classes.has_probabilities != sl_input_present(node, 3))
                return sl_error_set(error, EINVAL, "inputs 2 and 3 come together");
        for (uint32_t i = 2; i < 4 && classes.has_probabilities && !r; i++) {
                r = sl_same_dtype(node, i, error);
                r = r ? r : sl_vector_of(node, i, classes.pairs, error);
        }
        if (!r)
                *ret_classes = classes;
        return r;
}

int64_t sl_pair_classes_rounds(const struct sl_pair_classes *classes)
{
        return classes->classes > 100 ? classes->classes : 100;
}

int sl_shape_pair_classes(struct sl_node_desc *node, struct sl_error *error)
{
        struct sl_pair_classes classes;
        int r = sl_pair_classes_read(node, &classes, error);

        if (r)
                return r;
        node->outputs[0].dtype = SL_DTYPE_F32;
        node->outputs[0].shape = (struct sl_shape){.rank = 2, .dims = {classes.rows, classes.classes}};
        if (node->n_outputs > 1) {
                node->outputs[1].dtype = SL_DTYPE_I64;
                node->outputs[1].shape = (struct sl_shape){.rank = 1, .dims = {classes.rows}};
        }
        return 0;
}
