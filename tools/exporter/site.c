/* SPDX-License-Identifier: Apache-2.0 */
#include "site.h"

#include "accept.h"
#include "base/clock.h"
#include "base/quote.h"
#include "health.h"
#include "history.h"
#include "host_names.h"
#include "page_text.h"
#include "snapshot_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define JSON  "application/json"
#define PLAIN "text/plain; charset=utf-8"
#define HTML  "text/html; charset=utf-8"

/* What was not so at the last look: on stderr. */
static void report_change(const struct watch *watch, const char *last_cause)
{
        char name[128];

        if (strcmp(watch->cause.text, last_cause) != 0)
                fprintf(stderr, "starling exporter: runtime %s: %s\n", sl_quote(watch->name, name, sizeof(name)),
                        watch_is_up(watch) ? "is there" : watch->cause.text);
}

static bool refresh(struct site *site)
{
        bool whole = true;

        for (uint32_t i = 0; i < site->n_watches; i++) {
                struct sl_error last = site->watches[i].cause;

                whole = watch_refresh(&site->watches[i]) == 0 && whole;
                report_change(&site->watches[i], last.text);
        }
        return whole;
}

static void look(struct site *site)
{
        for (uint32_t i = 0; i < site->n_watches; i++) {
                struct sl_error last = site->watches[i].cause;

                watch_look(&site->watches[i]);
                report_change(&site->watches[i], last.text);
        }
}

/* Anything in place of what was written so far. */
static void say(struct site_answer *answer, unsigned status, const char *line)
{
        text_clear(&answer->body);
        answer->status = status;
        answer->content_type = PLAIN;
        text_add(&answer->body, line);
}

static void answer_metrics(struct site *site, enum exposition_format format, struct site_answer *answer)
{
        bool whole = refresh(site);

        answer->content_type = exposition_content_type(format);
        exposition_write(&answer->body, site->watches, site->n_watches, format);
        if (!whole || answer->body.failed)
                say(answer, 503, "There are more metrics than memory, or than 64 MiB of text.\n");
}

static void answer_health(struct site *site, bool (*ask)(struct text *, const struct watch *, uint32_t), struct site_answer *answer)
{
        look(site);
        answer->content_type = PLAIN;
        answer->status = ask(&answer->body, site->watches, site->n_watches) ? 200 : 503;
}

/* ---- the page and its data ---- */

static void answer_index(struct site_answer *answer)
{
        answer->content_type = HTML;
        answer->policy = page_policy;
        text_add_bytes(&answer->body, (const char *)page_html, page_html_bytes);
}

static int add_piece(const char *bytes, size_t n, void *context)
{
        text_add_bytes(context, bytes, n);
        return 0;
}

/* What `starling stats --json` says, or null. */
static void add_stats(struct text *out, const struct watch *watch)
{
        struct snapshot *snapshot = NULL;
        json_t *object = NULL;

        if (watch->view && snapshot_take(watch->view, &snapshot, NULL) == 0)
                object = snapshot_json(snapshot);
        if (!object || json_dump_callback(object, add_piece, out, JSON_COMPACT) < 0)
                text_add(out, "null");
        json_decref(object);
        snapshot_free(snapshot);
}

static void add_runtime(struct text *out, const struct watch *watch)
{
        text_add(out, "{\"name\":");
        text_add_json_string(out, watch->name);
        text_add_format(out, ",\"up\":%s,\"cause\":", watch_is_up(watch) ? "true" : "false");
        text_add_json_string(out, watch->cause.text);
        text_add_format(out, ",\"gone_unix_ns\":%" PRIu64 ",\"stats\":", watch->gone_unix_ns);
        add_stats(out, watch);
        text_add(out, "}");
}

static void answer_stats(struct site *site, struct site_answer *answer)
{
        look(site);
        answer->content_type = JSON;
        text_add(&answer->body, "{\"exporter\":\"" STARLING_EXPORTER_VERSION "\",\"runtimes\":[");
        for (uint32_t i = 0; i < site->n_watches; i++) {
                text_add(&answer->body, i ? "," : "");
                add_runtime(&answer->body, &site->watches[i]);
        }
        text_add(&answer->body, "]}\n");
}

static void answer_history(const struct site *site, struct site_answer *answer)
{
        answer->content_type = JSON;
        text_add(&answer->body, "{\"runtimes\":[");
        for (uint32_t i = 0; site->histories && i < site->n_watches; i++) {
                text_add(&answer->body, i ? "," : "");
                history_write(site->histories[i], site->watches[i].name, &answer->body);
        }
        text_add(&answer->body, "]}\n");
}

int site_step(struct site *site)
{
        uint64_t now_ns = sl_clock_ns();

        if (now_ns >= site->step_ns) {
                look(site);
                for (uint32_t i = 0; i < site->n_watches; i++)
                        history_step(site->histories[i], watch_is_up(&site->watches[i]) ? site->watches[i].view : NULL);
                site->step_ns += HISTORY_STEP_SECONDS * SL_NS_PER_SECOND;
                if (site->step_ns <= now_ns) /* the first one, or who was stopped: it does not catch up */
                        site->step_ns = now_ns + HISTORY_STEP_SECONDS * SL_NS_PER_SECOND;
        }
        return (int)((site->step_ns - now_ns) / SL_NS_PER_MS) + 1;
}

/* ---- what is where ---- */

static const struct {
        const char *path;
        enum site_page page;
} addresses[] = {
        {"/", SITE_INDEX},
        {"/metrics", SITE_METRICS},
        {"/healthz", SITE_HEALTH},
        {"/readyz", SITE_READINESS},
        {"/api/stats", SITE_STATS},
        {"/api/history", SITE_HISTORY},
};

enum site_page site_find(const struct site *site, const struct site_request *request)
{
        enum site_page page = SITE_NOT_FOUND;

        if (!host_names_have(site->hosts, request->host))
                return SITE_MISDIRECTED;
        for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
                if (strcmp(request->path, addresses[i].path) == 0)
                        page = addresses[i].page;
        if (page == SITE_NOT_FOUND)
                return page;
        if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0)
                return SITE_NOT_ALLOWED;
        return page == SITE_METRICS && accept_format(request->accept) == EXPOSITION_OPENMETRICS ? SITE_OPENMETRICS : page;
}

void site_answer(struct site *site, enum site_page page, struct site_answer *ret_answer)
{
        *ret_answer = (struct site_answer){.status = 200, .policy = "default-src 'none'; frame-ancestors 'none'"};
        text_init(&ret_answer->body, SITE_BYTES_MAX);
        switch (page) {
        case SITE_INDEX:
                answer_index(ret_answer);
                break;
        case SITE_METRICS:
                answer_metrics(site, EXPOSITION_PROMETHEUS, ret_answer);
                break;
        case SITE_OPENMETRICS:
                answer_metrics(site, EXPOSITION_OPENMETRICS, ret_answer);
                break;
        case SITE_HEALTH:
                answer_health(site, health_lives, ret_answer);
                break;
        case SITE_READINESS:
                answer_health(site, health_is_ready, ret_answer);
                break;
        case SITE_STATS:
                answer_stats(site, ret_answer);
                break;
        case SITE_HISTORY:
                answer_history(site, ret_answer);
                break;
        case SITE_NOT_ALLOWED:
                say(ret_answer, 405, "GET and HEAD alone are answered.\n");
                ret_answer->allow = "GET, HEAD";
                break;
        case SITE_MISDIRECTED:
                say(ret_answer, 421, "Answered are addresses, localhost, the host's own name, and names that --host gives.\n");
                break;
        case SITE_NOT_FOUND:
        case SITE_PAGES:
                say(ret_answer, 404, "Not here. /metrics is.\nSo are /, /api/stats, /api/history, /healthz and /readyz.\n");
                break;
        }
        if (ret_answer->body.failed)
                say(ret_answer, 503, "There is more to say than memory, or than 64 MiB of text.\n");
}
