/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Support vector machines: a kernel between each row and each support vector, then a linear map of that. The decision between two
 * classes is a column of the map, which has the coefficients of the vectors of both.
 */
#include "import/ml.h"

#include "base/cleanup.h"

#include <inttypes.h>
#include <string.h>

enum kernel { KERNEL_LINEAR, KERNEL_POLY, KERNEL_RBF, KERNEL_SIGMOID };

struct machine {
        enum kernel kernel;
        float gamma, offset, degree;
        const float *coefficients, *vectors, *rho;
        size_t n_coefficients, n_vector_elements, n_rho;
        int64_t features, n_vectors;
        uint32_t rows;
};

static void read_machine(struct sl_expansion *x, struct machine *m)
{
        struct sl_attrs attrs = {0};
        const float *parameters;
        size_t n;

        m->rows = sl_ml_rows(x, false);
        m->features = sl_expand_shape(x, m->rows)->rank == 2 ? sl_expand_shape(x, m->rows)->dims[1] : 0;
        if (x->result == 0)
                x->result = sl_onnx_word(x->im, x->node, "kernel_type", "LINEAR POLY RBF SIGMOID", SL_ATTR_MODE, &attrs);
        m->kernel = (enum kernel)sl_attrs_int(&attrs, SL_ATTR_MODE, KERNEL_LINEAR);
        parameters = sl_ml_floats(x, "kernel_params", &n);
        if (n >= 3) {
                m->gamma = parameters[0];
                m->offset = parameters[1];
                m->degree = parameters[2];
        } else if (m->kernel != KERNEL_LINEAR) {
                sl_expand_wrong(x, "its kernel has no parameters");
        }
        m->coefficients = sl_ml_floats(x, "coefficients", &m->n_coefficients);
        m->vectors = sl_ml_floats(x, "support_vectors", &m->n_vector_elements);
        m->rho = sl_ml_floats(x, "rho", &m->n_rho);
        if (!m->n_rho || !m->n_coefficients)
                sl_expand_wrong(x, "it has no coefficients or no rho");
        else if (m->features < 0)
                sl_expand_unsettled(x, "how many features there are is not known");
        else if (!m->features)
                sl_expand_misfit(x, "its rows have no features");
}

/* a times b transposed, plus an offset, which may be absent. */
static uint32_t product(struct sl_expansion *x, uint32_t a, uint32_t b, uint32_t offset, bool transposed)
{
        struct sl_draft draft = {.op = SL_OP_GEMM, .n_inputs = offset == SL_VALUE_NONE ? 2 : 3, .inputs = {a, b, offset}};

        if (x->result == 0)
                x->result = sl_attrs_set_int(&draft.attrs, SL_ATTR_TRANS_B, transposed);
        return sl_expand(x, &draft);
}

/* [N, vectors]. */
static uint32_t kernel_of(struct sl_expansion *x, const struct machine *m)
{
        uint32_t vectors, k;

        if (x->result == 0 && m->n_vector_elements != (uint64_t)m->n_vectors * (uint64_t)m->features)
                sl_expand_misfit(x, "its support vectors are not as long as a row");
        vectors = sl_ml_constant(x, SL_DTYPE_F32, m->vectors, (int64_t[]){m->n_vectors, m->features}, 2);
        if (m->kernel == KERNEL_RBF) {
                k = sl_expand_binary(x, SL_OP_SQUARED_DISTANCE, m->rows, vectors);
                return sl_expand_unary(x, SL_OP_EXP, sl_expand_times(x, k, -(double)m->gamma));
        }
        k = product(x, m->rows, vectors, SL_VALUE_NONE, true);
        if (m->kernel == KERNEL_LINEAR)
                return k;
        k = sl_expand_plus(x, sl_expand_times(x, k, (double)m->gamma), sl_expand_number(x, (double)m->offset, SL_DTYPE_F32));
        if (m->kernel == KERNEL_SIGMOID)
                return sl_expand_unary(x, SL_OP_TANH, k);
        return sl_expand_binary(x, SL_OP_POW, k, sl_expand_number(x, (double)m->degree, SL_DTYPE_F32));
}

/* 1 above 0, -1 elsewhere. */
static uint32_t sign_of(struct sl_expansion *x, uint32_t y)
{
        uint32_t above =
                sl_expand_cast(x, sl_expand_binary(x, SL_OP_GREATER, y, sl_expand_number(x, 0, SL_DTYPE_F32)), SL_DTYPE_F32);

        return sl_expand_plus(x, sl_expand_times(x, above, 2), sl_expand_number(x, -1, SL_DTYPE_F32));
}

SL_ML(svm_regressor)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        struct machine m = {0};
        uint32_t y, coefficients;
        int64_t n;

        (void)draft;
        read_machine(&x, &m);
        m.n_vectors = sl_expand_int(&x, "n_supports", 0);
        n = m.n_vectors > 0 ? m.n_vectors : m.features;
        if (m.n_coefficients != (size_t)n && m.n_vectors > 0)
                sl_expand_wrong(&x, "its coefficients are not one for each support vector");
        else if (m.n_coefficients != (size_t)n)
                sl_expand_misfit(&x, "its coefficients are not one for each feature");
        coefficients = sl_ml_constant(&x, SL_DTYPE_F32, m.coefficients, (int64_t[]){1, n}, 2);
        y = m.n_vectors > 0 ? kernel_of(&x, &m) : m.rows;
        y = product(&x, y, coefficients, sl_ml_vector(&x, SL_DTYPE_F32, m.rho, m.n_rho ? 1 : 0), true);
        if (sl_expand_int(&x, "one_class", 0))
                y = sign_of(&x, y);
        sl_expand_output(&x, 0, sl_ml_post(&x) == SL_POST_PROBIT ? sl_ml_transform(&x, y, SL_POST_PROBIT) : y);
        return sl_expansion_end(&x);
}

/* Decisions between each two classes as a map [vectors, pairs] of the kernel. */
static float *pair_map(const struct machine *m, const int64_t *per_class, size_t n_classes)
{
        size_t n_pairs = n_classes * (n_classes - 1) / 2, pair = 0, first_i = 0;
        float *map = calloc((size_t)m->n_vectors * n_pairs + 1, sizeof(*map));

        for (size_t i = 0; map && i < n_classes; first_i += (size_t)per_class[i++]) {
                size_t first_j = first_i + (size_t)per_class[i];

                for (size_t j = i + 1; j < n_classes; first_j += (size_t)per_class[j++], pair++) {
                        for (size_t v = first_i; v < first_i + (size_t)per_class[i]; v++)
                                map[v * n_pairs + pair] = m->coefficients[(j - 1) * (size_t)m->n_vectors + v];
                        for (size_t v = first_j; v < first_j + (size_t)per_class[j]; v++)
                                map[v * n_pairs + pair] = m->coefficients[i * (size_t)m->n_vectors + v];
                }
        }
        return map;
}

/* [N, pairs]. */
static uint32_t decisions_of(struct sl_expansion *x, const struct machine *m, const int64_t *per_class, size_t n_classes)
{
        size_t n_pairs = n_classes * (n_classes - 1) / 2;
        SL_CLEANUP(sl_cleanup_free) float *map = NULL;
        uint32_t kernel = kernel_of(x, m), constant;

        if (x->result == 0 && (m->n_coefficients != (n_classes - 1) * (size_t)m->n_vectors || m->n_rho != n_pairs))
                sl_expand_wrong(x, "its coefficients or rho are not one for each two classes");
        if (x->result == 0 && (uint64_t)m->n_vectors * n_pairs > x->im->limits->tensor_bytes / sizeof(*map))
                x->result = sl_error_set(x->im->error, E2BIG, "node \"%s\" (%s): %zu classes and %lld support vectors are too many",
                        x->node->name, x->node->proto->op_type, n_classes, (long long)m->n_vectors);
        if (x->result == 0) {
                map = pair_map(m, per_class, n_classes);
                x->result = map ? 0 : -ENOMEM;
        }
        constant = sl_ml_constant(x, SL_DTYPE_F32, map, (int64_t[]){m->n_vectors, (int64_t)n_pairs}, 2);
        return product(x, kernel, constant, sl_ml_vector(x, SL_DTYPE_F32, m->rho, n_pairs), false);
}

/* Probabilities or votes, and the label, which output 0 becomes. */
static uint32_t vote(struct sl_expansion *x, uint32_t decisions, const struct sl_ml_classes *classes, bool *ret_probabilities)
{
        struct sl_draft draft = {.op = SL_OP_PAIR_CLASSES, .n_inputs = 2, .n_outputs = 2, .inputs = {decisions}};
        const struct sl_tensor nothing = {0};
        uint32_t outputs[2] = {SL_VALUE_NONE, SL_VALUE_NONE};
        size_t n_pairs = classes->n_labels * (classes->n_labels - 1) / 2, n_a, n_b;
        const float *a = sl_ml_floats(x, "prob_a", &n_a), *b = sl_ml_floats(x, "prob_b", &n_b);

        *ret_probabilities = n_a > 0;
        if ((n_a && n_a != n_pairs) || n_a != n_b)
                sl_expand_wrong(x, "its prob_a or prob_b are not one for each two classes");
        draft.inputs[1] = sl_ml_vector(x, SL_DTYPE_I64, classes->labels, classes->n_labels);
        if (n_a) {
                draft.inputs[2] = sl_ml_vector(x, SL_DTYPE_F32, a, n_a);
                draft.inputs[3] = sl_ml_vector(x, SL_DTYPE_F32, b, n_b);
                draft.n_inputs = 4;
        }
        for (uint32_t i = 0; i < 2 && x->result == 0; i++)
                x->result = sl_graph_add_value(x->im->graph, x->node->name, SL_VALUE_COMPUTED, &nothing, &outputs[i]);
        if (x->result == 0)
                x->result = sl_import_emit(x->im, x->node, &draft, outputs);
        sl_ml_output(x, 0, outputs[1], classes->vocabulary);
        return outputs[0];
}

/* One decision goes out as two: as it is and negated; as a share where it is transformed. */
static uint32_t two_scores(struct sl_expansion *x, uint32_t decisions, enum sl_post_transform post)
{
        struct sl_draft draft = {.op = SL_OP_CLASS_SCORES, .n_inputs = 1, .inputs = {decisions}};

        if (x->result == 0)
                x->result = sl_attrs_set_int(&draft.attrs, SL_ATTR_MODE, post);
        if (x->result == 0)
                x->result =
                        sl_attrs_set_int(&draft.attrs, SL_ATTR_GROUP, post == SL_POST_NONE ? SL_SCORES_SIGNED : SL_SCORES_SHARE);
        return sl_expand(x, &draft);
}

static void by_vectors(
        struct sl_expansion *x, const struct machine *m, const int64_t *per_class, const struct sl_ml_classes *classes)
{
        uint32_t decisions = decisions_of(x, m, per_class, classes->n_labels), scores;
        bool have_probabilities;

        scores = vote(x, decisions, classes, &have_probabilities);
        if (have_probabilities || classes->n_labels > 2)
                scores = sl_ml_transform(x, have_probabilities ? scores : decisions, classes->post);
        else
                scores = two_scores(x, decisions, classes->post);
        sl_expand_output(x, 1, scores);
}

/* Without support vectors the coefficients are those of a linear model for each class. */
static void by_features(struct sl_expansion *x, const struct machine *m, const struct sl_ml_classes *classes)
{
        int64_t n = (int64_t)classes->n_labels;
        uint32_t coefficients, scores;

        if (n < 2)
                sl_expand_refuse(x, "it has one label");
        if (x->result == 0 && m->n_coefficients != (uint64_t)n * (uint64_t)m->features)
                sl_expand_misfit(x, "its coefficients are not one for each feature and class");
        coefficients = sl_ml_constant(x, SL_DTYPE_F32, m->coefficients, (int64_t[]){n, m->features}, 2);
        scores = product(x, m->rows, coefficients, sl_ml_vector(x, SL_DTYPE_F32, m->rho, m->n_rho ? 1 : 0), true);
        sl_ml_classify(x, scores, classes);
}

SL_ML(svm_classifier)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        struct sl_ml_classes classes = {.post = sl_ml_post(&x)};
        struct machine m = {0};
        const int64_t *per_class;
        size_t n_per_class;

        (void)draft;
        read_machine(&x, &m);
        sl_ml_labels(&x, "classlabels_ints", "classlabels_strings", &classes);
        per_class = sl_ml_ints(&x, "vectors_per_class", &n_per_class);
        for (size_t i = 0; i < n_per_class && x.result == 0; i++) {
                if (per_class[i] < 0 || per_class[i] > INT32_MAX || m.n_vectors + per_class[i] > INT32_MAX)
                        sl_expand_wrong(&x,
                                "element %zu of vectors_per_class is %" PRId64 ", wants 0 or more, and 2^31 - 1 together", i,
                                per_class[i]);
                m.n_vectors += per_class[i];
        }
        if (m.n_vectors && (n_per_class != classes.n_labels || n_per_class < 2 || n_per_class > SL_PAIR_CLASSES_MAX))
                sl_expand_wrong(&x, "vectors_per_class has %zu elements for %zu classes, wants one for each of 2 to %d",
                        n_per_class, classes.n_labels, SL_PAIR_CLASSES_MAX);
        if (x.result == 0 && m.n_vectors)
                by_vectors(&x, &m, per_class, &classes);
        else if (x.result == 0)
                by_features(&x, &m, &classes);
        return sl_expansion_end(&x);
}
