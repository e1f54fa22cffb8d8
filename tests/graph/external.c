/* SPDX-License-Identifier: Apache-2.0 */
/*
 * External data lies in the model's folder and nowhere else.
 */
#include "base/error.h"
#include "builder.h"
#include "import.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
        char root[64], model[128], folder[96];
};

static void write_file(const char *path, const void *bytes, size_t n)
{
        FILE *file = fopen(path, "wb");

        cr_assert(file, "%s", path);
        cr_assert_eq(fwrite(bytes, 1, n, file), n);
        fclose(file);
}

/* root/secret.bin, root/model/model.onnx (later), root/model/data.bin, root/model/sub/data.bin; 4 floats after 4 others. */
static void make_place(struct place *place)
{
        const float data[8] = {9, 9, 9, 9, 1, 2, 3, 4};
        char path[160];

        snprintf(place->root, sizeof(place->root), "/tmp/starling-external-XXXXXX");
        cr_assert(mkdtemp(place->root));
        snprintf(place->folder, sizeof(place->folder), "%s/model", place->root);
        cr_assert_eq(mkdir(place->folder, 0700), 0);
        snprintf(path, sizeof(path), "%s/sub", place->folder);
        cr_assert_eq(mkdir(path, 0700), 0);
        snprintf(path, sizeof(path), "%s/secret.bin", place->root);
        write_file(path, data, sizeof(data));
        snprintf(path, sizeof(path), "%s/data.bin", place->folder);
        write_file(path, data, sizeof(data));
        snprintf(path, sizeof(path), "%s/sub/data.bin", place->folder);
        write_file(path, data, sizeof(data));
        snprintf(path, sizeof(path), "%s/link.bin", place->folder);
        cr_assert_eq(symlink("../secret.bin", path), 0);
        snprintf(path, sizeof(path), "%s/up", place->folder);
        cr_assert_eq(symlink("..", path), 0);
        snprintf(path, sizeof(path), "%s/pipe", place->folder);
        cr_assert_eq(mkfifo(path, 0600), 0);
        snprintf(place->model, sizeof(place->model), "%s/model.onnx", place->folder);
}

static void remove_place(const struct place *place)
{
        static const char *const paths[] = {"model/sub/data.bin", "model/data.bin", "model/link.bin", "model/up", "model/pipe",
                "model/model.onnx", "secret.bin", "model/sub", "model", ""};
        char path[160];

        for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
                snprintf(path, sizeof(path), "%s/%s", place->root, paths[i]);
                remove(path);
        }
}

static Onnx__StringStringEntryProto *entry(struct builder *b, const char *key, const char *value)
{
        Onnx__StringStringEntryProto *made = builder_alloc(b, sizeof(*made));

        onnx__string_string_entry_proto__init(made);
        made->key = (char *)key;
        made->value = (char *)value;
        return made;
}

static struct builder *external_model(const char *location, const char *offset, const char *length)
{
        struct builder *b = builder_new(13);
        Onnx__TensorProto *tensor = builder_random(b, "w", DIMS(4, 1));

        tensor->has_raw_data = 0;
        tensor->has_data_location = 1;
        tensor->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
        tensor->external_data = builder_alloc(b, 3 * sizeof(void *));
        tensor->external_data[tensor->n_external_data++] = entry(b, "location", location);
        if (offset)
                tensor->external_data[tensor->n_external_data++] = entry(b, "offset", offset);
        if (length)
                tensor->external_data[tensor->n_external_data++] = entry(b, "length", length);
        builder_input(b, "x", SL_DTYPE_F32, DIMS(1, 4));
        builder_node(b, "MatMul", "x,w", "y");
        builder_output(b, "y");
        return b;
}

/* Imports a model with that external data; the sum of its weights, or the error. */
static int import_external(const char *location, const char *offset, const char *length, float *ret_sum, struct sl_error *error)
{
        struct builder *b = external_model(location, offset, length);
        struct sl_graph *graph = NULL;
        struct place place;
        size_t n_bytes;
        uint8_t *bytes = builder_pack(b, &n_bytes);
        int result;

        make_place(&place);
        write_file(place.model, bytes, n_bytes);
        result = sl_import_onnx(place.model, NULL, &graph, error);
        if (result == 0)
                evaluate_floats(graph, 1, (float[]){1, 1, 1, 1}, ret_sum, 1);
        sl_graph_free(graph);
        remove_place(&place);
        builder_free(b);
        return result;
}

static void expect_error(const char *location, const char *offset, const char *length, int expected, const char *text)
{
        struct sl_error error = {0};
        float ignored;
        int result = import_external(location, offset, length, &ignored, &error);

        cr_assert_eq(result, expected, "%s: %d, %s", location, result, error.text);
        cr_assert(strstr(error.text, text), "%s: %s", location, error.text);
}

Test(external, data_in_the_folder_or_below_is_mapped)
{
        struct sl_error error = {0};
        float sum = 0;

        cr_assert_eq(import_external("data.bin", "16", "16", &sum, &error), 0, "%s", error.text);
        cr_assert_float_eq(sum, 10, 1e-6);
        cr_assert_eq(import_external("sub/data.bin", NULL, NULL, &sum, &error), 0, "%s", error.text);
        cr_assert_float_eq(sum, 36, 1e-6);
}

Test(external, data_at_an_odd_offset_are_moved_to_a_whole_one)
{
        struct sl_error error = {0};
        float sum = 0;

        cr_assert_eq(import_external("data.bin", "2", "16", &sum, &error), 0, "%s", error.text);
}

Test(external, a_path_that_leads_outside_is_refused)
{
        expect_error("../secret.bin", NULL, NULL, -EACCES, "leads outside");
        expect_error("sub/../../secret.bin", NULL, NULL, -EACCES, "leads outside");
        expect_error("/etc/passwd", NULL, NULL, -EACCES, "leads outside");
        expect_error("", NULL, NULL, -EACCES, "leads outside");
        expect_error(".", NULL, NULL, -EACCES, "leads outside");
}

Test(external, a_link_is_not_followed)
{
        expect_error("link.bin", NULL, NULL, -EACCES, "over a link");
        expect_error("up/secret.bin", NULL, NULL, -EACCES, "over a link");
}

Test(external, what_is_no_regular_file_is_refused)
{
        expect_error("pipe", NULL, NULL, -EACCES, "no regular file");
        expect_error("sub", NULL, NULL, -EACCES, "no regular file");
        expect_error("missing.bin", NULL, NULL, -ENOENT, "missing.bin");
}

Test(external, offset_and_length_lie_in_the_file_and_fit_the_shape)
{
        expect_error("data.bin", "20", NULL, -EBADMSG, "reach beyond");
        expect_error("data.bin", "18446744073709551608", NULL, -EBADMSG, "reach beyond");
        expect_error("data.bin", "0", "12", -EBADMSG, "external length 12");
        expect_error("data.bin", "-1", NULL, -EBADMSG, "is no number");
        expect_error("data.bin", "1x", NULL, -EBADMSG, "is no number");
}

Test(external, a_model_from_memory_has_no_folder)
{
        struct builder *b = external_model("data.bin", NULL, NULL);

        builder_expect(b, -EACCES, "no folder");
        builder_free(b);
}
