/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling quantize`: a process without rights (confined.h) reads the model and the samples and makes a variant, as ONNX with its
 * accuracy beside it, in memory; this one writes that where it is wanted.
 */
#include "quantize.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/value.h"
#include "call_filter.h"
#include "command.h"
#include "command_options.h"
#include "confined.h"
#include "dataset.h"
#include "export.h"
#include "graph.h"
#include "import.h"
#include "landlock.h"
#include "lower.h"
#include "sample_files.h"
#include "sandbox.h"
#include "variant_note.h"
#include "variant_file.h"
#include "whole_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROPERTIES_MAX 16
#define VALUE_BYTES    1024
#define LINE_BYTES     (VALUE_BYTES + 64)
#define CUT_OFF        ",\xe2\x80\xa6" /* an ellipsis in UTF-8 */

SL_DEFINE_CLEANUP(struct sl_graph *, sl_graph_free)
SL_DEFINE_CLEANUP(struct sl_dataset *, sl_dataset_free)

enum { OPTIONS = OPTIONS_BEGIN, QUANTIZE_OPTIONS(OPTION_ID) };

static const struct option options[] = {QUANTIZE_OPTIONS(OPTION_GETOPT){0}};

static const char *const methods[] = {
        [SL_RANGE_MINMAX] = "minmax",
        [SL_RANGE_PERCENTILE] = "percentile",
        [SL_RANGE_MSE] = "mse",
};

struct wish {
        const char *model, *data, *labels, *output;
        bool has_precision; /* it was asked for */
        struct sl_quantize_options options;
};

/* What sl_value_...() says of it. */
static int refuse_value(const char *option, const char *value, const char *wanted, struct sl_error *error)
{
        return sl_error_set(error, EINVAL, "--%s: \"%s\" is %s", option, value, wanted);
}

static int take_method(struct wish *wish, const char *value, struct sl_error *error)
{
        char wanted[SL_WISH_BYTES];
        uint64_t method;

        if (sl_value_choice(value, methods, sizeof(methods) / sizeof(*methods), &method, wanted) < 0)
                return refuse_value("method", value, wanted, error);
        wish->options.method = (enum sl_range_method)method;
        return 0;
}

static int take_samples(struct wish *wish, const char *value, struct sl_error *error)
{
        char wanted[SL_WISH_BYTES];

        if (sl_value_number(value, 1, UINT32_MAX, &wish->options.calibration, wanted) < 0)
                return refuse_value("samples", value, wanted, error);
        return 0;
}

static int take_real(double *real, const char *option, const char *value, double least, double most, struct sl_error *error)
{
        char wanted[SL_WISH_BYTES];

        return sl_value_real(value, least, most, real, wanted) < 0 ? refuse_value(option, value, wanted, error) : 0;
}

static int take_option(struct wish *wish, enum sl_lower_option option, const char *value, struct sl_error *error)
{
        char wanted[SL_WISH_BYTES];

        if (sl_lower_options_set(&wish->options.lowering, option, value, wanted) < 0)
                return refuse_value(sl_lower_option_name(option), value, wanted, error);
        return 0;
}

/* By itself it leaves the precision as it is. */
static int take_weights(struct wish *wish, const char *value, struct sl_error *error)
{
        if (!wish->has_precision)
                wish->options.lowering.precision = SL_PRECISION_FP32;
        return take_option(wish, SL_LOWER_OPTION_weights, value, error);
}

static int take(struct wish *wish, int option, const char *value, struct sl_error *error)
{
        switch (option) {
        case OPTION_CALIBRATION:
                wish->data = value;
                return 0;
        case OPTION_LABELS:
                wish->labels = value;
                return 0;
        case OPTION_METHOD:
                return take_method(wish, value, error);
        case OPTION_PERCENTILE:
                return take_real(&wish->options.percentile, "percentile", value, 50, 100, error);
        case OPTION_SAMPLES:
                return take_samples(wish, value, error);
        case OPTION_MAX_LOSS:
                return take_real(&wish->options.max_loss, "max-loss", value, 0, 1, error);
        case OPTION_PRECISION:
                wish->has_precision = true;
                return take_option(wish, SL_LOWER_OPTION_precision, value, error);
        case OPTION_WEIGHTS:
                return take_weights(wish, value, error);
        case 'o':
                wish->output = value;
                return 0;
        case 'O':
                wish->options.lowering.shapes_known = true;
                return sl_lower_options_parse(&wish->options.lowering, value, error);
        default:
                return -EINVAL;
        }
}

/* -EINVAL without a text: wrong usage. */
static int parse(int argc, char **argv, struct wish *wish, struct sl_error *error)
{
        for (int option; (option = next_option(argc, argv, options)) != -1;)
                if (take(wish, option, optarg, error) < 0)
                        return -EINVAL;
        if (argc - optind != 1 || !wish->data || !wish->output)
                return -EINVAL;
        wish->model = argv[optind];
        if (wish->options.lowering.precision != SL_PRECISION_FP32 || wish->options.lowering.weights != SL_WEIGHTS_FP32)
                return 0;
        return sl_error_set(error, EINVAL, "precision fp32 with weights of fp32 is the model itself");
}

static int read_data(struct wish *wish, struct sl_dataset **ret_samples, int64_t **ret_labels, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *graph = NULL;
        struct sl_graph_limits limits = sl_lower_graph_limits(&wish->options.lowering);
        int r = sl_import_onnx_bound(wish->model, &limits, &wish->options.lowering.shapes, &graph, error);

        r = r < 0 ? r : sl_dataset_open(wish->data, graph, ret_samples, error);
        if (r < 0 || !wish->labels)
                return r;
        return sl_labels_read(wish->labels, sl_dataset_count(*ret_samples), ret_labels, error);
}

/* The texts of the properties; a line of what is printed is one of them. */
struct report {
        size_t n;
        struct sl_export_property properties[PROPERTIES_MAX];
        char values[PROPERTIES_MAX][VALUE_BYTES];
};

__attribute__((format(printf, 3, 4))) static void add_property(struct report *report, const char *key, const char *format, ...)
{
        va_list args;

        if (report->n == PROPERTIES_MAX)
                return;
        va_start(args, format);
        vsnprintf(report->values[report->n], VALUE_BYTES, format, args);
        va_end(args);
        report->properties[report->n] = (struct sl_export_property){.key = key, .value = report->values[report->n]};
        report->n++;
}

/* The most whole names that there is room for: a longer value is not read again. */
static int names_length(const char *names)
{
        size_t room = VALUE_BYTES - 1 - strlen(CUT_OFF);
        const char *end = names;

        if (strlen(names) < VALUE_BYTES)
                return (int)strlen(names);
        for (const char *at = strchr(names, ','); at && (size_t)(at - names) <= room; at = strchr(at + 1, ','))
                end = at;
        return (int)(end - names);
}

static void add_names(struct report *report, const char *key, const char *names)
{
        int length = names_length(names);

        add_property(report, key, "%.*s%s", length, names, !names[length] ? "" : length ? CUT_OFF : CUT_OFF + 1);
}

static void fill_report(const struct wish *wish, const struct sl_variant *variant, struct report *report)
{
        static const char *const precisions[] = {
                [SL_PRECISION_FP32] = "fp32", [SL_PRECISION_BF16] = "bf16", [SL_PRECISION_INT8] = "int8"};
        bool bytes = wish->options.lowering.precision == SL_PRECISION_INT8;
        const struct sl_accuracy *accuracy = &variant->accuracy;

        add_property(report, "starling.precision", "%s", precisions[wish->options.lowering.precision]);
        if (wish->options.lowering.weights != SL_WEIGHTS_FP32)
                add_property(report, "starling.weights", "%s", wish->options.lowering.weights == SL_WEIGHTS_F16 ? "f16" : "bf16");
        if (bytes && wish->options.method == SL_RANGE_PERCENTILE)
                add_property(report, "starling.calibration", "percentile %g of %" PRIu64 " samples", wish->options.percentile,
                        wish->options.calibration);
        else if (bytes)
                add_property(report, "starling.calibration", "%s of %" PRIu64 " samples", methods[wish->options.method],
                        wish->options.calibration);
        add_property(report, "starling.measured_samples", "%" PRIu64, accuracy->samples);
        add_property(report, "starling.cosine", "%.6f", accuracy->cosine);
        if (!isnan(accuracy->agreement))
                add_property(report, "starling.top_1_agreement", "%.4f", accuracy->agreement);
        if (!isnan(accuracy->top_1)) {
                add_property(report, "starling.top_1", "%.4f", accuracy->top_1);
                add_property(report, "starling.top_1_float32", "%.4f", accuracy->top_1_float32);
        }
        if (bytes)
                add_property(report, "starling.float_products", "%u of %u", variant->n_float, variant->n_products);
        if (variant->n_float)
                add_names(report, "starling.float_nodes", variant->float_nodes);
}

/* What the process that makes the variant says of it: it may be anything, like the file that it has written. */
struct answer {
        uint32_t n_products, n_float;
        char lines[PROPERTIES_MAX * LINE_BYTES];
};

struct order {
        struct wish *wish;
        int fd; /* of the file that is made, in memory */
};

static int write_bytes(int fd, const uint8_t *bytes, size_t n)
{
        for (size_t done = 0; done < n;) {
                ssize_t now = write(fd, bytes + done, n - done);

                if (now < 0 && errno == EINTR)
                        continue;
                if (now <= 0)
                        return now < 0 ? -errno : -EIO;
                done += (size_t)now;
        }
        return 0;
}

static void print_report(const struct report *report, struct answer *answer)
{
        char *at = answer->lines;

        for (size_t i = 0; i < report->n; i++)
                at += snprintf(
                        at, LINE_BYTES, "%-18s%s\n", strchr(report->properties[i].key, '.') + 1, report->properties[i].value);
}

static int write_variant(
        const struct order *order, const struct sl_variant *variant, struct answer *ret_answer, struct sl_error *error)
{
        struct report report = {.n = 0};
        SL_CLEANUP(sl_cleanup_free) uint8_t *file = NULL;
        size_t bytes;
        int r;

        fill_report(order->wish, variant, &report);
        r = sl_export_onnx(variant->graph, report.properties, report.n, &file, &bytes, error);
        if (r < 0)
                return r;
        r = write_bytes(order->fd, file, bytes);
        if (r < 0)
                return sl_error_set(error, -r, "memory for the file: %s", strerror(-r));
        print_report(&report, ret_answer);
        ret_answer->n_products = variant->n_products;
        ret_answer->n_float = variant->n_float;
        return 0;
}

/* In a process of its own. */
static int quantize_here(void *context, void *ret_answer, struct sl_error *error)
{
        const struct order *order = context;
        struct wish *wish = order->wish;
        SL_CLEANUP(sl_cleanup_sl_dataset_free) struct sl_dataset *samples = NULL;
        SL_CLEANUP(sl_cleanup_free) int64_t *labels = NULL;
        struct sl_variant variant;
        int r = read_data(wish, &samples, &labels, error);

        if (r < 0)
                return r;
        wish->options.labels = labels;
        if (!wish->options.calibration)
                wish->options.calibration = sl_dataset_count(samples) / 2;
        r = sl_quantize(wish->model, &wish->options, samples, &variant, error);
        if (r < 0)
                return r;
        r = write_variant(order, &variant, ret_answer, error);
        sl_variant_deinit(&variant);
        return r;
}

/* Time and memory are the user's, as ever: how long it takes is a matter of the samples. */
static int quantize_confined(struct order *order, struct answer *ret_answer, struct sl_error *error)
{
        const struct sl_call_rule calls[] = {VARIANT_FILE_CALLS(order->fd)};
        struct sample_files files = {.n = 0};
        struct confined confined = {.path = order->wish->model,
                .seconds = SL_SANDBOX_NO_LIMIT,
                .calls = calls,
                .n_calls = sizeof(calls) / sizeof(calls[0]),
                .fd = order->fd,
                .run = quantize_here,
                .context = order,
                .answer_bytes = sizeof(*ret_answer)};
        int r = sample_files_add(&files, order->wish->data);

        if (r == 0 && order->wish->labels)
                r = sample_files_add(&files, order->wish->labels);
        confined.paths = files.paths;
        confined.n_paths = files.n;
        r = r < 0 ? sl_error_set(error, -r, "no memory for the names of samples") : confined_run(&confined, ret_answer, error);
        if (r == -ECHILD)
                r = sl_error_prefix(error, r, "\"%s\"", order->wish->model);
        sample_files_deinit(&files);
        return r;
}

static void warn_if_float(const struct wish *wish, const struct answer *answer)
{
        if (wish->options.lowering.precision != SL_PRECISION_INT8 || answer->n_float < answer->n_products)
                return;
        if (!answer->n_products)
                complain(STATUS_OK, "quantize", "warning: \"%s\" has no products with constant weights: nothing is quantized",
                        wish->model);
        else
                complain(STATUS_OK, "quantize", "warning: nothing is quantized: with --max-loss %g all %u products stay float32",
                        wish->options.max_loss, answer->n_products);
}

static int quantize(struct wish *wish, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = variant_file_new();
        SL_CLEANUP(sl_cleanup_free) struct answer *answer = malloc(sizeof(*answer));
        char place[PATH_MAX];
        int r = find_whole_file(wish->output, place, error);

        if (r < 0)
                return r;
        if (fd < 0 || !answer)
                return sl_error_set(error, ENOMEM, "no memory for the file");
        r = quantize_confined(&(struct order){wish, fd}, answer, error);
        r = r < 0 ? r : copy_whole_file(place, fd, error);
        if (r < 0)
                return r;
        printf("%.*s", (int)sizeof(answer->lines) - 1, answer->lines);
        warn_if_float(wish, answer);
        return 0;
}

int command_quantize(int argc, char **argv)
{
        struct wish wish = {.options = {.method = SL_RANGE_MSE, .percentile = 99.99, .max_loss = 0.01}};
        struct sl_error error = {""};
        int r;

        sl_lower_options_init(&wish.options.lowering);
        wish.options.lowering.precision = SL_PRECISION_INT8;
        if (parse(argc, argv, &wish, &error) < 0)
                return error.text[0] ? complain(STATUS_USAGE, "quantize", "%s", error.text) : complain_usage("quantize");
        r = quantize(&wish, &error);
        if (r == 0) {
                note_if_model_is_slower("quantize", wish.output, NULL, &wish.options.lowering);
                return STATUS_OK;
        }
        return complain(STATUS_FAILED, "quantize", "%s", error.text[0] ? error.text : strerrordesc_np(-r));
}
