/* SPDX-License-Identifier: Apache-2.0 */
/*
 * External data lies in the model's folder and nowhere else.
 */
#include "base/error.h"
#include "builder.h"
#include "import.h"
#include "model_file.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
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
        snprintf(path, sizeof(path), "%s/inner.bin", place->folder);
        cr_assert_eq(symlink("sub/data.bin", path), 0);
        snprintf(path, sizeof(path), "%s/below", place->folder);
        cr_assert_eq(symlink("sub", path), 0);
        snprintf(path, sizeof(path), "%s/to_pipe", place->folder);
        cr_assert_eq(symlink("pipe", path), 0);
        snprintf(path, sizeof(path), "%s/to_device", place->folder);
        cr_assert_eq(symlink("/dev/zero", path), 0);
        snprintf(path, sizeof(path), "%s/itself", place->folder);
        cr_assert_eq(symlink("itself", path), 0);
        snprintf(path, sizeof(path), "%s/pipe", place->folder);
        cr_assert_eq(mkfifo(path, 0600), 0);
        snprintf(place->model, sizeof(place->model), "%s/model.onnx", place->folder);
}

static void remove_place(const struct place *place)
{
        static const char *const paths[] = {"model/sub/data.bin", "model/data.bin", "model/link.bin", "model/up", "model/inner.bin",
                "model/below", "model/to_pipe", "model/to_device", "model/itself", "model/pipe", "model/model.onnx", "secret.bin",
                "model/sub", "model", ""};
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

Test(external, a_path_may_begin_where_it_is)
{
        struct sl_error error = {0};
        float sum = 0;

        cr_assert_eq(import_external("./data.bin", "16", "16", &sum, &error), 0, "%s", error.text);
        cr_assert_float_eq(sum, 10, 1e-6);
        cr_assert_eq(import_external("././sub/./data.bin", NULL, NULL, &sum, &error), 0, "%s", error.text);
}

Test(external, a_path_that_leads_outside_is_refused)
{
        expect_error("../secret.bin", NULL, NULL, -EACCES, "leads outside");
        expect_error("./../secret.bin", NULL, NULL, -EACCES, "leads outside");
        expect_error("sub/../../secret.bin", NULL, NULL, -EACCES, "leads outside");
        expect_error("/etc/passwd", NULL, NULL, -EACCES, "leads outside");
        expect_error("", NULL, NULL, -EACCES, "leads outside");
        expect_error(".", NULL, NULL, -EACCES, "leads outside");
        expect_error("./", NULL, NULL, -EACCES, "leads outside");
}

Test(external, a_link_is_followed_within_the_folder)
{
        struct sl_error error = {0};
        float sum = 0;

        cr_assert_eq(import_external("inner.bin", NULL, NULL, &sum, &error), 0, "%s", error.text);
        cr_assert_float_eq(sum, 36, 1e-6);
}

Test(external, a_link_is_not_followed_out_of_the_folder_or_to_a_folder)
{
        expect_error("link.bin", NULL, NULL, -EACCES, "over a link");
        expect_error("up/secret.bin", NULL, NULL, -EACCES, "over a link");
        expect_error("below/data.bin", NULL, NULL, -EACCES, "over a link");
        expect_error("itself", NULL, NULL, -EACCES, "over a link");
        expect_error("to_device", NULL, NULL, -EACCES, "over a link");
        expect_error("to_pipe", NULL, NULL, -EACCES, "no regular file");
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

/* As a cache of downloads has it: names that are links into a folder of blobs, the model's among them; the weights are @blob. */
static int import_over_links(const char *blob, struct sl_error *error)
{
        struct builder *b = external_model("weights.bin", "16", "16");
        struct sl_graph *graph = NULL;
        struct place place;
        char path[200], target[200];
        size_t n_bytes;
        uint8_t *bytes = builder_pack(b, &n_bytes);
        int result;

        make_place(&place);
        snprintf(path, sizeof(path), "%s/sub/0123", place.folder);
        write_file(path, bytes, n_bytes);
        cr_assert_eq(symlink("sub/0123", place.model), 0);
        snprintf(path, sizeof(path), "%s/weights.bin", place.folder);
        snprintf(target, sizeof(target), "%s", blob);
        cr_assert_eq(symlink(target, path), 0);
        result = sl_import_onnx(place.model, NULL, &graph, error);
        sl_graph_free(graph);
        remove(path);
        snprintf(path, sizeof(path), "%s/sub/0123", place.folder);
        remove(path);
        remove_place(&place);
        builder_free(b);
        return result;
}

Test(external, data_beside_the_file_that_a_link_leads_to_are_its_own)
{
        struct sl_error error = {0};

        cr_assert_eq(import_over_links("sub/data.bin", &error), 0, "%s", error.text);
        cr_assert_eq(import_over_links("data.bin", &error), -EACCES, "%s", error.text);
        cr_assert_eq(import_over_links("../secret.bin", &error), -EACCES, "%s", error.text);
}

/* What @link of the model's folder leads to, where links may also lead to @other below the root. */
static int open_with_other(const char *link, const char *other)
{
        struct sl_model_folder folder = {.fd = -1};
        struct sl_error error = {0};
        struct place place;
        char path[160];
        const char *paths[] = {"/nowhere", path};
        int fd = -1, r;

        make_place(&place);
        write_file(place.model, "", 1);
        snprintf(path, sizeof(path), "%s%s", place.root, other);
        cr_assert_eq(sl_model_folder_open(place.model, &(struct sl_data_folders){paths, 2}, &folder), 0);
        r = sl_model_folder_open_file(&folder, link, &fd, &error);
        if (r == 0)
                close(fd);
        sl_model_folder_close(&folder);
        remove_place(&place);
        return r;
}

Test(external, a_link_may_lead_into_folders_that_are_said_and_nowhere_else)
{
        cr_expect_eq(open_with_other("link.bin", ""), 0, "the root, in which the secret lies");
        cr_expect_eq(open_with_other("link.bin", "/model"), -EACCES);
        cr_expect_eq(open_with_other("link.bin", "/sec"), -EACCES, "no folder of that name");
        cr_expect_eq(open_with_other("inner.bin", "/nothing"), 0, "its own folder still");
        cr_expect_eq(open_with_other("up/secret.bin", ""), -EACCES, "a folder is never a link");
        cr_expect_eq(open_with_other("../secret.bin", ""), -EACCES, "a location never leads outside");
        cr_expect_eq(open_with_other("to_pipe", ""), -EACCES);
}

struct flipper {
        char link[160], spare[160];
        atomic_bool stop;
};

/* Lets the link lead inside and outside in turns. */
static void *flip(void *argument)
{
        struct flipper *f = argument;

        for (unsigned i = 0; !atomic_load(&f->stop); i++) {
                cr_assert_eq(symlink(i % 2 ? "../secret.bin" : "sub/data.bin", f->spare), 0);
                cr_assert_eq(rename(f->spare, f->link), 0);
        }
        return NULL;
}

Test(external, a_link_that_changes_meanwhile_never_leads_outside)
{
        struct sl_model_folder folder = {.fd = -1};
        struct flipper f = {.stop = false};
        struct stat secret, opened;
        struct place place;
        pthread_t thread;
        char path[160];
        int n_opened = 0, n_refused = 0;

        make_place(&place);
        write_file(place.model, "", 1);
        snprintf(path, sizeof(path), "%s/secret.bin", place.root);
        cr_assert_eq(stat(path, &secret), 0);
        snprintf(f.link, sizeof(f.link), "%s/flips", place.folder);
        snprintf(f.spare, sizeof(f.spare), "%s/spare", place.folder);
        cr_assert_eq(symlink("sub/data.bin", f.link), 0);
        cr_assert_eq(sl_model_folder_open(place.model, NULL, &folder), 0);
        cr_assert_eq(pthread_create(&thread, NULL, flip, &f), 0);
        while (n_opened < 200 || n_refused < 200) {
                struct sl_error error = {0};
                int fd = -1;

                if (sl_model_folder_open_file(&folder, "flips", &fd, &error) < 0) {
                        n_refused++;
                        continue;
                }
                n_opened++;
                cr_assert_eq(fstat(fd, &opened), 0);
                cr_assert_neq(opened.st_ino, secret.st_ino);
                close(fd);
        }
        atomic_store(&f.stop, true);
        pthread_join(thread, NULL);
        sl_model_folder_close(&folder);
        remove(f.link);
        remove(f.spare);
        remove_place(&place);
}
