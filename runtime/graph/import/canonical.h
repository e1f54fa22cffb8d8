/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the operators of ONNX become those of kernels/op.h. An operator without a row has no attributes and the same form in
 * every opset. Private to this folder and to export/, which goes the other way.
 */
#pragma once

#include "import/importer.h"

/*
 * Brings @draft, which has the inputs and the plain attributes already, into canonical form. Return: 0, the caller emits the
 * draft; 1, it has been emitted or bound; -errno.
 */
typedef int (*sl_canonical_fn)(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);

/* A string attribute of which every value has a number: its place in @words. */
struct sl_canonical_words {
        const char *name;
        uint32_t id;       /* of the attribute that holds the number */
        const char *words; /* "nearest linear cubic" */
};

struct sl_canonical {
        const char *name;                       /* ONNX's, when it is no row of SL_OPS */
        uint32_t op;                            /* of the draft */
        const char *attrs;                      /* " axis keepdims ": go over as they are */
        const char *understood;                 /* read by the function, or without effect on inference */
        const struct sl_canonical_words *words; /* ends with one that has no name */
        uint32_t least;                         /* inputs that must be there, before the function may read them */
        bool lists;                             /* inputs and outputs may be no tensors: the function looks them up */
        bool reads_strings;                     /* inputs may be strings: the function looks words up (vocabulary.h) */
        bool bodies;                            /* attributes may be graphs, which the function inlines */
        bool by_size;                           /* what the function makes of it follows from the sizes of its inputs */
        bool any_size;                          /* of another domain: the function makes the same of all sizes, or refuses */
        sl_canonical_fn adapt;                  /* NULL: nothing more to do */
};

/* Operators of another domain; the table ends with a row that has no name. */
struct sl_domain {
        const char *name;
        const struct sl_canonical *rows;
};

/* canonical.c: the words of an operator, NULL for none; whether the attribute goes over as it is. */
const struct sl_canonical_words *sl_canonical_words_of(uint32_t op);
bool sl_canonical_copies(uint32_t op, const char *attribute);

/* canonical_recurrent.c: ONNX's name of an enum sl_gate, and how many parameters that has. */
const char *sl_canonical_gate(int64_t gate, uint32_t *ret_parameters);

/* contrib.c: com.microsoft */
extern const struct sl_canonical sl_contrib_rows[];

/* flex_attention.c: ai.onnx.preview */
int sl_canonical_flex_attention(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);

/* ml.c: ai.onnx.ml */
extern const struct sl_canonical sl_ml_rows_of_domain[];

/* canonical_shape.c */
int sl_canonical_axes(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_squeeze(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_slice(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_split(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_pad(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_shape(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_constant(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_constant_of_shape(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);

int sl_canonical_size(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);

int sl_canonical_concat(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_reshape(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);

/* canonical_ngram.c */
int sl_canonical_ngram(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);

/* canonical_old.c: opsets 1 to 6 */
int sl_canonical_broadcast(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_prelu(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_gemm(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_type_by_name(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);

/* canonical_later.c: opsets 24 to 28 */
int sl_canonical_swish(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_swiglu(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_causal_conv(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_range(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_mod(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);

/* sequence.c: @draft has no inputs */
int sl_canonical_sequence_empty(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_sequence_construct(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_sequence_at(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_sequence_insert(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_sequence_erase(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_sequence_length(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_split_to_sequence(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_concat_from_sequence(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_sequence_map(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_optional(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_optional_get(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_optional_has(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);

/* canonical_window.c */
int sl_canonical_window(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);

/* canonical_math.c */
int sl_canonical_softmax(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_clip(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_batch_norm(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_lrn(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_gelu(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_cast(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_quantize(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_pow(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_dropout(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_bit_shift(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_cast_like(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_arg(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);

/* canonical_recurrent.c */
int sl_canonical_recurrent(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_conv_transpose(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);

/* canonical_image.c */
int sl_canonical_resize(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_upsample(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_roi_align(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);

/* canonical_random.c */
int sl_canonical_random(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);

/* canonical_einsum.c */
int sl_canonical_einsum(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);

/* canonical_qlinear.c */
int sl_canonical_qlinear_conv(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_qlinear_matmul(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);

/* canonical_signal.c */
int sl_canonical_blocks(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_one_hot(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_eye_like(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_taper(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_mel_weights(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_dft(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
int sl_canonical_grid_sample(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);
