/* SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_LINE  "# starling trace 1"
#define LINE_BYTES  1536
#define SAMPLES_MAX INT32_MAX
#define DUE_NS_MAX  (1000000ull * SL_NS_PER_SECOND) /* eleven days */

void sl_trace_deinit(struct sl_trace *trace)
{
        free(trace->models);
        free(trace->requests);
        *trace = (struct sl_trace){0};
}

int sl_trace_model(struct sl_trace *trace, const char *name, uint32_t *ret_model)
{
        if (strlen(name) >= SL_TRACE_NAME_BYTES)
                return -ENAMETOOLONG;
        if (!*name || strpbrk(name, " \t\r\n#"))
                return -EINVAL;
        for (uint32_t i = 0; i < trace->n_models; i++) {
                if (strcmp(trace->models[i], name) == 0) {
                        *ret_model = i;
                        return 0;
                }
        }
        char(*models)[SL_TRACE_NAME_BYTES] = realloc(trace->models, (trace->n_models + 1) * sizeof(*models));

        if (!models)
                return -ENOMEM;
        trace->models = models;
        strcpy(models[trace->n_models], name);
        *ret_model = trace->n_models++;
        return 0;
}

static int make_room(struct sl_trace *trace)
{
        size_t room = trace->room ? 2 * trace->room : 1024;

        if (trace->n_requests < trace->room)
                return 0;
        struct sl_load_request *requests = realloc(trace->requests, room * sizeof(*requests));

        if (!requests)
                return -ENOMEM;
        trace->requests = requests;
        trace->room = room;
        return 0;
}

int sl_trace_add(struct sl_trace *trace, const struct sl_load_request *request)
{
        if (request->model >= trace->n_models || request->samples == 0)
                return -EINVAL;
        if (trace->n_requests && request->due_ns < trace->requests[trace->n_requests - 1].due_ns)
                return -EINVAL;
        int r = make_room(trace);

        if (r == 0)
                trace->requests[trace->n_requests++] = *request;
        return r;
}

/* ---- reading ---- */

/* "1250000 mobilenetv2 4\n" */
static int read_request(struct sl_trace *trace, const char *line, struct sl_error *error)
{
        char due[256], name[SL_TRACE_NAME_BYTES], number[256], wish[SL_WISH_BYTES];
        struct sl_load_request request;
        uint64_t samples;
        int end = 0;

        if (sscanf(line, "%255s %1151s %255s %n", due, name, number, &end) != 3 || line[end])
                return sl_error_set(error, EINVAL, "wants \"due_ns model samples\", got \"%.*s\"", (int)strcspn(line, "\n"), line);
        if (sl_value_number(due, 0, DUE_NS_MAX, &request.due_ns, wish) < 0)
                return sl_error_set(error, EINVAL, "due_ns is %s, got \"%s\"", wish, due);
        if (sl_value_number(number, 1, SAMPLES_MAX, &samples, wish) < 0)
                return sl_error_set(error, EINVAL, "samples are %s, got \"%s\"", wish, number);
        request.samples = (uint32_t)samples;
        int r = sl_trace_model(trace, name, &request.model);
        if (r < 0)
                return sl_error_set(error, -r, "model \"%s\": %s", name, strerror(-r));
        if (trace->n_requests && request.due_ns < trace->requests[trace->n_requests - 1].due_ns)
                return sl_error_set(error, EINVAL, "due at %" PRIu64 " ns, before the line above, which is due at %" PRIu64 " ns",
                        request.due_ns, trace->requests[trace->n_requests - 1].due_ns);
        r = sl_trace_add(trace, &request);
        return r < 0 ? sl_error_set(error, -r, "%s", strerror(-r)) : 0;
}

static int read_lines(FILE *file, struct sl_trace *trace, struct sl_error *error)
{
        char line[LINE_BYTES];

        for (uint32_t number = 1; fgets(line, sizeof(line), file); number++) {
                int r = 0;

                if (!strchr(line, '\n') && !feof(file))
                        r = sl_error_set(error, EINVAL, "longer than %d bytes", LINE_BYTES - 2);
                else if (number == 1 && strncmp(line, FIRST_LINE, strlen(FIRST_LINE)) != 0)
                        r = sl_error_set(error, EINVAL, "wants \"" FIRST_LINE "\"");
                else if (line[0] != '#' && line[0] != '\n')
                        r = read_request(trace, line, error);
                if (r < 0)
                        return sl_error_prefix(error, r, "line %u", number);
        }
        return ferror(file) ? sl_error_set(error, EIO, "cannot be read") : 0;
}

int sl_trace_read(const char *path, struct sl_trace *trace, struct sl_error *error)
{
        FILE *file = fopen(path, "re");

        if (!file)
                return sl_error_set(error, errno, "trace \"%s\": %s", path, strerror(errno));
        int r = read_lines(file, trace, error);
        fclose(file);
        if (r == 0 && trace->n_requests == 0)
                r = sl_error_set(error, EINVAL, "has no requests");
        else if (r == 0 && trace->requests[trace->n_requests - 1].due_ns == 0)
                r = sl_error_set(error, EINVAL, "all requests are due at 0 ns: it takes no time, and cannot begin again");
        if (r < 0)
                sl_trace_deinit(trace);
        return r < 0 ? sl_error_prefix(error, r, "trace \"%s\"", path) : 0;
}

int sl_trace_write(const struct sl_trace *trace, FILE *file)
{
        fputs(FIRST_LINE "\n# due_ns model samples\n", file);
        for (size_t i = 0; i < trace->n_requests; i++)
                fprintf(file, "%" PRIu64 " %s %u\n", trace->requests[i].due_ns, trace->models[trace->requests[i].model],
                        trace->requests[i].samples);
        return fflush(file) || ferror(file) ? -EIO : 0;
}
