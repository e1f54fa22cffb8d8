/* SPDX-License-Identifier: Apache-2.0 */
#include "site.h"

#include "accept.h"
#include "base/quote.h"
#include "health.h"

#include <stdio.h>
#include <string.h>

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

static void add_html(struct text *out, const char *string)
{
        for (; *string; string++)
                if (strchr("<>&\"", *string))
                        text_add_format(out, "&#%d;", *string);
                else
                        text_add_bytes(out, string, 1);
}

static void answer_index(struct site *site, struct site_answer *answer)
{
        struct text *out = &answer->body;

        refresh(site);
        answer->content_type = HTML;
        text_add(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><title>starling exporter</title></head><body>\n"
                      "<h1>starling exporter " STARLING_EXPORTER_VERSION "</h1>\n"
                      "<p><a href=\"/metrics\">Metrics</a> of Starling runtimes, for Prometheus:</p>\n<ul>\n");
        for (uint32_t i = 0; i < site->n_watches; i++) {
                text_add(out, "<li>");
                add_html(out, site->watches[i].name);
                text_add(out, ": ");
                add_html(out, watch_is_up(&site->watches[i]) ? "up" : site->watches[i].cause.text);
                text_add(out, "</li>\n");
        }
        text_add(out, "</ul>\n</body></html>\n");
}

static const struct {
        const char *path;
        enum site_page page;
} addresses[] = {
        {"/", SITE_INDEX},
        {"/metrics", SITE_METRICS},
        {"/healthz", SITE_HEALTH},
        {"/readyz", SITE_READINESS},
};

enum site_page site_find(const char *method, const char *path, const char *accept)
{
        enum site_page page = SITE_NOT_FOUND;

        for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
                if (strcmp(path, addresses[i].path) == 0)
                        page = addresses[i].page;
        if (page == SITE_NOT_FOUND)
                return page;
        if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
                return SITE_NOT_ALLOWED;
        return page == SITE_METRICS && accept_format(accept) == EXPOSITION_OPENMETRICS ? SITE_OPENMETRICS : page;
}

void site_answer(struct site *site, enum site_page page, struct site_answer *ret_answer)
{
        *ret_answer = (struct site_answer){.status = 200};
        text_init(&ret_answer->body, SITE_BYTES_MAX);
        switch (page) {
        case SITE_INDEX:
                answer_index(site, ret_answer);
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
        case SITE_NOT_ALLOWED:
                say(ret_answer, 405, "GET and HEAD alone are answered.\n");
                ret_answer->allow = "GET, HEAD";
                break;
        case SITE_NOT_FOUND:
        case SITE_PAGES:
                say(ret_answer, 404, "Not here. /metrics is.\nSo are /, /healthz and /readyz.\n");
                break;
        }
}
