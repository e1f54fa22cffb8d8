/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling-stats(5): the layout of the stats page, with the offsets that the compiler gives it.
 */
#include "page.h"
#include "stats_layout.h"
#include "step.h"

struct field {
        size_t offset, bytes;
        const char *name, *text;
};

#define FIELD(type, name, text)                                                                                                    \
        {                                                                                                                          \
                offsetof(type, name), sizeof(((type *)NULL)->name), #name, text                                                    \
        }
#define SLOT                   FIELD(struct sl_stats_slot, seq, "odd while names change"), FIELD(struct sl_stats_slot, used, "0 or 1")
#define DISPATCHER(name, text) FIELD(struct sl_dispatcher_stats, name, text),
#define MODEL(name, text)      FIELD(struct sl_model_stats, name, text),
#define LEFT(name, text)       FIELD(struct sl_model_stats, left_##name, "of its sizes that have left: " text),
#define CLIENT(name, text)     FIELD(struct sl_client_stats, name, text),
#define WORKER(name, text)     FIELD(struct sl_worker_stats, name, text),
#define QUEUE(name, text)      FIELD(struct sl_queue_stats, name, text),
#define LET(name, text)        FIELD(struct sl_let_stats, name, text),
#define MEMORY(name, text)     FIELD(struct sl_memory_stats, name, text),
#define STEP(name, text)       FIELD(struct sl_step_stats, name, text),

#define SECTION_TITLE(id, type, title) title ", "

static const struct field header[] = {
        FIELD(struct sl_stats_header, magic, "stored last: the page is whole"),
        FIELD(struct sl_stats_header, version, "of this layout; fields are only added at the end of a slot"),
        FIELD(struct sl_stats_header, header_bytes, "of this header, with all of `sections`"),
        FIELD(struct sl_stats_header, bytes, "of the file"),
        FIELD(struct sl_stats_header, pid, "of the runtime"),
        FIELD(struct sl_stats_header, state, "0 starting, 1 ready, 2 stopping, 3 stopped; a crash leaves what it was"),
        FIELD(struct sl_stats_header, started_ns, "CLOCK_MONOTONIC"),
        FIELD(struct sl_stats_header, started_unix_ns, "CLOCK_REALTIME"),
        FIELD(struct sl_stats_header, crowded, "models that had to be counted in a common slot"),
        FIELD(struct sl_stats_header, runtime_name, "NUL-terminated"),
        FIELD(struct sl_stats_header, wait_name, "io_uring or epoll"),
        FIELD(struct sl_stats_header, memory_bytes, "promised, of memory_max"),
        FIELD(struct sl_stats_header, memory_max, "all bits set: no limit"),
        FIELD(struct sl_stats_header, release, "of Starling, NUL-terminated"),
        FIELD(struct sl_stats_header, n_sections, "how many follow; more may be added behind those that are listed here"),
        FIELD(struct sl_stats_header, sections,
                "offset (8 bytes), stride (4), count (4) of each section, in this order: " SL_STATS_SECTIONS(
                        SECTION_TITLE) "and so on"),
};

static const struct field dispatchers[] = {
        SLOT,
        FIELD(struct sl_dispatcher_stats, core, "it is pinned to; -1: none"),
        FIELD(struct sl_dispatcher_stats, sampling, "of 2^32 - 1 requests, how many are traced; the control thread changes it"),
        SL_DISPATCHER_COUNTERS(DISPATCHER)
                FIELD(struct sl_dispatcher_stats, refusals, "entries that were refused, by the reasons below"),
};

static const struct field models[] = {SLOT, FIELD(struct sl_model_stats, histograms, "index in the section of histograms"),
        FIELD(struct sl_model_stats, state, "see below"),
        FIELD(struct sl_model_stats, kind, "what is served under this name, see below"),
        FIELD(struct sl_model_stats, n_members, "of an ensemble"),
        FIELD(struct sl_model_stats, version, "number of the version folder; 0 for an ensemble"),
        FIELD(struct sl_model_stats, since_ns, "it is in this state; CLOCK_MONOTONIC"),
        FIELD(struct sl_model_stats, load_ns, "how long its last load took that ended well"),
        FIELD(struct sl_model_stats, loads, "that ended well"), FIELD(struct sl_model_stats, load_failures, "loads that did not"),
        FIELD(struct sl_model_stats, workers_wanted, "that it should have"),
        FIELD(struct sl_model_stats, workers_serving, "that take jobs"),
        FIELD(struct sl_model_stats, segment_samples, "of the largest segment"),
        FIELD(struct sl_model_stats, samples_max, "of one request"),
        FIELD(struct sl_model_stats, queue_requests, "accepted and not completed, at most"),
        FIELD(struct sl_model_stats, name, "NUL-terminated"), FIELD(struct sl_model_stats, why, "it is failed or degraded"),
        SL_MODEL_COUNTERS(MODEL) SL_MODEL_SUMS(LEFT) FIELD(struct sl_model_stats, want,
                "number of what is wanted of the name, which each other want has anew; 0: it is to go"),
        FIELD(struct sl_model_stats, wanted_ns, "since when; CLOCK_MONOTONIC"),
        FIELD(struct sl_model_stats, want_served, "number of the want that is served; 0: none is"),
        FIELD(struct sl_model_stats, want_failed, "number of the want that could not be had; 0: none"),
        FIELD(struct sl_model_stats, awaits_ns, "it has waited since; CLOCK_MONOTONIC"),
        FIELD(struct sl_model_stats, awaits_of, "for what of this model: its slot; all bits set: of none, or of several"),
        FIELD(struct sl_model_stats, origin, "who wants it: repository, administrator or request"),
        FIELD(struct sl_model_stats, awaits, "what it waits for; empty: nothing"),
        FIELD(struct sl_model_stats, step, "what follows when that has come; empty: nothing, or it depends"),
        FIELD(struct sl_model_stats, cause, "why the last load failed; empty: it did not"), SL_ENSEMBLE_COUNTERS(MODEL)};

static const struct field clients[] = {SLOT, FIELD(struct sl_client_stats, id, "as in the log"),
        FIELD(struct sl_client_stats, uid, "of its process"), FIELD(struct sl_client_stats, pid, "in the runtime's PID namespace"),
        FIELD(struct sl_client_stats, label, "NUL-terminated"), FIELD(struct sl_client_stats, attached_ns, "CLOCK_MONOTONIC"),
        FIELD(struct sl_client_stats, n_queues, "its queue pairs"), FIELD(struct sl_client_stats, depth, "of each of them"),
        SL_CLIENT_COUNTERS(CLIENT)};

static const struct field workers[] = {SLOT, FIELD(struct sl_worker_stats, core, "first core of its let; -1: not pinned"),
        FIELD(struct sl_worker_stats, batch_max, "largest batch"), FIELD(struct sl_worker_stats, model, "NUL-terminated"),
        FIELD(struct sl_worker_stats, executor, "thread; process: it has one of its own; inline: the dispatcher itself"),
        FIELD(struct sl_worker_stats, state, "see below"),
        FIELD(struct sl_worker_stats, let, "index in the section of lets; all bits set: the dispatcher's core"),
        FIELD(struct sl_worker_stats, pid, "of its process, in the runtime's PID namespace; 0: it is a thread, or has ended"),
        FIELD(struct sl_worker_stats, restarts, "processes that have followed one that ended"),
        FIELD(struct sl_worker_stats, histograms,
                "index in the section of histograms, of the pieces of requests that it has answered; all bits set: it has none"),
        FIELD(struct sl_worker_stats, since_ns, "it is in this state; CLOCK_MONOTONIC"),
        FIELD(struct sl_worker_stats, ended_unix_ns, "when its last process ended, CLOCK_REALTIME; 0: none has"),
        FIELD(struct sl_worker_stats, why, "that process ended"), SL_WORKER_COUNTERS(WORKER)};

static const struct field queues[] = {SLOT, FIELD(struct sl_queue_stats, kind, "what waits, see below"),
        FIELD(struct sl_queue_stats, model, "NUL-terminated"), SL_QUEUE_COUNTERS(QUEUE)};

static const struct field lets[] = {SLOT, FIELD(struct sl_let_stats, n_cores, "0: any"),
        FIELD(struct sl_let_stats, at_once, "jobs that run at a time without sharing a core"),
        FIELD(struct sl_let_stats, workers, "that share it now"),
        FIELD(struct sl_let_stats, for_one, "1: it was made for one worker, which may spin"),
        FIELD(struct sl_let_stats, name, "NUL-terminated"), FIELD(struct sl_let_stats, cores, "as in 0-3,8; empty: any"),
        SL_LET_COUNTERS(LET)};

static const struct field memory[] = {
        SLOT, FIELD(struct sl_memory_stats, name, "what it is promised for"), SL_MEMORY_COUNTERS(MEMORY)};

static const struct field steps[] = {SLOT,
        FIELD(struct sl_step_stats, name, "kind of step from what is wanted of a model to what is served, see below"),
        SL_STEP_COUNTERS(STEP)};

static const struct field records[] = {
        FIELD(struct sl_stats_slot, seq, "odd while the record changes, and after a crash in the middle of that"),
        FIELD(struct sl_stats_slot, used, "number of the request, from 1 in the order of acceptance; 0: the record is unused"),
        FIELD(struct sl_flight_record, client, "its id"),
        FIELD(struct sl_flight_record, uid, "of its process"),
        FIELD(struct sl_flight_record, pid, "in the runtime's PID namespace"),
        FIELD(struct sl_flight_record, model, "slot in the section of models"),
        FIELD(struct sl_flight_record, queue, "pair, of its client"),
        FIELD(struct sl_flight_record, priority, "0 is the most urgent"),
        FIELD(struct sl_flight_record, sampled, "1: its spans are traced"),
        FIELD(struct sl_flight_record, stage, "where it is, see below"),
        FIELD(struct sl_flight_record, status, "of one that has ended: 0, or a negative errno"),
        FIELD(struct sl_flight_record, samples, "of the request"),
        FIELD(struct sl_flight_record, broadcast, "samples that had their turn"),
        FIELD(struct sl_flight_record, index, "of the request, as the client counts in its queue pair"),
        FIELD(struct sl_flight_record, answered, "pieces"),
        FIELD(struct sl_flight_record, places,
                "workers that have pieces: 1 + slot in the section of workers (2 bytes; all bits set: several others), pieces (2)"),
        FIELD(struct sl_flight_record, taken_ns, "its entry was taken; CLOCK_MONOTONIC, as all that follow"),
        FIELD(struct sl_flight_record, since_ns, "it is in this stage"),
        FIELD(struct sl_flight_record, assigned_ns, "a worker got the first piece of it; 0: none yet"),
        FIELD(struct sl_flight_record, started_ns, "the first batch began; 0: nothing was answered yet"),
        FIELD(struct sl_flight_record, staged_ns, "the last prediction was there"),
        FIELD(struct sl_flight_record, combined_ns, "the last result was combined"),
};

static const struct field spans[] = {
        FIELD(struct sl_stats_slot, seq, "odd while it is written"),
        FIELD(struct sl_stats_slot, used, "number n of the span, from 1; it lies at (n - 1) % count, as a traced record does"),
        FIELD(struct sl_trace_span, request, "its number"),
        FIELD(struct sl_trace_span, client, "its id"),
        FIELD(struct sl_trace_span, worker, "slot in the section of workers; all bits set: the client woke"),
        FIELD(struct sl_trace_span, samples, "computed; or which queue pair of the client"),
        FIELD(struct sl_trace_span, begun_ns, "it began to compute; or slept on from here"),
        FIELD(struct sl_trace_span, ended_ns, "its end"),
        FIELD(struct sl_trace_span, combined_ns, "the worker had combined the predictions; 0: another one did"),
};

static const struct field histogram[] = {
        FIELD(struct sl_histogram, count, "of values"),
        FIELD(struct sl_histogram, sum_ns, "of the true values"),
        FIELD(struct sl_histogram, max_ns, "the largest"),
        FIELD(struct sl_histogram, clamped, "values above 100 s, which lie in the last bucket"),
        FIELD(struct sl_histogram, buckets,
                "32 for each doubling: nanoseconds below 32 have one each; bucket 32 s + (ns >> s) counts "
                "ns, with s so that the second part is from 32 to 63"),
};

#define FIELDS(array) array, sizeof(array) / sizeof((array)[0])

static const struct table {
        const char *title;
        size_t slot_bytes; /* 0: no slots */
        const struct field *fields;
        size_t n_fields;
} tables[] = {
        {"Header", 0, FIELDS(header)},
        {"Dispatchers", sizeof(struct sl_dispatcher_stats), FIELDS(dispatchers)},
        {"Models", sizeof(struct sl_model_stats), FIELDS(models)},
        {"Clients", sizeof(struct sl_client_stats), FIELDS(clients)},
        {"Workers", sizeof(struct sl_worker_stats), FIELDS(workers)},
        {"Histogram", sizeof(struct sl_histogram_set), FIELDS(histogram)},
        {"Queues", sizeof(struct sl_queue_stats), FIELDS(queues)},
        {"Lets", sizeof(struct sl_let_stats), FIELDS(lets)},
        {"Memory", sizeof(struct sl_memory_stats), FIELDS(memory)},
        {"Records of requests, and of those that were traced", sizeof(struct sl_flight_record), FIELDS(records)},
        {"Spans of traced requests", sizeof(struct sl_trace_span), FIELDS(spans)},
        {"Steps", sizeof(struct sl_step_stats), FIELDS(steps)},
};

static void print_table(FILE *out, const struct table *table)
{
        fprintf(out, ".Ss %s\n", table->title);
        if (table->slot_bytes)
                fprintf(out, "A slot has at least %zu bytes.\n", table->slot_bytes);
        fputs(".Bl -column offset bytes refusalsxxxxxxxxxx text\n.It Sy offset Ta Sy bytes Ta Sy field Ta Sy what it is\n", out);
        for (const struct field *field = table->fields; field < table->fields + table->n_fields; field++) {
                fprintf(out, ".It %zu Ta %zu Ta %s Ta ", field->offset, field->bytes, field->name);
                page_text(out, field->text);
        }
        fputs(".El\n", out);
}

static void print_names(FILE *out, const char *title, const char *const *names, size_t n)
{
        fprintf(out, ".Ss %s\n.Bl -tag -width Ds\n", title);
        for (size_t i = 0; i < n; i++) {
                fprintf(out, ".It %zu\n", i);
                page_text(out, names[i]);
        }
        fputs(".El\n", out);
}

#define NAME(id, text)        text,
#define STATE(id, name, text) name ": " text,

static void print_lists(FILE *out)
{
        static const char *const refusals[] = {SL_REFUSALS(NAME)}, *const stages[] = {SL_STAGES_OF_A_REQUEST(NAME)},
                                 *const reasons[] = {SL_BATCH_REASONS(NAME)}, *const served[] = {SL_STATS_MODEL_STATES(STATE)},
                                 *const kinds[] = {SL_STATS_MODEL_KINDS(STATE)}, *const waits[] = {SL_STATS_QUEUE_KINDS(STATE)},
                                 *const states[] = {SL_STATS_WORKER_STATES(STATE)}, *const flight[] = {SL_FLIGHT_STAGES(STATE)},
                                 *const kinds_of_step[] = {SL_STEP_KINDS(STATE)}, *const awaits[] = {SL_AWAITS(NAME)};

        print_names(out, "Reasons of a refusal", refusals, SL_REFUSAL_LIMIT);
        print_names(out, "States of a model", served, SL_STATS_MODEL_STATE_LIMIT);
        print_names(out, "Kinds of a model", kinds, SL_STATS_MODEL_KIND_LIMIT);
        print_names(out, "Kinds of a queue", waits, SL_STATS_QUEUE_KIND_LIMIT);
        print_names(out, "States of a worker", states, SL_STATS_WORKER_STATE_LIMIT);
        print_names(out, "Reasons of a worker's batch_max", reasons, SL_BATCH_REASON_LIMIT);
        print_names(out, "Where the request of a record is", flight, SL_FLIGHT_STAGE_LIMIT);
        print_names(out, "Kinds of a step", kinds_of_step, SL_STEP_KIND_COUNT);
        print_names(out, "What a model may wait for", awaits, SL_AWAIT_COUNT);
        print_names(out, "Stages of a request, each with a histogram", stages, SL_STAGES);
}

int page_of_stats(FILE *out)
{
        page_begin(out, "STARLING-STATS", 5, "starling-stats", "the stats page of a runtime");
        fputs(".Sh SYNOPSIS\n.In starling/stats.h\n.Sh DESCRIPTION\n", out);
        page_paragraphs(out,
                "A runtime counts in /dev/shm/starling.NAME, a file that every user who may attach as a client or reader can map "
                "and "
                "read at any time, without asking the runtime. A crash leaves it behind as the flight recorder; an orderly end "
                "removes it. The runtime holds a write lock on it (fcntl, open file description) while it lives. Where a "
                "foreign file has that name, it lies beside the socket as starling.NAME.\n"
                "\n"
                "Check magic, version, bytes and that each section lies in the file; what has another version is laid out "
                "otherwise. Go from slot to slot by the stride that the "
                "header gives, which may grow; skip slots whose `used` is 0. Names and all that stands before the counters change "
                "under "
                "`seq`: read it, copy, read it again; it must be even and the same (sl_seqlock_read() of <starling/seqlock.h>). "
                "Counters are 8 bytes, little-endian, each with one writer, and are never torn; several models in one slot, or "
                "several slots of one model, are to be added up. Slot 0 of the models and of the histograms is common to those "
                "that found no room.");
        fprintf(out, ".Pp\nMagic is 0x%llx, version %d.\n", (unsigned long long)SL_STATS_MAGIC, SL_STATS_VERSION);
        for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
                print_table(out, &tables[i]);
        fprintf(out, "A slot holds one histogram of %zu bytes for each stage.\n", sizeof(struct sl_histogram));
        print_lists(out);
        fputs(".Sh SEE ALSO\n", out);
        page_reference(out, "starling-stats", 1, 1);
        page_reference(out, "starling-postmortem", 1, 0);
        return 0;
}
