/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes that tools give to what a model leaves open, and how often the file is imported for that. */
#include "base/error.h"
#include "builder.h"
#include "import.h"
#include "lower_options.h"
#include "open_sizes.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t n_imports;

int __real_sl_import_onnx_file(const struct sl_model_file *file, const struct sl_graph_limits *limits,
        const struct sl_dim_sizes *sizes, struct sl_graph **ret_graph, struct sl_error *error);
int __wrap_sl_import_onnx_file(const struct sl_model_file *file, const struct sl_graph_limits *limits,
        const struct sl_dim_sizes *sizes, struct sl_graph **ret_graph, struct sl_error *error);

int __wrap_sl_import_onnx_file(const struct sl_model_file *file, const struct sl_graph_limits *limits,
        const struct sl_dim_sizes *sizes, struct sl_graph **ret_graph, struct sl_error *error)
{
        n_imports++;
        return __real_sl_import_onnx_file(file, limits, sizes, ret_graph, error);
}

/* Of x [N, M, 3] with these sizes, or NULL for none. */
static int choose(const char *shapes, struct sl_lower_options *options, struct sl_error *error)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, -2, 3));
        char path[] = "/tmp/starling-sizes-XXXXXX";
        size_t n_bytes;
        const uint8_t *bytes;
        int fd = mkstemp(path), r;

        builder_node(b, "Relu", "x", "y");
        builder_output(b, "y");
        bytes = builder_pack(b, &n_bytes);
        cr_assert(fd >= 0 && write(fd, bytes, n_bytes) == (ssize_t)n_bytes);
        close(fd);
        builder_free(b);
        sl_lower_options_init(options);
        options->shapes_known = true;
        cr_assert_eq(shapes ? sl_lower_options_parse(options, shapes, error) : 0, 0, "%s", error->text);
        n_imports = 0;
        r = sl_open_sizes_choose(path, NULL, 1, options, error);
        unlink(path);
        return r;
}

Test(open_sizes, that_are_given_cost_no_further_import)
{
        struct sl_lower_options options;
        struct sl_error error = {""};

        cr_assert_eq(choose(NULL, &options, &error), 0, "%s", error.text);
        cr_expect_eq(sl_dim_sizes_find(&options.shapes, "M"), 64);
        cr_expect_eq(n_imports, 1);
        cr_assert_eq(choose("shapes=M=7", &options, &error), 0, "%s", error.text);
        cr_expect_eq(sl_dim_sizes_find(&options.shapes, "M"), 7);
        cr_expect_eq(n_imports, 1);
}

/* Whether or not another dimension has a size already. */
Test(open_sizes, of_a_name_that_no_input_has_are_refused_at_once)
{
        static const char *const rows[] = {"shapes=width=7", "shapes=M=7,width=7"};

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct sl_lower_options options;
                struct sl_error error = {""};

                cr_expect_eq(choose(rows[i], &options, &error), -EINVAL);
                cr_expect_str_eq(error.text, "shapes: no input has an open dimension \"width\": x [N,M,3]");
                cr_expect_eq(n_imports, 1);
        }
}
