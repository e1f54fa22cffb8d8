/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling postmortem`: what the flight recorder of a stats page says, after a crash or while the runtime lives.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/value.h"
#include "command.h"
#include "flight.h"
#include "quantity.h"
#include "session.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OPTION_LAST = OPTIONS_BEGIN + 100, OPTION_LIVE };

#define LAST_DEFAULT 20u
#define STATUS_LIMIT 4096 /* of -errno */

struct postmortem_arguments {
        const char *name; /* or a path, with a slash */
        bool json, live;
        uint64_t last;
};

static int parse_last(const char *text, uint64_t *ret_last)
{
        char wish[SL_WISH_BYTES];

        if (sl_value_number(text, 0, UINT32_MAX, ret_last, wish) == 0)
                return STATUS_OK;
        return complain(STATUS_USAGE, "postmortem", "--last: \"%s\" is %s", text, wish);
}

static int parse(int argc, char **argv, struct postmortem_arguments *ret_arguments)
{
        static const struct option options[] = {POSTMORTEM_OPTIONS(OPTION_GETOPT){0}};
        int status = STATUS_OK;

        *ret_arguments = (struct postmortem_arguments){.name = "starling", .last = LAST_DEFAULT};
        for (int option; status == STATUS_OK && (option = next_option(argc, argv, options)) != -1;) {
                if (option == OPTION_JSON)
                        ret_arguments->json = true;
                else if (option == OPTION_NAME)
                        ret_arguments->name = optarg;
                else if (option == OPTION_LIVE)
                        ret_arguments->live = true;
                else if (option == OPTION_LAST)
                        status = parse_last(optarg, &ret_arguments->last);
                else
                        status = complain_usage(argv[0]);
        }
        if (status == STATUS_OK && argc - optind > 1)
                status = complain_usage(argv[0]);
        if (argc > optind)
                ret_arguments->name = argv[optind];
        return status;
}

/* ---- text ---- */

static const char *when(const struct flight *flight, uint64_t ns, char ret_text[40])
{
        uint64_t unix_ns = flight_unix_ns(flight, ns);
        time_t seconds = (time_t)(unix_ns / SL_NS_PER_SECOND);
        struct tm at;
        size_t n = 0;

        if (localtime_r(&seconds, &at))
                n = strftime(ret_text, 24, "%F %T", &at);
        snprintf(ret_text + n, 40 - n, ".%06" PRIu64, (uint64_t)(unix_ns % SL_NS_PER_SECOND / 1000));
        return ret_text;
}

static const char *state_of(const struct flight *flight)
{
        uint32_t state = atomic_load_explicit(&flight->header.state, memory_order_relaxed);

        if (flight->live)
                return "lives";
        return state == SL_RUNTIME_STOPPED ? "stopped" : "ended without saying so";
}

static void print_times(const struct sl_flight_record *record)
{
        const struct {
                const char *name;
                uint64_t from_ns, to_ns;
        } spans[] = {
                {"queued", record->taken_ns, record->assigned_ns},
                {"batched", record->assigned_ns, record->started_ns},
                {"computing", record->started_ns, record->staged_ns},
                {"combining", record->staged_ns, record->combined_ns},
        };
        char text[QUANTITY_BYTES];

        for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
                if (spans[i].from_ns && spans[i].to_ns >= spans[i].from_ns)
                        printf("  %s %s", spans[i].name, quantity_time(spans[i].to_ns - spans[i].from_ns, text));
}

static void print_who(const struct flight_entry *entry)
{
        const struct sl_flight_record *record = &entry->record;

        printf("  request %" PRIu64 "  %s  samples %u  client %" PRIu64 " (pid %u, uid %u) queue %u index %u", record->slot.used,
                entry->model, record->samples, record->client, record->pid, record->uid, record->queue, record->index);
        if (entry->torn)
                printf("  torn");
}

static void print_in_flight(const struct flight *flight, const struct flight_entry *entry)
{
        const struct sl_flight_record *record = &entry->record;
        char since[40], age[QUANTITY_BYTES], worker[SL_STATS_MODEL_BYTES + 64];

        print_who(entry);
        printf("\n    %s since %s, %s before the last record;", sl_flight_stage_name(record->stage),
                when(flight, record->since_ns, since), quantity_time(flight->last_ns - record->since_ns, age));
        printf("  broadcast %u of %u samples, %u pieces answered", record->broadcast, record->samples, record->answered);
        print_times(record);
        putchar('\n');
        for (uint32_t i = 0; i < SL_FLIGHT_PLACES; i++)
                if (record->places[i].worker)
                        printf("    %u pieces with %s\n", record->places[i].pieces,
                                flight_worker(flight, record->places[i].worker, worker, sizeof(worker)));
}

/* Of a record that is torn or damaged it may be any number. */
static const char *status_name(int32_t status)
{
        const char *name = status < 0 && status > -STATUS_LIMIT ? strerrorname_np(-status) : NULL;

        return status == 0 ? "done" : name ? name : "failed";
}

static void print_ended(const struct flight *flight, const struct flight_entry *entry)
{
        const struct sl_flight_record *record = &entry->record;
        char at[40], took[QUANTITY_BYTES];

        print_who(entry);
        printf("\n    %s at %s after %s", status_name(record->status), when(flight, record->since_ns, at),
                quantity_time(record->since_ns - record->taken_ns, took));
        print_times(record);
        putchar('\n');
}

static void print_text(const struct flight *flight, uint64_t last)
{
        char name[SL_STATS_NAME_BYTES], release[32], at[40];
        uint64_t n = last < flight->n_ended ? last : flight->n_ended;

        printf("runtime %s  %s  pid %u  starling %s\n", quantity_text(flight->header.runtime_name, name, sizeof(name)),
                state_of(flight), flight->header.pid, quantity_text(flight->header.release, release, sizeof(release)));
        printf("records %u  torn %u  damaged %u", flight->n_records, flight->n_torn, flight->n_damaged);
        printf(flight->last_ns ? "  the last of %s\n" : "\n", when(flight, flight->last_ns, at));
        printf("in flight %u\n", flight->n_in_flight);
        for (uint32_t i = 0; i < flight->n_in_flight; i++)
                print_in_flight(flight, &flight->in_flight[i]);
        printf("ended %u, the last %" PRIu64 "\n", flight->n_ended, n);
        for (uint64_t i = 0; i < n; i++)
                print_ended(flight, &flight->ended[i]);
}

/* ---- JSON ---- */

static json_t *number(uint64_t value)
{
        return json_integer((json_int_t)value);
}

static json_t *places_json(const struct flight *flight, const struct sl_flight_record *record)
{
        json_t *places = json_array();
        char worker[SL_STATS_MODEL_BYTES + 64];

        for (uint32_t i = 0; i < SL_FLIGHT_PLACES; i++)
                if (record->places[i].worker)
                        json_array_append_new(
                                places, json_pack("{s:i, s:s, s:i}", "worker",
                                                record->places[i].worker == SL_FLIGHT_SEVERAL ? -1 : record->places[i].worker - 1,
                                                "words", flight_worker(flight, record->places[i].worker, worker, sizeof(worker)),
                                                "pieces", record->places[i].pieces));
        return places;
}

static json_t *entry_json(const struct flight *flight, const struct flight_entry *entry)
{
        const struct sl_flight_record *record = &entry->record;
        const struct {
                const char *key;
                uint64_t value;
        } numbers[] = {
                {"request", record->slot.used},
                {"client", record->client},
                {"pid", record->pid},
                {"uid", record->uid},
                {"queue", record->queue},
                {"index", record->index},
                {"priority", record->priority},
                {"samples", record->samples},
                {"broadcast", record->broadcast},
                {"answered", record->answered},
                {"taken_ns", record->taken_ns},
                {"since_ns", record->since_ns},
                {"since_unix_ns", flight_unix_ns(flight, record->since_ns)},
                {"assigned_ns", record->assigned_ns},
                {"started_ns", record->started_ns},
                {"staged_ns", record->staged_ns},
                {"combined_ns", record->combined_ns},
        };
        json_t *object = json_object();

        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
                json_object_set_new(object, numbers[i].key, number(numbers[i].value));
        json_object_set_new(object, "model", json_string(entry->model));
        json_object_set_new(object, "stage", json_string(sl_flight_stage_name(record->stage)));
        json_object_set_new(object, "status", json_integer(record->status));
        json_object_set_new(object, "torn", json_boolean(entry->torn));
        json_object_set_new(object, "places", places_json(flight, record));
        return object;
}

static json_t *entries_json(const struct flight *flight, const struct flight_entry *entries, uint64_t n)
{
        json_t *array = json_array();

        for (uint64_t i = 0; i < n; i++)
                json_array_append_new(array, entry_json(flight, &entries[i]));
        return array;
}

static void print_json(const struct flight *flight, uint64_t last)
{
        char name[SL_STATS_NAME_BYTES], release[32];
        json_t *root = json_pack("{s:s, s:s, s:b, s:s, s:i, s:I, s:i, s:i, s:i, s:i, s:i}", "runtime",
                quantity_text(flight->header.runtime_name, name, sizeof(name)), "release",
                quantity_text(flight->header.release, release, sizeof(release)), "live", flight->live, "state", state_of(flight),
                "pid", (int)flight->header.pid, "last_ns", (json_int_t)flight->last_ns, "records", (int)flight->n_records, "torn",
                (int)flight->n_torn, "damaged", (int)flight->n_damaged, "n_in_flight", (int)flight->n_in_flight, "n_ended",
                (int)flight->n_ended);

        json_object_set_new(root, "in_flight", entries_json(flight, flight->in_flight, flight->n_in_flight));
        json_object_set_new(root, "ended", entries_json(flight, flight->ended, last < flight->n_ended ? last : flight->n_ended));
        json_dumpf(root, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(root);
}

/* ---- the command ---- */

/* After a restart the runtime that crashed is meant, not the one that serves in its place. */
static int open_page(const struct postmortem_arguments *arguments, struct sl_stats_view **ret_view, struct sl_error *error)
{
        struct sl_stats_view *last;
        int r;

        if (strchr(arguments->name, '/'))
                return sl_stats_open_file(arguments->name, ret_view, error);
        r = sl_stats_open(arguments->name, NULL, ret_view, error);
        if (arguments->live || (r == 0 && !sl_stats_is_live(*ret_view)) || sl_stats_open_last(arguments->name, &last, NULL) < 0)
                return r;
        if (r == 0)
                fprintf(stderr,
                        "starling postmortem: \"%s\" serves again; this is the one before, which crashed (--live: the one that "
                        "serves)\n",
                        arguments->name);
        if (r == 0)
                sl_stats_close(*ret_view);
        *ret_view = last;
        return 0;
}

int command_postmortem(int argc, char **argv)
{
        struct sl_stats_view *view = NULL;
        struct postmortem_arguments arguments;
        struct sl_error error = {""};
        struct flight flight;
        int status = parse(argc, argv, &arguments), r;

        if (status != STATUS_OK)
                return status;
        r = open_page(&arguments, &view, &error);
        if (r == 0)
                r = flight_read(view, &flight, &error);
        if (r == 0) {
                (arguments.json ? print_json : print_text)(&flight, arguments.last);
                flight_deinit(&flight);
        }
        sl_stats_close(view);
        return r == 0 ? STATUS_OK : session_complain(r, argv[0], arguments.name, error.text);
}
