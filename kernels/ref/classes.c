/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of classes by the transforms of ai.onnx.ml, and classes by decisions between each two of them. */
#include "shape/classes.h"
#include "element.h"
#include "kernels.h"
#include "pace.h"

#include <math.h>
#include <string.h>

static double logistic(double x)
{
        double share = 1 / (1 + exp(-fabs(x)));

        return x < 0 ? 1 - share : share;
}

/* By the approximation that the domain has for it. Source: S. Winitzki, A handy approximation for the error function (2008). */
static double probit(double p)
{
        double x = 2 * p - 1, l = log((1 - x) * (1 + x)), v = 2 / (M_PI * 0.147) + 0.5 * l;

        return M_SQRT2 * copysign(sqrt(sqrt(v * v - l / 0.147) - v), x);
}

/* Scores of 0 stay 0 where @zeros says so. */
static void softmax(double *row, int64_t n, bool zeros, struct sl_pace *pace)
{
        double most = -INFINITY, sum = 0;

        for (int64_t i = 0; i < n && sl_pace_on(pace, 1); i++)
                most = fmax(most, row[i]);
        for (int64_t i = 0; i < n && sl_pace_on(pace, 1); i++) {
                row[i] = zeros && fabs(row[i]) <= 1e-7 ? row[i] * exp(-most) : exp(row[i] - most);
                sum += row[i];
        }
        for (int64_t i = 0; i < n && sl_pace_on(pace, 1); i++)
                row[i] /= sum;
}

static void transform(double *row, int64_t n, enum sl_post_transform post, struct sl_pace *pace)
{
        if (post == SL_POST_SOFTMAX || post == SL_POST_SOFTMAX_ZERO)
                softmax(row, n, post == SL_POST_SOFTMAX_ZERO, pace);
        for (int64_t i = 0; i < n && post == SL_POST_LOGISTIC && sl_pace_on(pace, 1); i++)
                row[i] = logistic(row[i]);
        for (int64_t i = 0; i < n && post == SL_POST_PROBIT && sl_pace_on(pace, 1); i++)
                row[i] = probit(row[i]);
}

/* One score that stands for two classes. */
static void split(double score, const struct sl_class_scores *s, double row[2])
{
        row[0] = s->form == SL_SCORES_SHARE ? 1 - score : -score;
        row[1] = score;
        if (s->post == SL_POST_LOGISTIC) {
                row[0] = logistic(-score);
                row[1] = logistic(score);
        }
        if (s->post == SL_POST_PROBIT) {
                row[1] = probit(score);
                row[0] = -row[1];
        }
}

static int64_t largest(const double *row, int64_t n, struct sl_pace *pace)
{
        int64_t best = 0;

        for (int64_t i = 1; i < n && sl_pace_on(pace, 1); i++)
                best = row[i] > row[best] ? i : best;
        return best;
}

static int64_t choose(const double *row, const struct sl_class_scores *s, struct sl_pace *pace)
{
        if (s->scores > 1)
                return largest(row, s->scores, pace);
        return row[0] > s->threshold;
}

int sl_ref_class_scores(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        uint32_t dtype = node->inputs[0].dtype;
        double *row = binding->scratch;
        struct sl_class_scores s;
        int r = sl_class_scores_read(node, &s, NULL);
        int64_t made = s.form == SL_SCORES_PLAIN ? s.scores : 2;

        for (int64_t i = 0; i < s.rows && !r && sl_pace_on(binding->pace, 1); i++) {
                for (int64_t k = 0; k < s.scores && sl_pace_on(binding->pace, 1); k++)
                        row[k] = sl_ref_load(binding->inputs[0], i * s.scores + k, dtype);
                if (s.has_labels)
                        ((int64_t *)binding->outputs[1])[i] = ((const int64_t *)binding->inputs[1])[choose(row, &s, binding->pace)];
                if (s.form != SL_SCORES_PLAIN)
                        split(row[0], &s, row);
                else
                        transform(row, s.scores, s.post, binding->pace);
                for (int64_t k = 0; k < made && sl_pace_on(binding->pace, 1); k++)
                        sl_ref_store(binding->outputs[0], i * made + k, dtype, row[k]);
        }
        return r;
}

size_t sl_ref_scratch_class_scores(const struct sl_node_desc *node)
{
        return (size_t)(node->inputs[0].shape.dims[1] + 1) * sizeof(double);
}

struct coupling {
        int64_t n;
        double *shares, *q, *qp, *p; /* shares[i][j]: of class i among i and j */
        struct sl_pace *pace;
};

static void start_coupling(const struct coupling *c)
{
        for (int64_t i = 0; i < c->n && sl_pace_on(c->pace, (uint64_t)c->n); i++) {
                c->p[i] = 1.0 / (double)c->n;
                c->q[i * c->n + i] = 0;
                for (int64_t j = 0; j < c->n; j++) {
                        double other = c->shares[j * c->n + i];

                        if (j == i)
                                continue;
                        c->q[i * c->n + i] += other * other;
                        c->q[i * c->n + j] = -other * c->shares[i * c->n + j];
                }
        }
}

/* Q times p, and p times that. */
static double apply(const struct coupling *c)
{
        double product = 0;

        for (int64_t i = 0; i < c->n && sl_pace_on(c->pace, (uint64_t)c->n); i++) {
                c->qp[i] = 0;
                for (int64_t j = 0; j < c->n; j++)
                        c->qp[i] += c->q[i * c->n + j] * c->p[j];
                product += c->p[i] * c->qp[i];
        }
        return product;
}

/* 0 where all is NaN, which leaves the classes equal. */
static double error_of(const struct coupling *c, double product)
{
        double most = 0;

        for (int64_t i = 0; i < c->n; i++)
                most = fmax(most, fabs(c->qp[i] - product));
        return most;
}

/*
 * The probabilities that agree best with the shares of each two classes. Source: T.-F. Wu, C.-J. Lin, R. C. Weng, Probability
 * Estimates for Multi-class Classification by Pairwise Coupling (2004), section 4, algorithm 2.
 */
static void couple(const struct coupling *c, int64_t rounds)
{
        start_coupling(c);
        for (int64_t round = 0; round < rounds && sl_pace_on(c->pace, 1); round++) {
                double product = apply(c);

                if (error_of(c, product) < 0.005 / (double)c->n)
                        break;
                for (int64_t i = 0; i < c->n && sl_pace_on(c->pace, (uint64_t)c->n); i++) {
                        double own = c->q[i * c->n + i], step = (product - c->qp[i]) / own, scale = 1 / (1 + step);

                        c->p[i] += step;
                        product = (product + step * (step * own + 2 * c->qp[i])) * scale * scale;
                        for (int64_t j = 0; j < c->n; j++) {
                                c->qp[j] = (c->qp[j] + step * c->q[i * c->n + j]) * scale;
                                c->p[j] *= scale;
                        }
                }
        }
}

static void share_pairs(const struct coupling *c, const float *row, const float *slopes, const float *offsets)
{
        for (int64_t i = 0, pair = 0; i + 1 < c->n && sl_pace_on(c->pace, (uint64_t)c->n); i++) {
                for (int64_t j = i + 1; j < c->n; j++, pair++) {
                        double share = 1 - logistic((double)row[pair] * (double)slopes[pair] + (double)offsets[pair]);

                        share = share < 1e-7 ? 1e-7 : share > 1 - 1e-7 ? 1 - 1e-7 : share; /* NaN stays */
                        c->shares[i * c->n + j] = share;
                        c->shares[j * c->n + i] = 1 - share;
                }
        }
}

static void count_votes(const struct coupling *c, const float *row, double *votes)
{
        memset(votes, 0, (size_t)c->n * sizeof(*votes));
        for (int64_t i = 0, pair = 0; i + 1 < c->n && sl_pace_on(c->pace, (uint64_t)c->n); i++)
                for (int64_t j = i + 1; j < c->n; j++, pair++)
                        votes[row[pair] > 0 ? i : j]++;
}

int sl_ref_pair_classes(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const float *decisions = binding->inputs[0];
        float *out = binding->outputs[0];
        struct coupling c = {.shares = binding->scratch, .pace = binding->pace};
        struct sl_pair_classes classes;
        int r = sl_pair_classes_read(node, &classes, NULL);

        c.n = classes.classes;
        c.q = c.shares + c.n * c.n;
        c.qp = c.q + c.n * c.n;
        c.p = c.qp + c.n;
        for (int64_t i = 0; i < classes.rows && !r && sl_pace_on(c.pace, 1); i++, decisions += classes.pairs) {
                count_votes(&c, decisions, c.p);
                if (node->n_outputs > 1)
                        ((int64_t *)binding->outputs[1])[i] =
                                ((const int64_t *)binding->inputs[1])[largest(c.p, c.n, binding->pace)];
                if (classes.has_probabilities) {
                        share_pairs(&c, decisions, binding->inputs[2], binding->inputs[3]);
                        couple(&c, sl_pair_classes_rounds(&classes));
                }
                for (int64_t k = 0; k < c.n; k++)
                        out[i * c.n + k] = (float)c.p[k];
        }
        return r;
}

size_t sl_ref_scratch_pair_classes(const struct sl_node_desc *node)
{
        size_t n = (size_t)node->inputs[1].shape.dims[0];

        return (2 * n * n + 2 * n) * sizeof(double);
}
