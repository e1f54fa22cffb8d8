/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much work a node is: one formula per name in the column of SL_OPS, called by sl_op_work() alone, for nodes whose shapes are
 * inferred and static. A formula is a bound from above for any data (but see roi_align) and loose by no more than a factor that
 * does not depend on the node, as long as the node has elements at all. Sums and products stop at UINT64_MAX. Pure; any thread.
 *
 * A dimension of 0 counts as 1: a loop over what lies in front of it runs all the same.
 */
#include "work.h"

#include "attention.h"
#include "base/bytes.h"
#include "classes.h"
#include "einsum.h"
#include "heads.h"
#include "linear_attention.h"
#include "mbconv.h"
#include "recurrent.h"
#include "resize.h"
#include "trees.h"
#include "window.h"

static uint64_t times(uint64_t a, uint64_t b)
{
        uint64_t product;

        return sl_mul_overflows(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
        uint64_t sum;

        return sl_add_overflows(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t at_least_one(int64_t dim)
{
        return dim > 0 ? (uint64_t)dim : 1;
}

static uint64_t least(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

static uint64_t volume(const struct sl_shape *shape, uint32_t from)
{
        uint64_t product = 1;

        for (uint32_t i = from; i < shape->rank; i++)
                product = times(product, at_least_one(shape->dims[i]));
        return product;
}

/* Comparisons of a binary search among @n. */
static uint64_t depth_of(uint64_t n)
{
        return n ? 64 - (uint64_t)__builtin_clzll(n) : 1;
}

static uint64_t read_by(const struct sl_node_desc *node)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE)
                        sum = plus(sum, volume(&node->inputs[i].shape, 0));
        return sum;
}

static uint64_t made_by(const struct sl_node_desc *node)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < node->n_outputs; i++)
                sum = plus(sum, volume(&node->outputs[i].shape, 0));
        return sum;
}

/* Each element is made of one. */
uint64_t sl_work_each(const struct sl_node_desc *node)
{
        return made_by(node);
}

/* Each element is made of one of every input. */
uint64_t sl_work_operands(const struct sl_node_desc *node)
{
        return times(made_by(node), node->n_inputs + 1ull);
}

/* All that is read is read up to three times. */
uint64_t sl_work_passes(const struct sl_node_desc *node)
{
        return plus(times(3, read_by(node)), made_by(node));
}

/* Rows and elements that indices name: not all of input 0 is read, but Scatter copies it. */
uint64_t sl_work_indexed(const struct sl_node_desc *node)
{
        uint64_t sum = made_by(node);

        for (uint32_t i = 1; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE)
                        sum = plus(sum, times(2, volume(&node->inputs[i].shape, 0)));
        return node->op == SL_OP_MAX_UNPOOL ? plus(sum, volume(&node->inputs[0].shape, 0)) : sum;
}

/* Powers of integers by squaring; the remainder of floats, bit by bit. */
uint64_t sl_work_powers(const struct sl_node_desc *node)
{
        bool integers = !sl_dtype_is_float(node->inputs[0].dtype) && !sl_dtype_is_float(node->inputs[1].dtype);

        return times(sl_work_operands(node), integers == (node->op == SL_OP_POW) ? 64 : 1);
}

static uint64_t conv_products(const struct sl_node_desc *node)
{
        return times(volume(&node->outputs[0].shape, 0), volume(&node->inputs[sl_window_weights(node->op)].shape, 1));
}

uint64_t sl_work_conv(const struct sl_node_desc *node)
{
        return plus(conv_products(node), made_by(node));
}

/* Each pixel of the input goes into as many of the output. */
static uint64_t conv_transpose_products(const struct sl_node_desc *node)
{
        return times(volume(&node->inputs[0].shape, 0), volume(&node->inputs[1].shape, 1));
}

/* Each pixel of the output asks under each tap whether there is one of the input. */
uint64_t sl_work_conv_transpose(const struct sl_node_desc *node)
{
        return plus(conv_transpose_products(node), times(made_by(node), volume(&node->inputs[1].shape, 2)));
}

/* A tap is made of four pixels. */
uint64_t sl_work_deform_conv(const struct sl_node_desc *node)
{
        return times(4, sl_work_conv(node));
}

static uint64_t matmul_products(const struct sl_node_desc *node)
{
        const struct sl_shape *a = &node->inputs[0].shape;
        uint32_t axis = node->op == SL_OP_GEMM && sl_attrs_int(&node->attrs, SL_ATTR_TRANS_A, 0) ? 0 : a->rank - 1;

        return times(volume(&node->outputs[0].shape, 0), at_least_one(a->dims[axis]));
}

uint64_t sl_work_matmul(const struct sl_node_desc *node)
{
        return plus(matmul_products(node), made_by(node));
}

/* Taps beside the image are not visited. */
uint64_t sl_work_pool(const struct sl_node_desc *node)
{
        struct sl_window window = {.rank = 0};
        uint64_t taps = 1;

        sl_window_read(node, &window, NULL);
        for (uint32_t i = 0; i < window.rank; i++)
                taps = times(taps, least((uint64_t)window.kernel[i], at_least_one(node->inputs[0].shape.dims[i + 2])));
        return times(made_by(node), plus(taps, 1));
}

uint64_t sl_work_lrn(const struct sl_node_desc *node)
{
        uint64_t size = at_least_one(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 1));

        return times(made_by(node), plus(least(size, at_least_one(node->inputs[0].shape.dims[1])), 1));
}

/* Each gate of each step with what comes in and with what it remembers. */
uint64_t sl_work_recurrent(const struct sl_node_desc *node)
{
        struct sl_recurrence form = {.gates = 1};
        uint64_t cells;

        sl_recurrence_read(node, &form, NULL);
        cells = times(times(at_least_one(form.steps), at_least_one(form.batch)), times(form.directions, form.gates));
        return plus(times(times(cells, at_least_one(form.hidden)), plus((uint64_t)form.inputs, (uint64_t)form.hidden)),
                times(8, plus(made_by(node), times(cells, at_least_one(form.hidden)))));
}

/* A heap of k over all elements. */
uint64_t sl_work_top_k(const struct sl_node_desc *node)
{
        uint64_t k = (uint64_t)sl_attrs_int(&node->attrs, SL_ATTR_K, 0);

        return plus(times(volume(&node->inputs[0].shape, 0), times(2, depth_of(k))), made_by(node));
}

/* For each class the boxes in order, each compared with those that are kept. */
uint64_t sl_work_non_max_suppression(const struct sl_node_desc *node)
{
        const struct sl_shape *scores = &node->inputs[1].shape;
        uint64_t boxes = at_least_one(scores->dims[2]), kept = at_least_one(sl_attrs_int(&node->attrs, SL_ATTR_MAX_BOXES, 0));

        return plus(times(volume(scores, 0), plus(times(4, depth_of(boxes)), least(boxes, kept))), times(3, made_by(node)));
}

/* Sorted by rows, of which a comparison reads two. */
uint64_t sl_work_unique(const struct sl_node_desc *node)
{
        uint64_t elements = volume(&node->inputs[0].shape, 0);

        return plus(times(elements, times(2, depth_of(elements))), made_by(node));
}

/*
 * Four pixels for each sample of each cell. Where the data say how many samples a cell has, a region counts as the whole image:
 * what larger ones take is counted while it runs (pace.h).
 */
uint64_t sl_work_roi_align(const struct sl_node_desc *node)
{
        const int64_t *in = node->inputs[0].shape.dims, *out = node->outputs[0].shape.dims;
        uint64_t told = (uint64_t)sl_attrs_int(&node->attrs, SL_ATTR_SAMPLING_RATIO, 0), samples = 1;

        for (uint32_t i = 2; i < 4; i++)
                samples = times(samples, told ? told : (at_least_one(in[i]) - 1) / at_least_one(out[i]) + 1);
        return times(made_by(node), plus(times(4, samples), 1));
}

/* The cells of a region share the image; neighbours overlap in a row or column on each side. */
uint64_t sl_work_max_roi_pool(const struct sl_node_desc *node)
{
        const int64_t *in = node->inputs[0].shape.dims, *out = node->outputs[0].shape.dims;
        uint64_t planes = times(at_least_one(out[0]), at_least_one(out[1]));

        return times(planes, times(plus(at_least_one(in[2]), times(3, at_least_one(out[2]))),
                                     plus(at_least_one(in[3]), times(3, at_least_one(out[3])))));
}

/* Each query with each key, each weight with each value. */
static uint64_t row_attention_products(const struct sl_node_desc *node)
{
        struct sl_attention a = {.batch = 0};

        sl_attention_read(node, &a, NULL);
        return times(times(times(at_least_one(a.batch), at_least_one(a.rows)), times(at_least_one(a.keys), at_least_one(a.heads))),
                plus((uint64_t)a.depth, (uint64_t)a.width));
}

uint64_t sl_work_row_attention(const struct sl_node_desc *node)
{
        return plus(times(2, row_attention_products(node)), made_by(node));
}

uint64_t sl_work_attention(const struct sl_node_desc *node)
{
        struct sl_heads f = {.batch = 0};
        uint64_t pairs;

        sl_heads_read(node, &f, NULL);
        pairs = times(
                times(at_least_one(f.batch), at_least_one(f.q_heads)), times(at_least_one(f.q_length), at_least_one(f.length)));
        return plus(times(pairs, plus(plus((uint64_t)f.size, (uint64_t)f.v_size), 4)), made_by(node));
}

/* A state of each head of keys, which each step rewrites, and each head of queries asks. */
uint64_t sl_work_linear_attention(const struct sl_node_desc *node)
{
        struct sl_linear f = {.batch = 0};
        uint64_t states, asked;

        sl_linear_read(node, &f, NULL);
        states = times(times(at_least_one(f.batch), at_least_one(f.kv_heads)), times(at_least_one(f.size), at_least_one(f.v_size)));
        asked = plus(4, (uint64_t)f.q_heads / at_least_one(f.kv_heads));
        return plus(times(times(states, plus((uint64_t)f.length, 2)), asked), made_by(node));
}

/* Each n-gram of the pool at each place of a row, with each number of items skipped. */
uint64_t sl_work_ngram(const struct sl_node_desc *node)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        uint64_t length = at_least_one(in->dims[in->rank - 1]), rows = volume(in, 0) / length;
        uint64_t steps = least((uint64_t)sl_attrs_int(&node->attrs, SL_ATTR_MAX_SKIP, 0) + 1, length);
        uint64_t items = volume(&node->inputs[1].shape, 0), most = at_least_one(sl_attrs_int(&node->attrs, SL_ATTR_MAX_GRAM, 1));

        return plus(
                times(times(rows, times(steps, length)), plus(items, most)), plus(times(rows, times(most, most)), made_by(node)));
}

uint64_t sl_work_det(const struct sl_node_desc *node)
{
        const struct sl_shape *in = &node->inputs[0].shape;

        return times(volume(in, 0), plus(at_least_one(in->dims[in->rank - 1]), 2));
}

/* Each bin is the sum over its frame. */
uint64_t sl_work_fourier(const struct sl_node_desc *node)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -2), length;
        bool windowed = node->n_inputs > 2 && node->inputs[2].dtype != SL_DTYPE_NONE;

        axis = node->op == SL_OP_STFT ? 1 : axis < 0 ? axis + in->rank : axis;
        length = node->op == SL_OP_STFT && windowed ? node->inputs[2].shape.dims[0] : in->dims[axis];
        length = sl_attrs_int(&node->attrs, SL_ATTR_LENGTH, length);
        return plus(times(made_by(node), plus(least(at_least_one(length), at_least_one(in->dims[axis])), 1)),
                times(2, at_least_one(length)));
}

/* One product of all operands for each combination of labels. */
uint64_t sl_work_einsum(const struct sl_node_desc *node)
{
        struct sl_einsum e = {.n_labels = 0};
        uint64_t products = 1;

        sl_einsum_read(node, &e, NULL);
        for (uint32_t i = 0; i < e.n_labels; i++)
                products = times(products, at_least_one(e.sizes[i]));
        return times(products, node->n_inputs + 1ull);
}

/* One pixel, or 2 or 4 along each axis. */
uint64_t sl_work_grid_sample(const struct sl_node_desc *node)
{
        int64_t mode = sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0);
        uint64_t taps = 1, each = mode == 1 ? 1 : mode == 0 ? 2 : 4;

        for (uint32_t i = 2; i < node->inputs[0].shape.rank; i++)
                taps = times(taps, each);
        return plus(times(made_by(node), plus(taps, 1)), read_by(node));
}

uint64_t sl_work_affine_grid(const struct sl_node_desc *node)
{
        return times(made_by(node), node->outputs[0].shape.rank);
}

/* The taps of all axes, and the tables in which their weights are. */
uint64_t sl_work_resize(const struct sl_node_desc *node)
{
        struct sl_resize r = {.rank = 0};
        uint64_t taps = 1, tables = 0;

        sl_resize_read(node, &r, NULL);
        for (uint32_t i = 0; i < r.rank; i++) {
                uint64_t each = at_least_one(sl_resize_taps(&r, i));

                taps = times(taps, each);
                tables = plus(tables, times(4, times(at_least_one(r.out[i]), each)));
        }
        return plus(times(made_by(node), plus(taps, 1)), tables);
}

static uint64_t parts_of(const struct sl_node_desc *node, uint64_t (*work)(const struct sl_node_desc *node))
{
        struct sl_node_desc conv;
        uint64_t sum = 0;

        for (int part = 0; part < SL_MBCONV_PARTS; part++)
                if (sl_mbconv_has(node, part) && !sl_mbconv_conv(node, part, &conv, NULL))
                        sum = plus(sum, work(&conv));
        return sum;
}

uint64_t sl_work_mbconv(const struct sl_node_desc *node)
{
        return parts_of(node, sl_work_conv);
}

/* Each channel is looked for among the tensors. */
uint64_t sl_work_channel_shuffle(const struct sl_node_desc *node)
{
        uint64_t channels = 0;

        for (uint32_t i = 0; i < node->n_inputs; i++)
                channels = plus(channels, at_least_one(node->inputs[i].shape.dims[1]));
        return plus(made_by(node), times(channels, node->n_inputs + node->n_outputs));
}

/* The longest way through each tree for each row, then the list at its end. */
uint64_t sl_work_trees(const struct sl_node_desc *node)
{
        struct sl_tree_form f = {.rows = 0};
        uint64_t each;

        sl_tree_form_read(node, &f, NULL);
        each = times(at_least_one(f.trees), plus(2, f.has_lists ? least(at_least_one(f.targets), at_least_one(f.entries)) : 0));
        each = plus(plus(each, f.visits), plus(times(2, at_least_one(f.targets)), at_least_one(f.columns)));
        return times(at_least_one(f.rows), each);
}

/* Votes, and rounds of a product of a matrix and a vector, twice. */
uint64_t sl_work_pair_classes(const struct sl_node_desc *node)
{
        struct sl_pair_classes c = {.classes = 2};
        uint64_t pairs, rounds;

        sl_pair_classes_read(node, &c, NULL);
        pairs = times(at_least_one(c.classes), at_least_one(c.classes));
        rounds = c.has_probabilities ? plus(times(3, (uint64_t)sl_pair_classes_rounds(&c)), 4) : 2;
        return times(at_least_one(c.rows), times(pairs, rounds));
}

/* All logits are read twice and their shares added up; each draw is a search among the sums. */
uint64_t sl_work_multinomial(const struct sl_node_desc *node)
{
        uint64_t search = depth_of(at_least_one(node->inputs[0].shape.dims[1]));

        return plus(times(3, read_by(node)), times(made_by(node), plus(search, 1)));
}

uint64_t sl_work_lookup(const struct sl_node_desc *node)
{
        return times(made_by(node), plus(depth_of(at_least_one(node->inputs[1].shape.dims[0])), 1));
}

uint64_t sl_work_squared_distance(const struct sl_node_desc *node)
{
        return times(made_by(node), plus(at_least_one(node->inputs[0].shape.dims[1]), 1));
}

/* What bodies do is counted with their nodes, round by round; what is carried and put together, when it is moved. */
uint64_t sl_work_control(const struct sl_node_desc *node)
{
        (void)node;
        return 0;
}

static bool is_float(const struct sl_node_desc *node)
{
        return sl_dtype_is_float(node->inputs[0].dtype) || sl_dtype_is_float(node->inputs[1].dtype);
}

static bool has_input(const struct sl_node_desc *node, uint32_t i)
{
        return node->n_inputs > i && node->inputs[i].dtype != SL_DTYPE_NONE;
}

/* Of an operator that is not SL_OP_COUNTS or SL_OP_CONTROL. */
static bool data_decide(const struct sl_node_desc *node)
{
        switch (node->op) {
        case SL_OP_ROI_ALIGN:    /* samples of a cell, and regions beside the image */
        case SL_OP_MAX_ROI_POOL: /* pixels of a region */
        case SL_OP_TOP_K:        /* how often the heap changes */
        case SL_OP_NGRAM:        /* how much of an n-gram fits */
        case SL_OP_TREES:        /* how long the ways are */
        case SL_OP_PAIR_CLASSES: /* rounds until the probabilities are there */
        case SL_OP_DET:          /* columns before one of zeros */
                return true;
        case SL_OP_LSTM:
        case SL_OP_GRU:
        case SL_OP_RNN:
                return has_input(node, SL_RNN_LENGTHS);
        case SL_OP_POW:
                return !is_float(node); /* bits of the exponent */
        case SL_OP_MOD:
                return is_float(node); /* bits between the operands */
        default:
                return false;
        }
}

uint64_t sl_op_data_work(const struct sl_node_desc *node)
{
        if (sl_op_traits(node->op) & (SL_OP_COUNTS | SL_OP_CONTROL))
                return UINT64_MAX;
        if (node->op == SL_OP_ROI_ALIGN && !sl_attrs_int(&node->attrs, SL_ATTR_SAMPLING_RATIO, 0))
                return UINT64_MAX;
        return data_decide(node) ? sl_op_work(node) : 0;
}

uint64_t sl_op_multiply_adds(const struct sl_node_desc *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE && !sl_shape_is_static(&node->inputs[i].shape))
                        return 0;
        if (!sl_shape_is_static(&node->outputs[0].shape) || !sl_shape_elements(&node->outputs[0].shape))
                return 0;
        switch (node->op) {
        case SL_OP_CONV:
        case SL_OP_LANED_CONV:
        case SL_OP_QUANTIZED_CONV:
                return conv_products(node);
        case SL_OP_CONV_TRANSPOSE:
                return conv_transpose_products(node);
        case SL_OP_GEMM:
        case SL_OP_MATMUL:
        case SL_OP_NIBBLE_MATMUL:
        case SL_OP_QUANTIZED_MATMUL:
                return matmul_products(node);
        case SL_OP_ROW_ATTENTION:
                return row_attention_products(node);
        case SL_OP_MBCONV:
                return parts_of(node, conv_products);
        default:
                return 0;
        }
}
