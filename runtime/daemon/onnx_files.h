/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The .onnx files of a folder: which one is meant, and what there is where none is. Hidden entries do not count; links are
 * followed. Nothing is opened but folders. Any thread; no state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_ONNX_FILE_BYTES 256

struct sl_onnx_files {
        uint32_t n;
        bool has_model;                                             /* one of them is model.onnx */
        char first[SL_ONNX_FILE_BYTES], second[SL_ONNX_FILE_BYTES]; /* in the alphabet's order; "": none */
};

/* Regular files that lie in @folder itself. A folder that cannot be read has none. */
struct sl_onnx_files sl_onnx_files_in(const char *folder);

/* model.onnx, or the only one; NULL: none, or nobody can say which. */
const char *sl_onnx_files_choose(const struct sl_onnx_files *files);

/* "two .onnx files, "a.onnx" and "b.onnx"" of those among which nobody can choose. */
void sl_onnx_files_print(const struct sl_onnx_files *files, char *ret_text, size_t bytes);

/* Whether a file name ends in .onnx, with something before it: *ret_stem is how long that is. */
bool sl_onnx_file_is(const char *name, size_t *ret_stem);

/*
 * What there is in a folder without such a file: "there is onnx/model.onnx: move it to @place" of the first that lies deeper, three
 * levels at most; else "it holds a, b and 7 more"; or "it is empty".
 */
void sl_onnx_files_hint(const char *folder, const char *place, char *ret_text, size_t bytes);
