/* SPDX-License-Identifier: Apache-2.0 */
#include "measuring.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/value.h"
#include "file_hash.h"
#include "freshness.h"
#include "lower.h"
#include "made_variant.h"
#include "model_digest.h"
#include "model_name.h"
#include "register_wish.h"
#include "registration_record.h"
#include "score.h"
#include "stop.h"
#include "variant_timing.h"
#include "whole_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FORMAT     "1" /* of keys */
#define KIND_BYTES 19u /* of a network's name are left for its kind */

SL_DEFINE_CLEANUP(struct sl_freshness *, sl_freshness_free)

struct measuring {
        const struct register_wish *wish;
        struct registration *registration;
        char record[PATH_MAX];
        uint64_t end_ns;
        struct made *made; /* of the last step */
        struct sl_task_ports task;
        bool task_known, probabilities;
};

/* ---- networks and candidates ---- */

static int hash_network(struct registered_network *network, struct sl_error *error)
{
        const struct sl_stop stop = {.verdict = NULL};
        struct sl_lower_options lowering;
        struct sl_model_content content = {.by_status = false};
        int r;

        sl_lower_options_init(&lowering);
        r = sl_model_digest(network->path, lowering.model_bytes_max, &stop, &content);
        if (r < 0)
                return sl_error_set(error, -r, "\"%s\": %s", network->path, strerror(-r));
        network->external = content.folder;
        snprintf(network->hash, sizeof(network->hash), "%016llx%016llx", (unsigned long long)content.digest.high,
                (unsigned long long)content.digest.low);
        return 0;
}

static const struct register_numbers *numbers_of(const struct register_numbers_list *list, const char *name)
{
        for (uint32_t i = 0; i < list->n; i++)
                if (strcmp(list->items[i].name, name) == 0)
                        return &list->items[i];
        return NULL;
}

static int add_network(
        const struct register_wish *wish, const char *model, struct registration *registration, struct sl_error *error)
{
        struct registered_network *network = &registration->networks[registration->n_networks];
        const struct register_numbers *scale, *offset, *published;
        char wanted[SL_WISH_BYTES];
        int r;

        if (!realpath(model, network->path))
                return sl_error_set(error, errno, "\"%s\": %s", model, strerror(errno));
        model_name_of(network->path, network->name, sizeof(network->name) - KIND_BYTES);
        if (sl_value_model_name(network->name, wanted) < 0)
                return sl_error_set(error, EINVAL, "\"%s\": its name \"%s\" is %s", model, network->name, wanted);
        for (uint32_t i = 0; i < registration->n_networks; i++)
                if (strcmp(registration->networks[i].name, network->name) == 0)
                        return sl_error_set(error, EINVAL, "two models are called \"%s\": %s and %s", network->name,
                                registration->networks[i].path, network->path);
        r = hash_network(network, error);
        if (r < 0)
                return r;
        scale = numbers_of(&wish->scales, network->name);
        offset = numbers_of(&wish->offsets, network->name);
        published = numbers_of(&wish->published, network->name);
        network->scale = scale ? scale->values : NULL;
        network->n_scale = scale ? scale->n : 0;
        network->offset = offset ? offset->values : NULL;
        network->n_offset = offset ? offset->n : 0;
        network->published = published ? (double)published->values[0] : 0;
        registration->n_networks++;
        return 0;
}

static int find_network(const struct registration *registration, const char *option, const char *name, uint32_t *ret_network,
        struct sl_error *error)
{
        for (uint32_t i = 0; i < registration->n_networks; i++)
                if (strcmp(registration->networks[i].name, name) == 0) {
                        *ret_network = i;
                        return 0;
                }
        return sl_error_set(
                error, ENOENT, "--%s: no model \"%s\" is given, the first is \"%s\"", option, name, registration->networks[0].name);
}

static int check_names(const struct registration *registration, const struct register_numbers_list *list, struct sl_error *error)
{
        uint32_t network;
        int r = 0;

        for (uint32_t i = 0; i < list->n && r == 0; i++)
                r = find_network(registration, list->option, list->items[i].name, &network, error);
        return r;
}

static int find_networks(const struct register_wish *wish, struct registration *registration, struct sl_error *error)
{
        int r = 0;

        registration->networks = calloc(wish->n_models, sizeof(*registration->networks));
        if (!registration->networks)
                return sl_error_set(error, ENOMEM, "no memory for %u models", wish->n_models);
        for (uint32_t i = 0; i < wish->n_models && r == 0; i++)
                r = add_network(wish, wish->models[i], registration, error);
        if (r == 0 && wish->reference)
                r = find_network(registration, "reference", wish->reference, &registration->reference, error);
        r = r < 0 ? r : check_names(registration, &wish->scales, error);
        r = r < 0 ? r : check_names(registration, &wish->offsets, error);
        return r < 0 ? r : check_names(registration, &wish->published, error);
}

static size_t print_numbers(char *text, size_t bytes, const char *what, const float *numbers, uint32_t n)
{
        size_t used = (size_t)snprintf(text, bytes, "\n%s", what);

        for (uint32_t i = 0; i < n && used < bytes; i++)
                used += (size_t)snprintf(text + used, bytes - used, " %.9g", (double)numbers[i]);
        return used;
}

/* All that the accuracy of a candidate follows from. */
static void fill_key(const struct register_wish *wish, const struct registration *registration,
        const struct sl_worker_profile *here, struct registered *candidate)
{
        const struct registered_network *network = &registration->networks[candidate->network];
        const char *reference =
                registration->labels_hash[0] ? registration->labels_hash : registration->networks[registration->reference].hash;
        char text[4096];
        size_t used = (size_t)snprintf(text, sizeof(text), FORMAT "\n%s\n%s\n%s\n%s\n%s\n%" PRIu64 "\n%.9g\n%.9g\n%s\n%s\n%s",
                network->hash, registration->kinds[candidate->kind].name, registration->networks[0].hash, registration->data_hash,
                reference, wish->samples, wish->max_loss, network->published, here->processor, here->starling, here->libraries);

        used += print_numbers(text + used, sizeof(text) - used, "scale", network->scale, network->n_scale);
        print_numbers(text + used, sizeof(text) - used, "offset", network->offset, network->n_offset);
        text_hash(text, candidate->key);
}

static int list_candidates(const struct register_wish *wish, struct registration *registration, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_freshness_free) struct sl_freshness *freshness = NULL;
        struct sl_profile_list none = {.n = 0};
        struct sl_worker_profile here;
        int r = sl_freshness_new(&none, &freshness, error);

        if (r < 0)
                return r;
        sl_worker_profile_init(&here);
        sl_freshness_stamp(freshness, &here);
        registration->n_kinds = wish->n_kinds;
        memcpy(registration->kinds, wish->kinds, sizeof(registration->kinds));
        registration->n = registration->n_networks * registration->n_kinds;
        registration->candidates = calloc(registration->n, sizeof(*registration->candidates));
        if (!registration->candidates)
                return sl_error_set(error, ENOMEM, "no memory for %u candidates", registration->n);
        for (uint32_t i = 0; i < registration->n; i++) {
                struct registered *candidate = &registration->candidates[i];

                candidate->network = i % registration->n_networks;
                candidate->kind = i / registration->n_networks;
                snprintf(candidate->name, sizeof(candidate->name), "%.*s-%s", (int)sizeof(candidate->name) - 20,
                        registration->networks[candidate->network].name, registration->kinds[candidate->kind].name);
                fill_key(wish, registration, &here, candidate);
        }
        return 0;
}

int registration_init(const struct register_wish *wish, struct registration *ret_registration, struct sl_error *error)
{
        int r;

        *ret_registration = (struct registration){.task = wish->task};
        r = file_hash(wish->data, ret_registration->data_hash, error);
        if (r == 0 && wish->labels)
                r = file_hash(wish->labels, ret_registration->labels_hash, error);
        r = r < 0 ? r : find_networks(wish, ret_registration, error);
        return r < 0 ? r : list_candidates(wish, ret_registration, error);
}

void registration_deinit(struct registration *registration)
{
        for (uint32_t i = 0; i < registration->n_networks; i++)
                free(registration->networks[i].classes);
        free(registration->networks);
        free(registration->candidates);
}

/* ---- the budget ---- */

static bool is_over(const struct measuring *measuring)
{
        return sl_clock_ns() >= measuring->end_ns;
}

static uint64_t seconds_left(const struct measuring *measuring)
{
        uint64_t now = sl_clock_ns();

        return now < measuring->end_ns ? (measuring->end_ns - now) / 1000000000 + 1 : 1;
}

/* ---- accuracy ---- */

static void name_file(const struct measuring *measuring, const struct registered *candidate, char ret_path[PATH_MAX])
{
        (void)snprintf(ret_path, PATH_MAX, "%.3800s/%.250s.onnx", measuring->registration->work, candidate->name);
}

/* @fd: what was made, or -1: it is the file @source as it is. */
static int keep_file(
        const struct measuring *measuring, struct registered *candidate, int fd, const char *source, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int opened = fd < 0 ? open(source, O_RDONLY | O_CLOEXEC) : -1;
        char path[PATH_MAX];
        int from = fd < 0 ? opened : fd, r;

        if (from < 0)
                return sl_error_set(error, errno, "\"%s\": %s", source, strerror(errno));
        name_file(measuring, candidate, path);
        r = copy_whole_file(path, from, error);
        return r < 0 ? r : file_hash(path, candidate->hash, error);
}

static void set_labels(const struct measuring *measuring, const struct registered_network *network, struct making *making)
{
        const struct registration *registration = measuring->registration;
        const struct registered_network *reference = &registration->networks[registration->reference];
        const int32_t *classes = network->published > 0 ? network->classes : reference->classes;

        making->label_file = network->published > 0 ? NULL : measuring->wish->labels;
        making->labels = making->label_file ? NULL : classes;
        making->n_labels = registration->count;
}

/* Of a network in float32 as it is: what it says of each sample, and of the first what the task's ports are. */
static int look_at(struct measuring *measuring, uint32_t index, bool scored, bool writes, int *ret_fd, struct sl_error *error)
{
        struct registration *registration = measuring->registration;
        struct registered_network *network = &registration->networks[index];
        struct made *made = measuring->made;
        struct making making = {.source = network->path,
                .data = measuring->wish->data,
                .task = index ? &measuring->task : NULL,
                .probabilities = measuring->probabilities,
                .adapter = {network->scale, network->offset, network->n_scale, network->n_offset, false},
                .calibration = measuring->wish->samples,
                .max_loss = measuring->wish->max_loss,
                .writes = writes,
                .seconds = seconds_left(measuring)};
        int r;

        sl_lower_options_init(&making.lowering);
        if (scored)
                set_labels(measuring, network, &making);
        r = make_variant(&making, made, ret_fd, error);
        if (r < 0)
                return sl_error_prefix(error, r, "%s", network->name);
        registration->count = made->count;
        registration->calibration = made->calibration;
        if (!network->classes)
                network->classes = malloc(made->count * sizeof(*network->classes));
        if (!network->classes)
                return sl_error_set(error, ENOMEM, "no memory for the classes of %" PRIu64 " samples", made->count);
        memcpy(network->classes, made->classes, made->count * sizeof(*network->classes));
        if (!index) {
                measuring->task = made->ports;
                measuring->probabilities = made->score.sums_to_one;
                measuring->task_known = true;
        }
        return 0;
}

static int look_once(struct measuring *measuring, uint32_t index, struct sl_error *error)
{
        int fd = -1, r;

        if (measuring->registration->networks[index].classes)
                return 0;
        r = look_at(measuring, index, false, false, &fd, error);
        if (fd >= 0)
                close(fd);
        return r;
}

/* What others are compared with comes first. */
static int prepare(struct measuring *measuring, const struct registered *candidate, struct sl_error *error)
{
        struct registration *registration = measuring->registration;
        const struct registered_network *network = &registration->networks[candidate->network];
        int r = candidate->network && !measuring->task_known ? look_once(measuring, 0, error) : 0;

        if (r == 0 && !(network->published > 0) && !measuring->wish->labels && candidate->network != registration->reference)
                r = look_once(measuring, registration->reference, error);
        if (r == 0 && candidate->kind && (network->published > 0 || !measuring->wish->labels))
                r = look_once(measuring, network->published > 0 ? candidate->network : registration->reference, error);
        return r;
}

static void take_score(const struct measuring *measuring, struct registered *candidate)
{
        const struct registration *registration = measuring->registration;
        const struct registered_network *network = &registration->networks[candidate->network];
        const struct sl_score *score = &measuring->made->score;
        bool is_itself = !candidate->kind &&
                         (network->published > 0 || (!measuring->wish->labels && candidate->network == registration->reference));
        double share = network->published > 0 ? network->published : 1;

        candidate->state = REGISTERED_MADE;
        candidate->samples = score->samples;
        candidate->right = is_itself ? score->samples : score->right;
        sl_score_interval(candidate->right, candidate->samples, &candidate->low, &candidate->high);
        candidate->accuracy = share * (double)candidate->right / (double)candidate->samples;
        candidate->low *= share;
        candidate->high *= share;
        snprintf(candidate->origin, sizeof(candidate->origin), "%s",
                network->published > 0    ? "derived"
                : measuring->wish->labels ? "measured"
                                          : "agreement");
}

static int make_float(struct measuring *measuring, struct registered *candidate, struct sl_error *error)
{
        const struct registered_network *network = &measuring->registration->networks[candidate->network];
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        int r = look_at(measuring, candidate->network, true, network->external, &fd, error);

        if (r == 0)
                snprintf(candidate->adapter, sizeof(candidate->adapter), "%s", measuring->made->adapter);
        r = r < 0 ? r : keep_file(measuring, candidate, fd, network->path, error);
        if (r == 0)
                take_score(measuring, candidate);
        return r;
}

/* Why @making is not worth it, "" if it may be. */
static const char *why_useless(const struct making *making, const struct made *made)
{
        if (making->lowering.precision == SL_PRECISION_BF16 && !sl_lower_narrows(&making->lowering))
                return "this processor computes bfloat16 as float32";
        if (made && making->lowering.precision == SL_PRECISION_INT8 && made->n_float == made->n_products)
                return "nothing of it is quantized";
        return "";
}

static void leave_out(struct registered *candidate, const char *reason)
{
        candidate->state = REGISTERED_USELESS;
        snprintf(candidate->reason, sizeof(candidate->reason), "%s", reason);
}

static int make_narrow(struct measuring *measuring, struct registered *candidate, struct sl_error *error)
{
        struct registration *registration = measuring->registration;
        const struct registered *source = &registration->candidates[candidate->network];
        const struct registered_kind *kind = &registration->kinds[candidate->kind];
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        struct sl_error why = {""};
        struct making making = {.data = measuring->wish->data,
                .calibration = measuring->wish->samples,
                .max_loss = measuring->wish->max_loss,
                .seconds = seconds_left(measuring)};
        char path[PATH_MAX];
        int r;

        sl_lower_options_init(&making.lowering);
        making.lowering.precision = kind->precision;
        making.lowering.weights = kind->weights;
        if (*why_useless(&making, NULL)) {
                leave_out(candidate, why_useless(&making, NULL));
                return 0;
        }
        name_file(measuring, source, path);
        making.source = path;
        set_labels(measuring, &registration->networks[candidate->network], &making);
        r = make_variant(&making, measuring->made, &fd, &why);
        if (r == -ENOTSUP || r == -EINVAL) {
                leave_out(candidate, why.text);
                return 0;
        }
        if (r < 0)
                return sl_error_set(error, -r, "%s: %s", candidate->name, why.text);
        registration->count = measuring->made->count;
        registration->calibration = measuring->made->calibration;
        if (*why_useless(&making, measuring->made)) {
                leave_out(candidate, why_useless(&making, measuring->made));
                return 0;
        }
        snprintf(candidate->adapter, sizeof(candidate->adapter), "%s", source->adapter);
        r = keep_file(measuring, candidate, fd, path, error);
        if (r == 0)
                take_score(measuring, candidate);
        return r;
}

static bool is_fresh(const struct measuring *measuring, const struct registered *candidate)
{
        char path[PATH_MAX], hash[REGISTER_HASH_BYTES];

        if (candidate->state != REGISTERED_MADE)
                return false;
        name_file(measuring, candidate, path);
        return file_hash(path, hash, NULL) == 0 && strcmp(hash, candidate->hash) == 0;
}

static void say_accuracy(const struct registered *candidate, const char *how)
{
        if (candidate->state == REGISTERED_MADE)
                fprintf(stderr, "starling register: %s: accuracy %.4f, %.4f to %.4f (95 %%) by %" PRIu64 " samples, %s\n",
                        candidate->name, candidate->accuracy, candidate->low, candidate->high, candidate->samples, how);
        else
                fprintf(stderr, "starling register: %s: left out: %s\n", candidate->name, candidate->reason);
}

static int make_candidate(struct measuring *measuring, struct registered *candidate, struct sl_error *error)
{
        int r;

        if (is_fresh(measuring, candidate)) {
                say_accuracy(candidate, "known already");
                return 0;
        }
        candidate->state = REGISTERED_NOT_YET;
        candidate->n_points = 0;
        if (candidate->kind && measuring->registration->candidates[candidate->network].state != REGISTERED_MADE)
                return 0;
        r = prepare(measuring, candidate, error);
        r = r < 0 ? r : (candidate->kind ? make_narrow : make_float)(measuring, candidate, error);
        if (r == 0)
                say_accuracy(candidate, candidate->origin);
        return r;
}

/* ---- all ---- */

static int time_candidate(struct measuring *measuring, struct registered *candidate, uint32_t n_batches, struct sl_error *error)
{
        const struct register_wish *wish = measuring->wish;
        const struct timing timing = {.store = wish->store,
                .threads = wish->threads,
                .seconds = wish->seconds,
                .batches = wish->batches,
                .n_batches = n_batches};
        char path[PATH_MAX];
        int r;

        if (candidate->state != REGISTERED_MADE)
                return 0;
        name_file(measuring, candidate, path);
        r = time_variant(&timing, path, candidate, error);
        return r < 0 ? sl_error_prefix(error, r, "%s", candidate->name) : 0;
}

/* The last process may have been ended by the budget: then that is all. */
static int end_step(struct measuring *measuring, int result, struct sl_error *error)
{
        if (result == -ETIME && is_over(measuring)) {
                error->text[0] = 0;
                return 0;
        }
        return result < 0 ? result : registration_record_write(measuring->record, measuring->registration, error);
}

static int measure_all(struct measuring *measuring, struct sl_error *error)
{
        struct registration *registration = measuring->registration;
        int r = 0;

        for (uint32_t i = 0; i < registration->n && r == 0 && !is_over(measuring); i++) {
                r = make_candidate(measuring, &registration->candidates[i], error);
                if (r == 0 && !is_over(measuring))
                        r = time_candidate(measuring, &registration->candidates[i], 1, error);
                r = end_step(measuring, r, error);
        }
        for (uint32_t i = 0; i < registration->n && r == 0 && !is_over(measuring); i++) {
                r = time_candidate(measuring, &registration->candidates[i], measuring->wish->n_batches, error);
                r = end_step(measuring, r, error);
        }
        return r;
}

int registration_measure(const struct register_wish *wish, struct registration *registration, struct sl_error *error)
{
        struct measuring measuring = {.wish = wish,
                .registration = registration,
                .end_ns = sl_clock_ns() + (uint64_t)(wish->budget * 1e9),
                .made = malloc(sizeof(*measuring.made))};
        int r = measuring.made ? 0 : sl_error_set(error, ENOMEM, "no memory for %u samples", REGISTER_SAMPLES_MAX);

        (void)snprintf(measuring.record, sizeof(measuring.record), "%.4000s/record.json", registration->work);
        r = r < 0 ? r : registration_record_read(measuring.record, registration, error);
        r = r < 0 ? r : measure_all(&measuring, error);
        for (uint32_t i = 0; i < registration->n && r == 0; i++)
                if (registration->candidates[i].state == REGISTERED_NOT_YET)
                        snprintf(registration->candidates[i].reason, sizeof(registration->candidates[i].reason),
                                "the budget was over before");
        free(measuring.made);
        return r;
}
