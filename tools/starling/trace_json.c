/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_json.h"

#include "quantity.h"

#include <inttypes.h>
#include <string.h>

static const char *const kind_names[] = {[LANE_WORKER] = "workers", [LANE_QUEUE] = "queues", [LANE_CLIENT] = "clients"};

struct printer {
        const struct lanes *lanes;
        FILE *out;
        uint64_t base_ns;
        const char *comma;
        char name[SL_STATS_MODEL_BYTES];
};

/* What it prints needs no escape but these. */
static const char *escape(char *text)
{
        for (char *at = text; *at; at++)
                if (*at == '"' || *at == '\\')
                        *at = '\'';
        return text;
}

static const char *model_name(struct printer *printer, uint32_t index)
{
        struct sl_model_stats model;

        if (sl_stats_read_model(printer->lanes->trace->view, index, &model) == 0)
                quantity_text(model.name, printer->name, sizeof(printer->name));
        else
                snprintf(printer->name, sizeof(printer->name), "model %u", index);
        return escape(printer->name);
}

static void print_event(
        struct printer *printer, const struct lane_item *item, const char *name, uint64_t begun_ns, uint64_t ended_ns)
{
        uint64_t at = begun_ns - printer->base_ns, ns = ended_ns > begun_ns ? ended_ns - begun_ns : 0;

        fprintf(printer->out,
                "%s{\"ph\":\"X\",\"pid\":%d,\"tid\":%u,\"name\":\"%s\",\"ts\":%" PRIu64 ".%03u,\"dur\":%" PRIu64 ".%03u,\"args\":{",
                printer->comma, item->kind, item->lane, name, at / 1000, (unsigned)(at % 1000), ns / 1000, (unsigned)(ns % 1000));
        printer->comma = ",\n";
}

static void print_name(struct printer *printer, const char *what, int pid, uint32_t tid, const char *name)
{
        fprintf(printer->out, "%s{\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"name\":\"%s\",\"args\":{\"name\":\"%s\"}}", printer->comma,
                pid, tid, what, name);
        printer->comma = ",\n";
}

static void describe_worker(struct printer *printer, uint32_t index, char *ret_text, size_t bytes)
{
        struct sl_worker_stats worker;
        char name[SL_STATS_MODEL_BYTES];

        if (sl_stats_read_worker(printer->lanes->trace->view, index, &worker) == 0)
                snprintf(ret_text, bytes, "worker %u: %s", index, quantity_text(worker.model, name, sizeof(name)));
        else
                snprintf(ret_text, bytes, "worker %u", index);
}

static void print_lane(struct printer *printer, const struct lane_item *item)
{
        char text[SL_STATS_MODEL_BYTES + 64], copy[sizeof(text) + 16];

        switch (item->kind) {
        case LANE_WORKER:
                describe_worker(printer, (uint32_t)item->key, text, sizeof(text));
                break;
        case LANE_QUEUE:
                snprintf(text, sizeof(text), "queue of %s", model_name(printer, (uint32_t)item->key));
                break;
        case LANE_CLIENT:
                snprintf(text, sizeof(text), "client %" PRIu64 " queue pair %u, pid %u", item->key, item->queue,
                        printer->lanes->trace->records[item->record].pid);
                break;
        }
        snprintf(copy, sizeof(copy), item->copy ? "%s (%u)" : "%s", text, item->copy + 1);
        print_name(printer, "thread_name", (int)item->kind, item->lane, escape(copy));
}

/* A batch: what of it belongs to sampled requests. */
static void print_batch(struct printer *printer, const struct lane_item *item)
{
        const struct sl_trace_span *spans = printer->lanes->spans + item->first_span;
        uint64_t ended_ns = item->begun_ns, combined_ns = 0;
        uint32_t samples = 0;

        for (uint32_t i = 0; i < item->n_spans; i++) {
                ended_ns = spans[i].ended_ns > ended_ns ? spans[i].ended_ns : ended_ns;
                combined_ns = spans[i].combined_ns > combined_ns ? spans[i].combined_ns : combined_ns;
                samples += spans[i].samples;
        }
        print_event(printer, item, "computing", item->begun_ns, ended_ns);
        fprintf(printer->out, "\"samples\":%u,\"requests\":[", samples);
        for (uint32_t i = 0; i < item->n_spans; i++)
                fprintf(printer->out, "%s%" PRIu64, i ? "," : "", spans[i].request);
        fputs("]}}", printer->out);
        if (combined_ns <= ended_ns)
                return;
        print_event(printer, item, "combining", ended_ns, combined_ns);
        fputs("}}", printer->out);
}

static void print_waiting(struct printer *printer, const struct lane_item *item)
{
        print_event(printer, item, "queued", item->begun_ns, item->ended_ns);
        fprintf(printer->out, "\"request\":%" PRIu64 "}}", printer->lanes->trace->records[item->record].number);
}

static void print_request(struct printer *printer, const struct lane_item *item)
{
        static const char *const stages[4] = {"queued", "batched", "computing", "combining"};
        const struct sl_flight_record *record = &printer->lanes->trace->records[item->record];
        const struct sl_trace_span *waking = printer->lanes->spans + item->first_span;
        uint64_t ends[4], begun_ns = record->taken_ns, over_ns = lane_request_end(record);
        uint32_t n = lane_stages(record, ends);

        print_event(printer, item, model_name(printer, record->model), begun_ns, over_ns);
        fprintf(printer->out, "\"request\":%" PRIu64 ",\"index\":%u,\"samples\":%u,\"status\":%d,\"priority\":%u,\"uid\":%u}}",
                record->number, record->index, record->samples, record->status, record->priority, record->uid);
        for (uint32_t i = 0; i < n; begun_ns = ends[i++]) {
                print_event(printer, item, stages[i], begun_ns, ends[i]);
                fputs("}}", printer->out);
        }
        if (!item->n_spans)
                return;
        print_event(printer, item, "waking", waking->begun_ns > over_ns ? waking->begun_ns : over_ns, item->ended_ns);
        fputs("}}", printer->out);
}

static uint64_t first_ns(const struct lanes *lanes)
{
        uint64_t first = UINT64_MAX;

        for (size_t i = 0; i < lanes->n_items; i++)
                first = lanes->items[i].begun_ns < first ? lanes->items[i].begun_ns : first;
        return first;
}

static void print_item(struct printer *printer, const struct lane_item *item)
{
        if (item->is_first)
                print_lane(printer, item);
        switch (item->kind) {
        case LANE_WORKER:
                print_batch(printer, item);
                break;
        case LANE_QUEUE:
                print_waiting(printer, item);
                break;
        case LANE_CLIENT:
                print_request(printer, item);
                break;
        }
}

void trace_print_json(const struct lanes *lanes, FILE *out)
{
        struct printer printer = {.lanes = lanes, .out = out, .base_ns = first_ns(lanes), .comma = ""};
        const struct trace *trace = lanes->trace;

        fputs("{\"traceEvents\":[\n", out);
        for (int kind = LANE_WORKER; kind <= LANE_CLIENT; kind++)
                print_name(&printer, "process_name", kind, 0, kind_names[kind]);
        for (size_t i = 0; i < lanes->n_items; i++)
                print_item(&printer, &lanes->items[i]);
        fprintf(out,
                "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{\"requests\":%zu,\"lost_requests\":%" PRIu64
                ",\"lost_spans\":%" PRIu64 ",\"first_ns\":%" PRIu64 "}}\n",
                trace->n_records, trace->records_ring.lost, trace->spans_ring.lost, lanes->n_items ? printer.base_ns : 0);
}
