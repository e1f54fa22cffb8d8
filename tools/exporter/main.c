/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling exporter`: listens, gives up what it does not need, and answers until a signal comes. One thread.
 */
#include "attach.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/standard_fds.h"
#include "base/value.h"
#include "command_options.h"
#include "exporter_calls.h"
#include "history.h"
#include "host_names.h"
#include "http_server.h"
#include "landlock.h"
#include "listen_address.h"
#include "notify.h"
#include "sandbox.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { OPTIONS = OPTIONS_BEGIN, EXPORTER_OPTIONS(OPTION_ID) };
enum { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 }; /* as of every command */

static const struct option options[] = {EXPORTER_OPTIONS(OPTION_GETOPT){0}};

#define ADDRESS_DEFAULT "127.0.0.1:9464"
#define RUNTIMES_MAX    16u /* with their connections they stay below the sandbox's limit of descriptors */
#define DATA_BYTES_MAX  (1ull << 30)
#define ENDING_NS       SL_NS_PER_SECOND /* for answers that are under way */

struct exporter {
        const char *address;
        struct watch watches[RUNTIMES_MAX];
        struct history *histories[RUNTIMES_MAX];
        struct host_names hosts;
        struct site site;
        struct http_server *server;
        int listen_fd, signal_fd;
        int feed_ms; /* between two feedings of the watchdog; -1: nobody watches */
};

static int complain(int status, const char *text)
{
        fprintf(stderr, "starling exporter: %s\n", text);
        return status;
}

/* ---- the command line ---- */

static int take_name(struct exporter *exporter, const char *name, struct sl_error *error)
{
        uint32_t *n = &exporter->site.n_watches;
        char wish[SL_WISH_BYTES];

        if (sl_value_name(name, wish) < 0)
                return sl_error_set(error, EINVAL, "runtime \"%s\" is %s", name, wish);
        for (uint32_t i = 0; i < *n; i++)
                if (strcmp(name, exporter->watches[i].name) == 0)
                        return sl_error_set(error, EINVAL, "runtime \"%s\" is named twice", name);
        if (*n == RUNTIMES_MAX)
                return sl_error_set(
                        error, EINVAL, "runtime \"%s\" is number %u, at most %u are watched", name, *n + 1, RUNTIMES_MAX);
        watch_init(&exporter->watches[(*n)++], name);
        return 0;
}

/* Return: 0; -EINVAL with text, or none where getopt has said it. */
static int parse(struct exporter *exporter, int argc, char **argv, struct sl_error *error)
{
        int r = 0;

        host_names_init(&exporter->hosts);
        exporter->site.hosts = &exporter->hosts;
        for (int option; r == 0 && (option = next_option(argc, argv, options)) != -1;) {
                if (option == OPTION_LISTEN)
                        exporter->address = optarg;
                else if (option == OPTION_HOST)
                        r = host_names_add(&exporter->hosts, optarg, error);
                else if (option == OPTION_NAME)
                        r = take_name(exporter, optarg, error);
                else
                        r = -EINVAL;
        }
        for (int i = optind; i < argc && r == 0; i++)
                r = take_name(exporter, argv[i], error);
        if (r == 0 && exporter->site.n_watches == 0)
                r = take_name(exporter, "starling", error);
        return r;
}

/* ---- the start ---- */

/* SIGPIPE too: a scraper may go while it is answered. */
static int catch_signals(void)
{
        sigset_t signals;

        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGINT);
        signal(SIGPIPE, SIG_IGN);
        sigprocmask(SIG_BLOCK, &signals, NULL);
        return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int start_listening(struct exporter *exporter, struct sl_error *error)
{
        char name[128];
        int r = listen_handed_over(error);

        if (r == -ENOENT)
                r = listen_at(exporter->address, error);
        if (r < 0)
                return r;
        exporter->listen_fd = r;
        listen_name(r, name, sizeof(name));
        r = http_server_start(exporter->listen_fd, &exporter->site, &exporter->server, error);
        if (r == 0)
                fprintf(stderr, "starling exporter: listens at %s\n", name);
        return r;
}

static bool is_folder(const char *path)
{
        struct stat status;

        return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* The folder above the one of the socket, as that one may come and go with its runtime; where it is not there yet, the next one
 * above that is. */
static const char *folder_of_sockets(const char *name, char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)])
{
        char *slash;

        if (sl_socket_path(name, path, sizeof(((struct sockaddr_un *)NULL)->sun_path)) < 0)
                return "/run";
        for (int i = 0; i < 2 || !is_folder(path); i++) {
                slash = strrchr(path, '/');
                if (!slash || slash == path)
                        return "/run"; /* not all that there is */
                *slash = 0;
        }
        return path;
}

/* All that is kept is to read the pages, whomever they are for when root runs it. */
static int enter_sandbox(struct exporter *exporter, struct sl_error *error)
{
        char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
        const struct sl_landlock_path folders[] = {
                {.name = SL_STATS_DIRECTORY}, {.name = "/run"}, {.name = folder_of_sockets(exporter->watches[0].name, path)}};
        struct sl_call_list calls;
        const char *only = NULL;
        const struct sl_sandbox_limits limits = {
                .address_bytes = SL_SANDBOX_NO_LIMIT, /* pages are mapped */
                .data_bytes = DATA_BYTES_MAX,
                .file_bytes = SL_SANDBOX_NO_LIMIT, /* its log may be a file; no other can be written to */
                .seconds = SL_SANDBOX_NO_LIMIT,
                .capabilities = 1ull << CAP_DAC_READ_SEARCH,
                .calls = &calls,
                .paths = folders,
                .n_paths = sizeof(folders) / sizeof(folders[0]),
        };
        int r;

        exporter_calls_init(&calls);
        r = sl_sandbox_enter(&limits, &only, error);
        if (r == 0 && only)
                fprintf(stderr, "starling exporter: this host has %s\n", only);
        return r;
}

/* ---- the loop ---- */

static int turn_ms(struct exporter *exporter)
{
        int step_ms = site_step(&exporter->site);

        return exporter->feed_ms >= 0 && exporter->feed_ms < step_ms ? exporter->feed_ms : step_ms;
}

/* A second signal cuts off what the first one lets end. */
static void run_to_the_end(struct exporter *exporter)
{
        struct signalfd_siginfo first;
        uint64_t until_ns;

        while (!http_server_run(exporter->server, exporter->signal_fd, turn_ms(exporter)))
                if (exporter->feed_ms >= 0)
                        sl_notify("WATCHDOG=1"); /* a little more often than asked for where requests come */
        sl_notify("STOPPING=1");
        http_server_quiesce(exporter->server);
        until_ns = sl_clock_ns() + ENDING_NS;
        if (read(exporter->signal_fd, &first, sizeof(first)) != (ssize_t)sizeof(first))
                return;
        while (http_server_is_answering(exporter->server) && sl_clock_ns() < until_ns)
                if (http_server_run(exporter->server, exporter->signal_fd, 10))
                        return;
}

static int find_watchdog(void)
{
        uint64_t us;
        int r = sl_notify_watchdog(&us);

        if (r < 0)
                complain(STATUS_OK, "$WATCHDOG_USEC is no number of microseconds above 0: the watchdog is not fed");
        if (r <= 0)
                return -1;
        us /= SL_NOTIFY_FEEDINGS * 1000ul;
        return us < 1 ? 1 : us < INT_MAX ? (int)us : INT_MAX;
}

static int make_histories(struct exporter *exporter, struct sl_error *error)
{
        for (uint32_t i = 0; i < exporter->site.n_watches; i++) {
                exporter->histories[i] = history_new(HISTORY_MODELS_MAX / exporter->site.n_watches);
                if (!exporter->histories[i])
                        return sl_error_set(error, ENOMEM, "no memory");
        }
        exporter->site.histories = exporter->histories;
        json_object_seed(0); /* from a file, which is out of reach later */
        return 0;
}

static int serve(struct exporter *exporter, struct sl_error *error)
{
        int r = make_histories(exporter, error);

        if (r < 0)
                return r;

        exporter->signal_fd = catch_signals();
        if (exporter->signal_fd < 0)
                return sl_error_set(error, errno, "signals: %s", strerror(errno));
        if (exporter->signal_fd >= FD_SETSIZE - 1)
                return sl_error_set(
                        error, EMFILE, "%d descriptors are open at the start, at most %d", exporter->signal_fd, FD_SETSIZE - 2);
        exporter->feed_ms = find_watchdog();
        r = start_listening(exporter, error);
        if (r < 0)
                return r;
        /* Before the sandbox, which keeps it from a manager whose socket has an abstract name. Who connects now, waits. */
        if (sl_notify("READY=1") < 0)
                complain(STATUS_OK, "the service manager cannot be told that it is ready");
        r = enter_sandbox(exporter, error);
        if (r == 0)
                run_to_the_end(exporter);
        return r;
}

int main(int argc, char **argv)
{
        struct exporter *exporter = calloc(1, sizeof(*exporter));
        struct sl_error error = {""};
        int r;

        sl_standard_fds_fill();
        if (!exporter)
                return complain(STATUS_FAILED, "no memory");
        exporter->address = ADDRESS_DEFAULT;
        exporter->site.watches = exporter->watches;
        r = parse(exporter, argc, argv, &error);
        if (r < 0 && !error.text[0])
                snprintf(error.text, sizeof(error.text),
                        "usage: starling exporter [--listen ADDRESS] [NAME...]; `starling exporter --help` says more");
        if (r == 0)
                r = serve(exporter, &error);
        http_server_stop(exporter->server);
        for (uint32_t i = 0; i < exporter->site.n_watches; i++) {
                history_free(exporter->histories[i]);
                watch_deinit(&exporter->watches[i]);
        }
        free(exporter);
        return r == 0 ? STATUS_OK : complain(r == -EINVAL ? STATUS_USAGE : STATUS_FAILED, error.text);
}
