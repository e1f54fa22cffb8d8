/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row per operator. An attribute that neither the row nor its function knows is refused: it could change what is computed.
 */
#include "import/canonical.h"
#include "import/words.h"

#include <inttypes.h>
#include <string.h>

#define GIVEN_BYTES 224 /* of what a node was given, in a text of an error */

#define REDUCE(op) [SL_OP_##op] = {.attrs = " keepdims noop_with_empty_axes axes ", .adapt = sl_canonical_axes}

#define WINDOW    " kernel_shape strides pads dilations group "
#define RECURRENT " activations activation_alpha activation_beta "

#define BROADCASTS(op) [SL_OP_##op] = {.understood = " axis broadcast ", .adapt = sl_canonical_broadcast}

static const struct sl_canonical rows[SL_OP_COUNT] = {
        [SL_OP_CONV] = {.attrs = " kernel_shape strides pads dilations group ",
                .understood = " auto_pad ",
                .adapt = sl_canonical_window},
        [SL_OP_MAX_POOL] = {.attrs = " kernel_shape strides pads dilations ceil_mode storage_order ",
                .understood = " auto_pad ",
                .adapt = sl_canonical_window},
        [SL_OP_AVERAGE_POOL] = {.attrs = " kernel_shape strides pads dilations ceil_mode count_include_pad ",
                .understood = " auto_pad ",
                .adapt = sl_canonical_window},
        [SL_OP_GEMM] = {.attrs = " transA transB alpha beta ", .understood = " broadcast ", .adapt = sl_canonical_gemm},
        [SL_OP_BATCH_NORM] = {.attrs = " epsilon ",
                .understood = " momentum spatial training_mode is_test ",
                .adapt = sl_canonical_batch_norm},
        [SL_OP_LAYER_NORM] = {.attrs = " axis epsilon ", .understood = " stash_type "},
        [SL_OP_INSTANCE_NORM] = {.attrs = " epsilon "},
        [SL_OP_LRN] = {.attrs = " alpha beta ", .understood = " size bias ", .adapt = sl_canonical_lrn},
        [SL_OP_SOFTMAX] = {.attrs = " axis ", .adapt = sl_canonical_softmax},
        [SL_OP_LOG_SOFTMAX] = {.attrs = " axis ", .adapt = sl_canonical_softmax},
        [SL_OP_LEAKY_RELU] = {.attrs = " alpha "},
        [SL_OP_ELU] = {.attrs = " alpha "},
        [SL_OP_HARD_SIGMOID] = {.attrs = " alpha beta "},
        [SL_OP_GELU] = {.words = gelu, .adapt = sl_canonical_gelu},
        [SL_OP_CLIP] = {.understood = " min max ", .adapt = sl_canonical_clip},
        [SL_OP_CAST] = {.attrs = " saturate ", .understood = " to ", .words = round_mode, .adapt = sl_canonical_cast},
        [SL_OP_POW] = {.understood = " axis broadcast ", .adapt = sl_canonical_pow},
        BROADCASTS(ADD),
        BROADCASTS(SUB),
        BROADCASTS(MUL),
        BROADCASTS(DIV),
        BROADCASTS(AND),
        BROADCASTS(OR),
        BROADCASTS(XOR),
        BROADCASTS(EQUAL),
        BROADCASTS(GREATER),
        BROADCASTS(LESS),
        [SL_OP_PRELU] = {.adapt = sl_canonical_prelu},
        [SL_OP_CONCAT] = {.attrs = " axis ", .adapt = sl_canonical_concat},
        [SL_OP_SLICE] = {.understood = " starts ends axes ", .adapt = sl_canonical_slice},
        [SL_OP_SPLIT] = {.attrs = " axis split ", .understood = " num_outputs ", .adapt = sl_canonical_split},
        [SL_OP_RESHAPE] = {.attrs = " allowzero ", .understood = " shape ", .adapt = sl_canonical_reshape},
        [SL_OP_FLATTEN] = {.attrs = " axis "},
        [SL_OP_SQUEEZE] = {.attrs = " axes ", .adapt = sl_canonical_squeeze},
        [SL_OP_UNSQUEEZE] = {.attrs = " axes ", .adapt = sl_canonical_axes},
        [SL_OP_TRANSPOSE] = {.attrs = " perm "},
        [SL_OP_PAD] = {.attrs = " pads value ", .understood = " paddings ", .words = pad, .adapt = sl_canonical_pad},
        REDUCE(REDUCE_MEAN),
        REDUCE(REDUCE_SUM),
        REDUCE(REDUCE_MAX),
        REDUCE(REDUCE_MIN),
        REDUCE(REDUCE_PROD),
        REDUCE(REDUCE_L1),
        REDUCE(REDUCE_L2),
        REDUCE(REDUCE_SUM_SQUARE),
        REDUCE(REDUCE_LOG_SUM_EXP),
        [SL_OP_ARG_MAX] = {.attrs = " axis keepdims ", .understood = " select_last_index ", .adapt = sl_canonical_arg},
        [SL_OP_ARG_MIN] = {.attrs = " axis keepdims ", .understood = " select_last_index ", .adapt = sl_canonical_arg},
        [SL_OP_GATHER] = {.attrs = " axis "},
        [SL_OP_SHAPE] = {.understood = " start end ", .adapt = sl_canonical_shape},
        [SL_OP_CONSTANT_OF_SHAPE] = {.understood = " value ", .adapt = sl_canonical_constant_of_shape},
        [SL_OP_LSTM] = {.attrs = " clip hidden_size input_forget layout ",
                .understood = RECURRENT,
                .words = direction,
                .adapt = sl_canonical_recurrent},
        [SL_OP_GRU] = {.attrs = " clip hidden_size linear_before_reset layout ",
                .understood = RECURRENT,
                .words = direction,
                .adapt = sl_canonical_recurrent},
        [SL_OP_RNN] = {.attrs = " clip hidden_size layout ",
                .understood = RECURRENT,
                .words = direction,
                .adapt = sl_canonical_recurrent},
        [SL_OP_QUANTIZE_LINEAR] = {.attrs = " axis block_size output_dtype saturate ",
                .understood = " precision ",
                .adapt = sl_canonical_quantize},
        [SL_OP_DEQUANTIZE_LINEAR] = {.attrs = " axis block_size output_dtype "},
        [SL_OP_QLINEAR_CONV] = {.attrs = WINDOW, .understood = " auto_pad ", .least = 8, .adapt = sl_canonical_qlinear_conv},
        [SL_OP_QLINEAR_MATMUL] = {.least = 8, .adapt = sl_canonical_qlinear_matmul},
        [SL_OP_CONV_INTEGER] = {.attrs = WINDOW, .understood = " auto_pad ", .adapt = sl_canonical_window},
        [SL_OP_CONV_TRANSPOSE] = {.attrs = WINDOW " output_padding output_shape ",
                .understood = " auto_pad ",
                .adapt = sl_canonical_conv_transpose},
        [SL_OP_DEFORM_CONV] = {.attrs = WINDOW " offset_group "},
        [SL_OP_SELU] = {.attrs = " alpha gamma "},
        [SL_OP_CELU] = {.attrs = " alpha "},
        [SL_OP_THRESHOLDED_RELU] = {.attrs = " alpha "},
        [SL_OP_SHRINK] = {.attrs = " lambd bias "},
        [SL_OP_IS_INF] = {.attrs = " detect_negative detect_positive "},
        [SL_OP_MOD] = {.attrs = " fmod ", .adapt = sl_canonical_mod},
        [SL_OP_BIT_SHIFT] = {.words = bit_shift, .adapt = sl_canonical_bit_shift},
        REDUCE(REDUCE_LOG_SUM),
        [SL_OP_NGRAM] = {.attrs = " min_gram_length max_gram_length max_skip_count ",
                .understood = " pool_int64s ngram_counts ngram_indexes weights ",
                .words = ngram,
                .adapt = sl_canonical_ngram},
        [SL_OP_CENTER_CROP_PAD] = {.attrs = " axes "},
        [SL_OP_RESIZE] = {.attrs = " antialias axes cubic_coeff_a exclude_outside extrapolation_value ",
                .words = resize,
                .adapt = sl_canonical_resize},
        [SL_OP_TOP_K] = {.attrs = " axis k largest ", .understood = " sorted "},
        [SL_OP_NON_MAX_SUPPRESSION] = {.attrs = " center_point_box "},
        [SL_OP_ROI_ALIGN] = {.attrs = " output_height output_width sampling_ratio spatial_scale ",
                .words = roi_align,
                .adapt = sl_canonical_roi_align},
        [SL_OP_MAX_ROI_POOL] = {.attrs = " pooled_shape spatial_scale "},
        [SL_OP_GATHER_ELEMENTS] = {.attrs = " axis "},
        [SL_OP_GATHER_ND] = {.attrs = " batch_dims "},
        [SL_OP_SCATTER_ELEMENTS] = {.attrs = " axis ", .words = reduction},
        [SL_OP_SCATTER_ND] = {.words = reduction},
        [SL_OP_MAX_UNPOOL] = {.attrs = " kernel_shape strides pads "},
        [SL_OP_LP_POOL] = {.attrs = " kernel_shape strides pads dilations ceil_mode p ",
                .understood = " auto_pad ",
                .adapt = sl_canonical_window},
        [SL_OP_GLOBAL_LP_POOL] = {.attrs = " p "},
        [SL_OP_DEPTH_TO_SPACE] = {.understood = " blocksize ", .words = depth_to_space, .adapt = sl_canonical_blocks},
        [SL_OP_SPACE_TO_DEPTH] = {.understood = " blocksize ", .words = depth_to_space, .adapt = sl_canonical_blocks},
        [SL_OP_REVERSE_SEQUENCE] = {.attrs = " batch_axis time_axis "},
        [SL_OP_TRILU] = {.attrs = " upper "},
        [SL_OP_EYE_LIKE] = {.attrs = " k ", .understood = " dtype ", .adapt = sl_canonical_eye_like},
        [SL_OP_ONE_HOT] = {.attrs = " axis ", .adapt = sl_canonical_one_hot},
        [SL_OP_CUM_SUM] = {.attrs = " exclusive reverse "},
        [SL_OP_CUM_PROD] = {.attrs = " exclusive reverse "},
        [SL_OP_HARDMAX] = {.attrs = " axis ", .adapt = sl_canonical_softmax},
        [SL_OP_LP_NORM] = {.attrs = " axis p "},
        [SL_OP_MEAN_VARIANCE_NORM] = {.attrs = " axes "},
        [SL_OP_RMS_NORM] = {.attrs = " axis epsilon ", .understood = " stash_type "},
        [SL_OP_GROUP_NORM] = {.attrs = " epsilon num_groups ", .understood = " stash_type "},
        [SL_OP_COL2IM] = {.attrs = " dilations pads strides "},
        [SL_OP_HANN_WINDOW] = {.attrs = " periodic ", .understood = " output_datatype ", .adapt = sl_canonical_taper},
        [SL_OP_HAMMING_WINDOW] = {.attrs = " periodic ", .understood = " output_datatype ", .adapt = sl_canonical_taper},
        [SL_OP_BLACKMAN_WINDOW] = {.attrs = " periodic ", .understood = " output_datatype ", .adapt = sl_canonical_taper},
        [SL_OP_MEL_WEIGHTS] = {.understood = " output_datatype ", .adapt = sl_canonical_mel_weights},
        [SL_OP_DFT] = {.attrs = " axis inverse onesided ", .adapt = sl_canonical_dft},
        [SL_OP_STFT] = {.attrs = " onesided "},
        [SL_OP_NLL_LOSS] = {.attrs = " ignore_index ", .words = loss},
        [SL_OP_CROSS_ENTROPY_LOSS] = {.attrs = " ignore_index ", .words = loss},
        [SL_OP_EINSUM] = {.understood = " equation ", .by_size = true, .adapt = sl_canonical_einsum},
        [SL_OP_GRID_SAMPLE] = {.attrs = " align_corners ", .words = grid_sample, .adapt = sl_canonical_grid_sample},
        [SL_OP_AFFINE_GRID] = {.attrs = " align_corners "},
        [SL_OP_ATTENTION] = {.attrs = " is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap left_window_size "
                                      "right_window_size ",
                .understood = " softmax_precision "},
        [SL_OP_ROTARY_EMBEDDING] = {.attrs = " interleaved num_heads rotary_embedding_dim "},
        [SL_OP_LINEAR_ATTENTION] = {.attrs = " kv_num_heads q_num_heads scale ",
                .understood = " chunk_size ",
                .words = update_rule},
        [SL_OP_TENSOR_SCATTER] = {.attrs = " axis ", .words = tensor_scatter},
        [SL_OP_BIT_CAST] = {.attrs = " to "},
        [SL_OP_RANGE] = {.understood = " stash_type ", .adapt = sl_canonical_range},
        [SL_OP_COMPRESS] = {.attrs = " axis "},
        [SL_OP_UNIQUE] = {.attrs = " axis sorted "},
        [SL_OP_RANDOM_NORMAL] = {.attrs = " mean scale seed shape ", .understood = " dtype ", .adapt = sl_canonical_random},
        [SL_OP_RANDOM_UNIFORM] = {.attrs = " low high seed shape ", .understood = " dtype ", .adapt = sl_canonical_random},
        [SL_OP_RANDOM_NORMAL_LIKE] = {.attrs = " mean scale seed ", .understood = " dtype ", .adapt = sl_canonical_random},
        [SL_OP_RANDOM_UNIFORM_LIKE] = {.attrs = " low high seed ", .understood = " dtype ", .adapt = sl_canonical_random},
        [SL_OP_BERNOULLI] = {.attrs = " seed ", .understood = " dtype ", .adapt = sl_canonical_random},
        [SL_OP_MULTINOMIAL] = {.attrs = " sample_size seed ", .understood = " dtype ", .adapt = sl_canonical_random},
};

/* ONNX operators that are none of ours, and what they become. */
static const struct sl_canonical others[] = {
        {.name = "Constant",
                .understood = " value sparse_value value_float value_floats value_int value_ints ",
                .adapt = sl_canonical_constant},
        {.name = "CastLike", .op = SL_OP_CAST, .attrs = " saturate ", .words = round_mode, .adapt = sl_canonical_cast_like},
        /* ONNX Runtime writes it, into ONNX's own domain. */
        {.name = "SimplifiedLayerNormalization", .op = SL_OP_RMS_NORM, .attrs = " axis epsilon ", .understood = " stash_type "},
        {.name = "Size", .op = SL_OP_SHAPE, .adapt = sl_canonical_size},
        {.name = "Dropout", .op = SL_OP_IDENTITY, .understood = " ratio seed is_test ", .adapt = sl_canonical_dropout},
        {.name = "SequenceEmpty", .understood = " dtype ", .lists = true, .adapt = sl_canonical_sequence_empty},
        {.name = "SequenceConstruct", .lists = true, .adapt = sl_canonical_sequence_construct},
        {.name = "SequenceAt", .lists = true, .adapt = sl_canonical_sequence_at},
        {.name = "SequenceInsert", .lists = true, .adapt = sl_canonical_sequence_insert},
        {.name = "SequenceErase", .lists = true, .adapt = sl_canonical_sequence_erase},
        {.name = "SequenceLength", .lists = true, .adapt = sl_canonical_sequence_length},
        {.name = "SplitToSequence", .understood = " axis keepdims ", .lists = true, .adapt = sl_canonical_split_to_sequence},
        {.name = "ConcatFromSequence", .understood = " axis new_axis ", .lists = true, .adapt = sl_canonical_concat_from_sequence},
        {.name = "SequenceMap", .understood = " body ", .lists = true, .bodies = true, .adapt = sl_canonical_sequence_map},
        {.name = "Optional", .understood = " type ", .lists = true, .adapt = sl_canonical_optional},
        {.name = "OptionalGetElement", .lists = true, .adapt = sl_canonical_optional_get},
        {.name = "OptionalHasElement", .lists = true, .adapt = sl_canonical_optional_has},
        {.name = "Swish", .op = SL_OP_MUL, .understood = " alpha ", .least = 1, .adapt = sl_canonical_swish},
        {.name = "SwiGLU", .op = SL_OP_MUL, .understood = " alpha ", .least = 2, .by_size = true, .adapt = sl_canonical_swiglu},
        {.name = "CausalConvWithState",
                .op = SL_OP_CONV,
                .understood = " activation ",
                .least = 2,
                .adapt = sl_canonical_causal_conv},
        {.name = "Scatter", .op = SL_OP_SCATTER_ELEMENTS, .attrs = " axis "},
        {.name = "Upsample", .op = SL_OP_RESIZE, .attrs = " scales ", .words = upsample, .adapt = sl_canonical_upsample},
};

static const struct sl_canonical preview_rows[] = {
        {.name = "FlexAttention",
                .understood = " prob_mod scale score_mod softmax_precision ",
                .least = 3,
                .bodies = true,
                .adapt = sl_canonical_flex_attention},
        {.name = NULL},
};

/* Other domains than ONNX's own. */
static const struct sl_domain domains[] = {
        {"com.microsoft", sl_contrib_rows},
        {"ai.onnx.ml", sl_ml_rows_of_domain},
        {"ai.onnx.preview", preview_rows},
};

static const char *domain_of(const struct sl_onnx_node *node)
{
        return node->proto && node->proto->domain && *node->proto->domain ? node->proto->domain : "ai.onnx";
}

static bool is_onnx(const struct sl_onnx_node *node)
{
        return !strcmp(domain_of(node), "ai.onnx");
}

/* @behind: more words behind @what. */
static int refuse(
        struct sl_importer *im, const struct sl_onnx_node *node, int code, const char *what, const char *behind, bool is_known)
{
        char given[GIVEN_BYTES] = "";

        return sl_error_set(im->error, code, "node \"%s\": operator %s of domain %s, opset %" PRId64 ": %s%s%s", node->name,
                node->proto->op_type, domain_of(node), im->graph->opset, what, behind,
                is_known ? sl_import_given(im, node, given, sizeof(given)) : given);
}

/* By its name alone, whatever it was given. */
static int refuse_operator(struct sl_importer *im, const struct sl_onnx_node *node, const char *what)
{
        return refuse(im, node, ENOTSUP, what, "", false);
}

int sl_import_refuse(struct sl_importer *im, const struct sl_onnx_node *node, const char *what)
{
        return refuse(im, node, ENOTSUP, what, "", true);
}

int sl_import_wrong(struct sl_importer *im, const struct sl_onnx_node *node, const char *what)
{
        return refuse(im, node, EBADMSG, what, "", true);
}

int sl_import_misfit(struct sl_importer *im, const struct sl_onnx_node *node, const char *what)
{
        im->contradicts = true;
        return sl_import_misfit_status(im, sl_import_wrong(im, node, what));
}

int sl_import_unsettled(struct sl_importer *im, const struct sl_onnx_node *node, const char *what)
{
        return sl_import_misfit_status(im, sl_import_refuse(im, node, what));
}

static const struct sl_canonical *rows_of(const char *domain)
{
        for (size_t i = 0; i < sizeof(domains) / sizeof(*domains); i++)
                if (!strcmp(domains[i].name, domain))
                        return domains[i].rows;
        return NULL;
}

static const struct sl_canonical *find_in(const struct sl_canonical *row, const char *type, uint32_t *ret_op)
{
        while (row->name && strcmp(row->name, type))
                row++;
        *ret_op = row->op;
        return row->name ? row : NULL;
}

int sl_import_wants_batch(struct sl_importer *im, const struct sl_onnx_node *node, const char *what)
{
        return refuse(im, node, EDOM, what, ", so the leading dimension of the inputs wants a size", true);
}

static const struct sl_canonical *find_row(const char *type, uint32_t *ret_op)
{
        int op = sl_op_find(type);

        for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
                *ret_op = others[i].op;
                if (!strcmp(others[i].name, type))
                        return &others[i];
        }
        if (op < 0)
                return NULL;
        *ret_op = (uint32_t)op;
        return &rows[op];
}

/* @name is one of the words of @names. */
static bool lists(const char *names, const char *name)
{
        size_t length = strlen(name);

        for (const char *word = names; word && *word; word += strcspn(word, " ")) {
                word += strspn(word, " ");
                if (length && strcspn(word, " ") == length && !memcmp(word, name, length))
                        return true;
        }
        return false;
}

const struct sl_canonical_words *sl_canonical_words_of(uint32_t op)
{
        return rows[op].words;
}

bool sl_canonical_copies(uint32_t op, const char *attribute)
{
        return lists(rows[op].attrs, attribute);
}

static uint32_t attr_id(const char *name)
{
        uint32_t id = 0;

        while (id < SL_ATTR_COUNT && strcmp(sl_attr_name(id), name))
                id++;
        return id;
}

static bool is_word(const struct sl_canonical *row, const char *name)
{
        for (const struct sl_canonical_words *words = row->words; words && words->name; words++)
                if (!strcmp(words->name, name))
                        return true;
        return false;
}

/* Opset 1 let an operator reuse its inputs' memory, which is a plan's to decide. */
static bool is_hint(const struct sl_importer *im, const char *name)
{
        return im->graph->opset < 6 && !strcmp(name, "consumed_inputs");
}

static int copy_attrs(
        struct sl_importer *im, const struct sl_onnx_node *node, const struct sl_canonical *row, struct sl_draft *draft)
{
        for (size_t i = 0; i < node->proto->n_attribute; i++) {
                const Onnx__AttributeProto *attr = node->proto->attribute[i];
                const char *name = attr->name ? attr->name : "";
                int result = 0;

                if (attr->ref_attr_name && *attr->ref_attr_name)
                        return sl_import_refuse(im, node, "an attribute refers to that of a function");
                if (lists(row->attrs, name))
                        result = sl_onnx_copy_attr(im, node, name, attr_id(name), &draft->attrs);
                else if (!lists(row->understood, name) && !is_word(row, name) && !is_hint(im, name))
                        result = sl_error_set(im->error, ENOTSUP,
                                "node \"%s\": attribute %s of operator %s, domain %s, opset %" PRId64 ", is not supported",
                                node->name, name, node->proto->op_type, domain_of(node), im->graph->opset);
                if (result < 0)
                        return result;
        }
        return 0;
}

static int find_inputs(struct sl_importer *im, struct sl_onnx_node *node)
{
        if (node->proto->n_input > SL_NODE_INPUTS_MAX)
                return sl_error_set(im->error, E2BIG, "node \"%s\": %zu inputs, at most %d", node->name, node->proto->n_input,
                        SL_NODE_INPUTS_MAX);
        for (size_t i = 0; i < node->proto->n_input; i++) {
                const char *name = node->proto->input[i];
                uint32_t value = *name ? sl_import_find(im, name) : SL_VALUE_NONE;

                if (*name && value == SL_VALUE_NONE && sl_import_find_sequence(im, name))
                        return sl_error_set(im->error, ENOTSUP, "node \"%s\" (%s): input \"%s\" is a sequence or an optional",
                                node->name, node->proto->op_type, name);
                if (*name && value == SL_VALUE_NONE)
                        return sl_error_set(im->error, ENOTSUP,
                                "node \"%s\": input \"%s\" is an output that Starling does not compute", node->name, name);
                node->inputs[node->n_inputs++] = value;
        }
        while (node->n_inputs && node->inputs[node->n_inputs - 1] == SL_VALUE_NONE)
                node->n_inputs--;
        return 0;
}

/* How many outputs the operator has here; ONNX's optional further ones are for training. What has no name at the end is left out.
 */
static uint32_t outputs_of(uint32_t op, const Onnx__NodeProto *proto)
{
        uint32_t most = sl_op_outputs(op), n = proto->n_output < most ? (uint32_t)proto->n_output : most;

        while (n > 1 && !*proto->output[n - 1])
                n--;
        return n;
}

static int copy_words(
        struct sl_importer *im, const struct sl_onnx_node *node, const struct sl_canonical *row, struct sl_draft *draft)
{
        for (const struct sl_canonical_words *words = row->words; words && words->name; words++) {
                int result = sl_onnx_word(im, node, words->name, words->words, words->id, &draft->attrs);

                if (result < 0)
                        return result;
        }
        return 0;
}

/* Strings stay strings. */
static bool casts_to_strings(const struct sl_onnx_node *node)
{
        const Onnx__AttributeProto *to = sl_onnx_attr(node, "to");

        return is_onnx(node) && !strcmp(node->proto->op_type, "Cast") && to && to->i == ONNX__TENSOR_PROTO__DATA_TYPE__STRING;
}

static bool knows_inputs(const struct sl_importer *im, const struct sl_onnx_node *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i] != SL_VALUE_NONE && !sl_shape_is_static(&im->graph->values[node->inputs[i]].tensor.shape))
                        return false;
        return true;
}

/*
 * Where sizes are told by each request, nodes whose form follows from them have none: those of other domains but for the ones that
 * say otherwise, and operators that say so; with sizes that are known they are read as ever. Lists, words and bodies are left to
 * plans of single sizes.
 */
static int check_any_size(
        struct sl_importer *im, const struct sl_onnx_node *node, const struct sl_canonical *row, uint32_t vocabulary)
{
        bool never = row->lists || row->reads_strings || row->bodies || vocabulary;
        bool by_size = row->by_size || (!is_onnx(node) && !row->any_size);

        if (!im->limits->any_size || (!never && (!by_size || knows_inputs(im, node))))
                return 0;
        return sl_import_refuse(im, node, "it is read by the sizes of its inputs");
}

static int import_known(struct sl_importer *im, struct sl_onnx_node *node, const struct sl_canonical *row, uint32_t op)
{
        struct sl_draft draft = {.op = op, .n_outputs = outputs_of(op, node->proto)};
        int result = row->lists ? 0 : find_inputs(im, node);
        uint32_t vocabulary = 0;
        bool met = false;

        if (result == 0 && casts_to_strings(node))
                return node->n_inputs && node->proto->n_output && sl_vocabulary_of(im, node->inputs[0])
                               ? sl_import_bind(im, node, node->inputs[0])
                               : sl_import_refuse(im, node, "a cast to strings");
        if (result == 0 && !row->lists && !row->reads_strings)
                result = sl_vocabulary_meet(im, node, &vocabulary, &met);
        if (result == 0 && !row->lists && !row->reads_strings && !met)
                result = sl_vocabulary_behind(im, node, &vocabulary);
        if (result == 0)
                result = check_any_size(im, node, row, vocabulary);
        if (result == 0)
                result = copy_attrs(im, node, row, &draft);
        if (result == 0)
                result = copy_words(im, node, row, &draft);
        if (result < 0)
                return result;
        if (!node->proto->n_output)
                return sl_import_wrong(im, node, "it has no output");
        for (uint32_t i = 0; i < row->least; i++)
                if (i >= node->n_inputs || node->inputs[i] == SL_VALUE_NONE)
                        return sl_import_wrong(im, node, "an input is missing");
        draft.n_inputs = node->n_inputs;
        memcpy(draft.inputs, node->inputs, sizeof(draft.inputs));
        if (row->adapt)
                result = row->adapt(im, node, &draft);
        if (result == 0)
                result = sl_import_emit_last(im, node, &draft);
        return result < 0 ? result : sl_vocabulary_assign_outputs(im, node, vocabulary);
}

static bool carries_graph(const Onnx__NodeProto *proto)
{
        for (size_t i = 0; i < proto->n_attribute; i++)
                if (proto->attribute[i]->g || proto->attribute[i]->n_graphs)
                        return true;
        return false;
}

static int name_node(struct sl_importer *im, const Onnx__NodeProto *proto, struct sl_onnx_node *ret_node)
{
        *ret_node = (struct sl_onnx_node){.proto = proto, .name = proto->name};
        if (!proto->op_type || !*proto->op_type)
                return sl_error_set(im->error, EBADMSG, "node \"%s\" has no operator", proto->name ? proto->name : "");
        if ((!proto->name || !*proto->name) && proto->n_output)
                ret_node->name = proto->output[0];
        if (!ret_node->name)
                ret_node->name = "";
        return 0;
}

static bool is_of_texts(const char *type)
{
        return strstr(type, "Tokenizer") || lists(" RegexFullMatch StringConcat StringNormalizer StringSplit ", type);
}

/* By name and domain alone. *ret_row is NULL for a node with bodies. */
static int find_operator(
        struct sl_importer *im, const struct sl_onnx_node *node, const struct sl_canonical **ret_row, uint32_t *ret_op)
{
        const struct sl_canonical *rows_there = rows_of(domain_of(node));

        *ret_row = NULL;
        if (is_of_texts(node->proto->op_type))
                return refuse_operator(im, node, "it works on the characters of strings, which is not supported");
        if (!is_onnx(node) && !rows_there)
                return refuse_operator(im, node, "the domain is not supported");
        if (is_onnx(node) && sl_import_has_bodies(node->proto))
                return 0;
        *ret_row = is_onnx(node) ? find_row(node->proto->op_type, ret_op) : find_in(rows_there, node->proto->op_type, ret_op);
        if (carries_graph(node->proto) && !(*ret_row && (*ret_row)->bodies))
                return refuse_operator(im, node, "operators that carry a graph are not supported");
        return *ret_row ? 0 : refuse_operator(im, node, "the operator is not supported");
}

static int import_node(struct sl_importer *im, const Onnx__NodeProto *proto)
{
        const struct sl_canonical *row;
        struct sl_onnx_node node;
        uint32_t op = 0;
        int result = name_node(im, proto, &node);

        if (result == 0)
                result = find_operator(im, &node, &row, &op);
        if (result == 0)
                result = sl_import_count(im);
        if (result < 0)
                return result;
        if (!row)
                return sl_import_control(im, &node);
        if (is_onnx(&node) && op == SL_OP_IDENTITY && proto->n_input == 1 && sl_import_find_sequence(im, proto->input[0])) {
                sl_import_bind_sequence(im, &node, 0, sl_import_find_sequence(im, proto->input[0]));
                return 0;
        }
        if (is_onnx(&node) && sl_import_is_wide(op, proto))
                return sl_import_wide(im, &node, op);
        result = import_known(im, &node, row, op);
        return result < 0 ? result : 0;
}

/* A node that comes from a function means what it means in the opset of that, and so do its bodies. */
int sl_import_node(struct sl_importer *im, const Onnx__NodeProto *proto)
{
        int64_t opset = im->graph->opset;
        int result;

        im->graph->opset = sl_function_opset_of(&im->function_opsets, proto, opset);
        result = import_node(im, proto);
        im->graph->opset = opset;
        return result;
}

/* Of an If one branch may never be looked at: which one, its condition or the sizes of the inputs say. */
static const Onnx__GraphProto *body_always_read(const struct sl_onnx_node *node)
{
        const Onnx__AttributeProto *attr = sl_onnx_attr(node, "body");

        return attr && sl_import_has_bodies(node->proto) ? attr->g : NULL;
}

static int check_graph(struct sl_importer *im, const Onnx__GraphProto *graph);

static int check_inlined(struct sl_importer *im, const Onnx__NodeProto *proto)
{
        int result = 0;

        for (size_t i = 0; i < proto->n_attribute && result == 0; i++)
                if (proto->attribute[i]->g)
                        result = check_graph(im, proto->attribute[i]->g);
        return result;
}

/* As deep as the wire lets bodies be. */
static int check_graph(struct sl_importer *im, const Onnx__GraphProto *graph)
{
        int result = 0;

        for (size_t i = 0; i < graph->n_node && result == 0; i++) {
                const Onnx__GraphProto *body;
                const struct sl_canonical *row;
                struct sl_onnx_node node;
                uint32_t op;

                result = name_node(im, graph->node[i], &node);
                if (result == 0)
                        result = find_operator(im, &node, &row, &op);
                body = result == 0 && !row ? body_always_read(&node) : NULL;
                if (body)
                        result = check_graph(im, body);
                else if (result == 0 && row && row->bodies)
                        result = check_inlined(im, graph->node[i]);
        }
        return result;
}

int sl_import_check_operators(struct sl_importer *im)
{
        return check_graph(im, im->model->graph);
}
