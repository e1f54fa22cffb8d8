/* SPDX-License-Identifier: Apache-2.0 */
/* Linear models: a product with the rows of coefficients, which a Gemm is. */
#include "import/ml.h"

#include "shape/trees.h"

#include <inttypes.h>

/* @n rows of coefficients over the features of @rows, and an offset for each, which may be absent. */
static uint32_t product(struct sl_expansion *x, uint32_t rows, size_t n)
{
        struct sl_draft draft = {.op = SL_OP_GEMM, .n_inputs = 2, .inputs = {rows}};
        int64_t features = sl_expand_shape(x, rows)->rank == 2 ? sl_expand_shape(x, rows)->dims[1] : 0;
        size_t n_coefficients, n_intercepts;
        const float *coefficients = sl_ml_floats(x, "coefficients", &n_coefficients);
        const float *intercepts = sl_ml_floats(x, "intercepts", &n_intercepts);

        if (features < 0)
                sl_expand_unsettled(x, "how many features there are is not known");
        if (x->result == 0 &&
                (!n || n > SL_TREE_TARGETS_MAX || features < 1 || n_coefficients % n || n_coefficients / n != (size_t)features))
                sl_expand_misfit(x, "its coefficients are not one for each feature and row");
        if (x->result == 0 && n_intercepts && n_intercepts != n)
                sl_expand_wrong(x, "its intercepts are not one for each row of coefficients");
        draft.inputs[1] = sl_ml_constant(x, SL_DTYPE_F32, coefficients, (int64_t[]){(int64_t)n, features}, 2);
        if (n_intercepts) {
                draft.inputs[2] = sl_ml_vector(x, SL_DTYPE_F32, intercepts, n);
                draft.n_inputs = 3;
        }
        if (x->result == 0)
                x->result = sl_attrs_set_int(&draft.attrs, SL_ATTR_TRANS_B, 1);
        return sl_expand(x, &draft);
}

SL_ML(linear_regressor)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        int64_t targets = sl_expand_int(&x, "targets", 1);
        enum sl_post_transform post = sl_ml_post(&x);
        uint32_t scores;

        (void)draft;
        if (targets < 1)
                sl_expand_wrong(&x, "targets is %" PRId64 ", wants 1 or more", targets);
        scores = product(&x, sl_ml_rows(&x, false), (size_t)targets);
        /* A single target is transformed by PROBIT alone, as ONNX Runtime does it. */
        sl_expand_output(&x, 0, sl_ml_transform(&x, scores, targets == 1 && post != SL_POST_PROBIT ? SL_POST_NONE : post));
        return sl_expansion_end(&x);
}

/* As many rows of coefficients as labels, or one for two labels, whose sign decides. */
SL_ML(linear_classifier)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        struct sl_ml_classes classes = {.post = sl_ml_post(&x)};
        uint32_t rows = sl_ml_rows(&x, false);
        size_t n_coefficients, n;

        (void)draft;
        sl_ml_labels(&x, "classlabels_ints", "classlabels_strings", &classes);
        sl_ml_floats(&x, "coefficients", &n_coefficients);
        n = classes.n_labels;
        if (x.result == 0 && n == 2 && n_coefficients == (size_t)sl_expand_shape(&x, rows)->dims[1]) {
                classes.form = SL_SCORES_SHARE;
                n = 1;
        }
        if (x.result == 0 && n < 2 && classes.n_labels < 2)
                sl_expand_wrong(&x, "it has one label");
        sl_ml_classify(&x, product(&x, rows, n), &classes);
        return sl_expansion_end(&x);
}
