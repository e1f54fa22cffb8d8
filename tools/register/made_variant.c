/* SPDX-License-Identifier: Apache-2.0 */
#include "made_variant.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "call_filter.h"
#include "confined.h"
#include "dataset.h"
#include "export.h"
#include "graph.h"
#include "import.h"
#include "landlock.h"
#include "lower.h"
#include "quantize.h"
#include "sample_files.h"
#include "sandbox.h"
#include "variant_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALIBRATION_MAX 256u

SL_DEFINE_CLEANUP(struct sl_graph *, sl_graph_free)
SL_DEFINE_CLEANUP(struct sl_dataset *, sl_dataset_free)

struct order {
        const struct making *making;
        int fd;
};

/* What the process has read. */
struct material {
        struct sl_dataset *samples;
        int64_t *labels;
};

static void material_deinit(struct material *material)
{
        sl_dataset_free(material->samples);
        free(material->labels);
}

/* ---- in the process ---- */

static int import(const struct making *making, struct sl_graph **ret_graph, struct sl_error *error)
{
        struct sl_graph_limits limits = sl_lower_graph_limits(&making->lowering);

        return sl_import_onnx_bound(making->source, &limits, &making->lowering.shapes, ret_graph, error);
}

static int take_labels(const struct making *making, struct material *material, struct sl_error *error)
{
        uint64_t count = sl_dataset_count(material->samples);

        if (making->label_file)
                return sl_labels_read(making->label_file, count, &material->labels, error);
        if (!making->labels)
                return 0;
        if (making->n_labels != count)
                return sl_error_set(error, EINVAL, "%" PRIu64 " samples, %" PRIu64 " before", count, making->n_labels);
        material->labels = calloc(count, sizeof(*material->labels));
        if (!material->labels)
                return sl_error_set(error, ENOMEM, "no memory for %" PRIu64 " labels", count);
        for (uint64_t i = 0; i < count; i++)
                material->labels[i] = making->labels[i];
        return 0;
}

/* Samples for the inputs of @graph. */
static int read_material(const struct making *making, const struct sl_graph *graph, struct material *material, struct made *made,
        struct sl_error *error)
{
        int r = sl_dataset_open(making->data, graph, &material->samples, error);

        if (r < 0)
                return r;
        made->count = sl_dataset_count(material->samples);
        if (made->count < 2 || made->count > REGISTER_SAMPLES_MAX)
                return sl_error_set(error, EINVAL, "%s: %" PRIu64 " samples, from 2 to %u are taken", making->data, made->count,
                        REGISTER_SAMPLES_MAX);
        made->calibration = making->calibration ? making->calibration : made->count / 4;
        if (!making->calibration && made->calibration > CALIBRATION_MAX)
                made->calibration = CALIBRATION_MAX;
        if (!made->calibration)
                made->calibration = 1;
        if (made->calibration >= made->count)
                return sl_error_set(error, EINVAL,
                        "%" PRIu64 " of %" PRIu64 " samples to calibrate on: none are left to measure on", made->calibration,
                        made->count);
        return take_labels(making, material, error);
}

static int write_file(int fd, const uint8_t *bytes, size_t n, struct sl_error *error)
{
        for (size_t done = 0; done < n;) {
                ssize_t now = write(fd, bytes + done, n - done);

                if (now < 0 && errno == EINTR)
                        continue;
                if (now <= 0)
                        return sl_error_set(error, now < 0 ? errno : EIO, "no memory for the file: %s", strerror(errno));
                done += (size_t)now;
        }
        return 0;
}

static int export(struct sl_graph *graph, const struct sl_export_property *properties, size_t n, int fd, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) uint8_t *file = NULL;
        size_t bytes;
        int r = sl_export_onnx(graph, properties, n, &file, &bytes, error);

        return r < 0 ? r : write_file(fd, file, bytes, error);
}

static int adapt(const struct making *making, bool softmax, struct sl_graph **ret_graph, struct made *made, struct sl_error *error)
{
        struct sl_adapter_wish wish = making->adapter;
        struct sl_task_ports own;
        int r = import(making, ret_graph, error);

        r = r < 0 ? r : sl_task_ports_of(*ret_graph, &own, error);
        if (r < 0)
                return r;
        wish.softmax = softmax;
        r = sl_adapt(*ret_graph, making->task ? making->task : &own, &wish, made->adapter, error);
        return r < 0 ? r : sl_task_ports_of(*ret_graph, &made->ports, error);
}

static int score(const struct making *making, const struct sl_graph *graph, const struct material *material, struct made *made,
        struct sl_error *error)
{
        const struct sl_score_options options = {
                .lowering = &making->lowering, .first = made->calibration, .labels = material->labels, .classes = made->classes};

        return sl_score(graph, material->samples, &options, &made->score, error);
}

/* Probabilities without those of a background sum to less. */
static bool are_probabilities(const struct made *made)
{
        return made->score.sums_to_one || (made->score.probabilities && strstr(made->adapter, "Slice"));
}

static int make_float(const struct order *order, struct material *material, struct made *made, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *graph = NULL;
        const struct making *making = order->making;
        int r = adapt(making, false, &graph, made, error);

        r = r < 0 ? r : read_material(making, graph, material, made, error);
        r = r < 0 ? r : score(making, graph, material, made, error);
        if (r == 0 && making->task && !making->probabilities && are_probabilities(made))
                return sl_error_set(error, EINVAL,
                        "output \"%s\" is of probabilities, the task's of logits: a Softmax is added, none is taken away",
                        graph->values[graph->outputs[0]].name);
        if (r == 0 && making->task && making->probabilities && !are_probabilities(made)) {
                graph = sl_graph_free(graph);
                r = adapt(making, true, &graph, made, error);
                r = r < 0 ? r : score(making, graph, material, made, error);
        }
        if (r < 0 || (!made->adapter[0] && !making->writes))
                return r;
        const struct sl_export_property property = {.key = "starling.adapter", .value = made->adapter};

        return export(graph, &property, made->adapter[0] ? 1 : 0, order->fd, error);
}

static size_t fill_properties(const struct making *making, struct sl_export_property properties[2])
{
        static const char *const precisions[] = {
                [SL_PRECISION_FP32] = "fp32", [SL_PRECISION_BF16] = "bf16", [SL_PRECISION_INT8] = "int8"};

        properties[0] = (struct sl_export_property){.key = "starling.precision", .value = precisions[making->lowering.precision]};
        properties[1] = (struct sl_export_property){
                .key = "starling.weights", .value = making->lowering.weights == SL_WEIGHTS_F16 ? "f16" : "bf16"};
        return making->lowering.weights == SL_WEIGHTS_FP32 ? 1 : 2;
}

static int make_narrow(const struct order *order, struct material *material, struct made *made, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *graph = NULL;
        const struct making *making = order->making;
        struct sl_export_property properties[2];
        struct sl_quantize_options options = {
                .lowering = making->lowering, .method = SL_RANGE_MSE, .percentile = 99.99, .max_loss = making->max_loss};
        struct sl_variant variant;
        int r = import(making, &graph, error);

        r = r < 0 ? r : sl_task_ports_of(graph, &made->ports, error);
        r = r < 0 ? r : read_material(making, graph, material, made, error);
        if (r < 0)
                return r;
        options.calibration = made->calibration;
        options.labels = material->labels;
        r = sl_quantize(making->source, &options, material->samples, &variant, error);
        if (r < 0)
                return r;
        made->n_products = variant.n_products;
        made->n_float = variant.n_float;
        made->score.samples = variant.accuracy.samples;
        made->score.right =
                isnan(variant.accuracy.top_1) ? 0 : (uint64_t)llround(variant.accuracy.top_1 * (double)variant.accuracy.samples);
        r = export(variant.graph, properties, fill_properties(making, properties), order->fd, error);
        sl_variant_deinit(&variant);
        return r;
}

static int make_here(void *context, void *ret_answer, struct sl_error *error)
{
        const struct order *order = context;
        const struct sl_lower_options *lowering = &order->making->lowering;
        bool is_float = lowering->precision == SL_PRECISION_FP32 && lowering->weights == SL_WEIGHTS_FP32;
        struct material material = {NULL, NULL};
        int r = (is_float ? make_float : make_narrow)(order, &material, ret_answer, error);

        material_deinit(&material);
        return r;
}

/* ---- around it ---- */

static int run_confined(struct order *order, struct sample_files *files, struct made *ret_made, struct sl_error *error)
{
        const struct making *making = order->making;
        const struct sl_call_rule calls[] = {VARIANT_FILE_CALLS(order->fd)};
        const struct confined confined = {.path = making->source,
                .seconds = making->seconds,
                .calls = calls,
                .n_calls = sizeof(calls) / sizeof(calls[0]),
                .paths = files->paths,
                .n_paths = files->n,
                .fd = order->fd,
                .run = make_here,
                .context = order,
                .answer_bytes = sizeof(*ret_made)};

        return confined_run(&confined, ret_made, error);
}

/* What a process says that may have been taken over. */
static int check_answer(const struct made *made, struct sl_error *error)
{
        const struct sl_score *score = &made->score;

        if (made->count > REGISTER_SAMPLES_MAX || made->calibration >= made->count ||
                score->samples != made->count - made->calibration || score->right > score->samples ||
                made->ports.n_inputs > SL_ADAPTER_PORTS_MAX || made->ports.n_outputs > SL_ADAPTER_PORTS_MAX ||
                !memchr(made->adapter, 0, sizeof(made->adapter)))
                return sl_error_set(error, EPROTO, "the process that measures gave an answer that cannot be");
        return 0;
}

int make_variant(const struct making *making, struct made *ret_made, int *ret_fd, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = variant_file_new();
        struct order order = {making, fd};
        struct sample_files files = {.n = 0};
        int r = fd < 0 ? sl_error_set(error, ENOMEM, "no memory for the file") : sample_files_add(&files, making->data);

        if (r == 0 && making->label_file)
                r = sample_files_add(&files, making->label_file);
        if (r < 0 && !error->text[0])
                sl_error_set(error, -r, "no memory for the names of samples");
        r = r < 0 ? r : run_confined(&order, &files, ret_made, error);
        sample_files_deinit(&files);
        r = r < 0 ? r : check_answer(ret_made, error);
        if (r < 0)
                return r;
        *ret_fd = lseek(fd, 0, SEEK_END) > 0 ? fd : -1;
        if (*ret_fd >= 0)
                fd = -1;
        return 0;
}
