/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling offline submit|list|pause|resume|cancel`: work that nobody waits for, by processes of the user's own.
 */
#include "base/standard_fds.h"
#include "command.h"
#include "command_options.h"
#include "needs_text.h"
#include "offline_model.h"
#include "offline_output.h"
#include "offline_rule.h"
#include "offline_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPTIONS = OPTIONS_BEGIN, OFFLINE_OPTIONS(OPTION_ID) };

/* For a process that is asked to end, and looks ten times a second. */
#define END_TRIES 100

struct arguments {
        const char *name, *rule, *needs, *action;
        bool is_task, replaces, waits, json;
        int n;
        char **rest; /* behind the action */
        char root[PATH_MAX];
};

static int parse(int argc, char **argv, struct arguments *arguments)
{
        static const struct option options[] = {OFFLINE_OPTIONS(OPTION_GETOPT){0}};

        for (int option; (option = next_option(argc, argv, options)) != -1;) {
                if (option == OPTION_NAME)
                        arguments->name = optarg;
                else if (option == OPTION_RULE)
                        arguments->rule = optarg;
                else if (option == OPTION_TASK)
                        arguments->is_task = true;
                else if (option == OPTION_NEEDS)
                        arguments->needs = optarg;
                else if (option == OPTION_REPLACE)
                        arguments->replaces = true;
                else if (option == OPTION_WAIT)
                        arguments->waits = true;
                else if (option == OPTION_JSON)
                        arguments->json = true;
                else
                        return -EINVAL;
        }
        if (argc == optind)
                return -EINVAL;
        arguments->action = argv[optind];
        arguments->n = argc - optind - 1;
        arguments->rest = argv + optind + 1;
        return 0;
}

/* ---- processes ---- */

/* In the foreground. The lock is held. */
static int run_here(struct offline_job *job)
{
        int r = offline_run(job);
        uint32_t state = atomic_load_explicit(&job->progress->state, memory_order_relaxed);

        if (state == OFFLINE_CANCELLED) {
                offline_output_remove(job);
                offline_job_remove(job);
        }
        return r < 0 ? complain(STATUS_FAILED, "offline", "job %" PRIu32 ": %s", job->number, job->progress->text) : STATUS_OK;
}

/* What it says goes to the log in the job's folder. */
static void detach(const struct offline_job *job)
{
        char path[PATH_MAX + 8];
        int log;

        snprintf(path, sizeof(path), "%s/log", job->folder);
        log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        setsid();
        if (chdir("/") < 0 || log < 0)
                _exit(STATUS_FAILED);
        close(STDIN_FILENO);
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        sl_standard_fds_fill();
}

/* A process that is nobody's child: its parent ends at once. The lock is held here, and is the other's from then on. */
static int run_beside(struct offline_job *job)
{
        pid_t pid = fork();
        int status;

        if (pid < 0)
                return complain(
                        STATUS_FAILED, "offline", "no process for job %" PRIu32 ": %s", job->number, strerrordesc_np(errno));
        if (pid == 0) {
                pid = fork();
                if (pid == 0) {
                        detach(job);
                        _exit(run_here(job));
                }
                _exit(pid < 0 ? STATUS_FAILED : STATUS_OK);
        }
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return STATUS_OK;
}

static int run(const struct arguments *arguments, struct offline_job *job)
{
        return arguments->waits ? run_here(job) : run_beside(job);
}

/* ---- submit ---- */

static int set_paths(const struct arguments *arguments, struct offline_description *d, struct sl_error *error)
{
        char folder[PATH_MAX], *slash;
        const char *output = arguments->rest[2];

        if (!realpath(arguments->rest[1], d->input))
                return sl_error_set(error, errno, "%s: %s", arguments->rest[1], strerrordesc_np(errno));
        if (strlen(output) < 5 || strcmp(output + strlen(output) - 4, ".npy") != 0 || strlen(output) >= PATH_MAX)
                return sl_error_set(error, EINVAL, "%s: the output is a .npy file", output);
        snprintf(folder, sizeof(folder), "%s", output);
        slash = strrchr(folder, '/');
        if (slash)
                slash[1] = 0;
        if (!realpath(slash ? folder : ".", d->output))
                return sl_error_set(error, errno, "%s: %s", slash ? folder : ".", strerrordesc_np(errno));
        output = slash ? output + (slash - folder) + 1 : output;
        if (strlen(d->output) + strlen(output) + 32 >= PATH_MAX || strchr(d->input, '\n') || strchr(d->output, '\n') ||
                strchr(output, '\n'))
                return sl_error_set(error, EINVAL, "%s: no job takes a path that is so long, or of several lines", output);
        strcat(strcat(d->output, "/"), output);
        if (!arguments->replaces && access(d->output, F_OK) == 0)
                return sl_error_set(error, EEXIST, "%s: it exists (--replace writes over it)", d->output);
        return 0;
}

static int describe(const struct arguments *arguments, struct offline_description *d, struct sl_error *error)
{
        struct sl_needs needs;
        uint32_t samples;

        if (offline_rule_named(arguments->rule) == OFFLINE_RULES)
                return sl_error_set(error, EINVAL, "--rule: \"%s\" is none of starling, infaas, none", arguments->rule);
        if (arguments->needs && sl_needs_parse(arguments->needs, &needs, &samples, error) < 0)
                return sl_error_prefix(error, -EINVAL, "--needs");
        if (strlen(arguments->rest[0]) >= sizeof(d->model) || (arguments->needs && strlen(arguments->needs) >= sizeof(d->needs)) ||
                (arguments->name && strlen(arguments->name) >= sizeof(d->runtime)))
                return sl_error_set(error, EINVAL, "a name is too long");
        *d = (struct offline_description){.is_task = arguments->is_task || arguments->needs, .replaces = arguments->replaces};
        strcpy(d->model, arguments->rest[0]);
        strcpy(d->rule, arguments->rule);
        strcpy(d->needs, arguments->needs ? arguments->needs : "");
        strcpy(d->runtime, arguments->name ? arguments->name : "");
        return set_paths(arguments, d, error);
}

static int submit(struct arguments *arguments)
{
        struct offline_description description;
        struct offline_shape output;
        struct offline_job job;
        struct sl_error error = {""};
        int r;

        if (arguments->n != 3)
                return complain_usage("offline");
        r = describe(arguments, &description, &error);
        if (r == 0)
                r = offline_check(&description, &output, &error);
        if (r == 0)
                r = offline_job_new(arguments->root, &description, &job, &error);
        if (r < 0)
                return complain(r == -ENOTCONN ? STATUS_NOBODY
                                : r == -EPERM  ? STATUS_REFUSED
                                               : STATUS_FAILED,
                        "offline", "%s", error.text);
        r = offline_output_make(&job, &output, &error);
        if (r == 0 && offline_job_lock(&job) < 0)
                r = sl_error_set(&error, EBUSY, "job %" PRIu32 ": another process runs it", job.number);
        if (r < 0) {
                offline_job_remove(&job);
                return complain(STATUS_FAILED, "offline", "%s", error.text);
        }
        printf("%" PRIu32 "\n", job.number);
        fflush(stdout);
        r = run(arguments, &job);
        offline_job_close(&job);
        return r;
}

/* ---- list ---- */

static json_t *describe_json(const struct offline_job *job)
{
        const struct offline_description *d = &job->description;
        const struct offline_progress *p = job->progress;

        return json_pack("{s:I, s:s, s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:s}", "job", (json_int_t)job->number, "state",
                offline_job_state_name(job), "done", (json_int_t)p->done_samples, "samples", (json_int_t)p->samples, "rate",
                (json_int_t)p->rate, "process", (json_int_t)p->process, "model", d->model, "rule", d->rule, "input", d->input,
                "output", d->output, "why", p->text);
}

static void print_job(const struct offline_job *job)
{
        const struct offline_progress *p = job->progress;

        printf("%-5" PRIu32 " %-9s %12" PRIu64 " of %-12" PRIu64 " %8" PRIu32 "/s  %s -> %s%s%s\n", job->number,
                offline_job_state_name(job), p->done_samples, p->samples, p->rate, job->description.model, job->description.output,
                p->text[0] ? ": " : "", p->text);
}

static int list(const struct arguments *arguments)
{
        json_t *array = arguments->json ? json_array() : NULL;
        uint32_t *numbers;
        int n = offline_job_list(arguments->root, &numbers);

        if (n < 0)
                return complain(STATUS_FAILED, "offline", "%s: %s", arguments->root, strerrordesc_np(-n));
        for (int i = 0; i < n; i++) {
                struct sl_error error = {""};
                struct offline_job job;
                int r = offline_job_open(arguments->root, numbers[i], &job, &error);

                if (r < 0) {
                        if (r != -ENOENT) /* one that comes or goes just now */
                                complain(STATUS_FAILED, "offline", "%s", error.text);
                        continue;
                }
                if (array)
                        json_array_append_new(array, describe_json(&job));
                else
                        print_job(&job);
                offline_job_close(&job);
        }
        free(numbers);
        if (array) {
                json_dumpf(array, stdout, JSON_INDENT(2));
                putchar('\n');
                json_decref(array);
        }
        return STATUS_OK;
}

/* ---- pause, resume, cancel ---- */

static bool await_end(struct offline_job *job)
{
        for (int i = 0; i < END_TRIES; i++)
                if (offline_job_lock(job) == 0)
                        return true;
        return false;
}

static int pause_job(struct offline_job *job)
{
        if (!await_end(job))
                return complain(STATUS_FAILED, "offline", "job %" PRIu32 ": its process does not answer", job->number);
        if (atomic_load_explicit(&job->progress->state, memory_order_relaxed) <= OFFLINE_WAITING)
                offline_job_say(job, OFFLINE_PAUSED, "");
        return STATUS_OK;
}

static int resume_job(const struct arguments *arguments, struct offline_job *job)
{
        if (atomic_load_explicit(&job->progress->state, memory_order_relaxed) == OFFLINE_DONE)
                return complain(STATUS_FAILED, "offline", "job %" PRIu32 ": it is done", job->number);
        return offline_job_lock(job) < 0 ? STATUS_OK : run(arguments, job); /* else its process goes on */
}

static int cancel_job(struct offline_job *job)
{
        if (!await_end(job))
                return complain(STATUS_FAILED, "offline", "job %" PRIu32 ": its process does not answer", job->number);
        offline_output_remove(job);
        offline_job_remove(job);
        return STATUS_OK;
}

static int change(const struct arguments *arguments, const char *wish)
{
        struct sl_error error = {""};
        struct offline_job job;
        char *end;
        unsigned long number = arguments->n == 1 ? strtoul(arguments->rest[0], &end, 10) : 0;
        int r;

        if (arguments->n != 1)
                return complain_usage("offline");
        if (*end || number == 0 || number >= UINT32_MAX)
                return complain(STATUS_USAGE, "offline", "\"%s\" is no number of a job", arguments->rest[0]);
        r = offline_job_open(arguments->root, (uint32_t)number, &job, &error);
        if (r == 0 && (r = offline_job_set_wish(&job, wish, &error)) < 0)
                offline_job_close(&job);
        if (r < 0)
                return complain(STATUS_FAILED, "offline", "%s", error.text);
        r = *wish == 'p' ? pause_job(&job) : *wish == 'r' ? resume_job(arguments, &job) : cancel_job(&job);
        offline_job_close(&job);
        return r;
}

int command_offline(int argc, char **argv)
{
        struct arguments arguments = {.rule = "starling"};
        struct sl_error error = {""};

        if (parse(argc, argv, &arguments) < 0)
                return complain_usage(argv[0]);
        if (offline_root(arguments.root, &error) < 0)
                return complain(STATUS_FAILED, "offline", "%s", error.text);
        if (strcmp(arguments.action, "submit") == 0)
                return submit(&arguments);
        if (strcmp(arguments.action, "list") == 0 && arguments.n == 0)
                return list(&arguments);
        if (strcmp(arguments.action, "pause") == 0)
                return change(&arguments, "pause");
        if (strcmp(arguments.action, "resume") == 0)
                return change(&arguments, "run");
        if (strcmp(arguments.action, "cancel") == 0)
                return change(&arguments, "cancel");
        return complain_usage(argv[0]);
}
