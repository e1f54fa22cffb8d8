/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parent's side of a compilation: starts the child, waits for it or for its time to end, reads what it reported.
 *
 *     epoll (what sl_compile_fd() hands out) -- pidfd of the child
 *                                            -- timer: the wall time is over
 *
 * All descriptors are closed on exec; the child gets the plan's memfd, the report pipe, the socket on which it asks for external
 * data and, where there is one, the base plan to read under fixed numbers, and nothing else but the standard streams. The child
 * dies with the *thread* that started it (PR_SET_PDEATHSIG), which is the owner.
 */
#include "compile.h"

#include "base/background.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "child_args.h"
#include "child_environment.h"
#include "child_spawn.h"
#include "compile_zygote.h"
#include "external_opener.h"
#include "lower_options.h"
#include "page_maker.h"
#include "tried_sizes.h"
#include "zygote.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEAL_TRIES                8
#define WALL_PER_PROCESSOR_SECOND 2
#define FORM_GROWTH               4 /* of a filter in Winograd's forms, at most */
#define ARG_TEXT_BYTES            32
#define OPTION_TEXT_BYTES         (SL_LOWER_OPTION_TEXT_BYTES + 64) /* its name in front */

struct sl_compilation {
        pid_t pid; /* 0 before the start and after the reaping */
        int pid_fd, timer_fd, epoll_fd, plan_fd, report_fd;
        uint64_t memory_bytes, seconds;
        struct sl_compile_zygote *zygote; /* borrowed; NULL: none was asked */
        struct sl_page_maker *pages;      /* NULL: nobody makes pages ahead of the child */
};

SL_DEFINE_CLEANUP(struct sl_compilation *, sl_compile_cancel)

/* The lower of the caller's limit and the model's own; tuning and what a merge times have bounds of their own and come on top. */
static uint64_t time_limit(const struct sl_compile_options *options)
{
        const struct sl_lower_options *lowering = options->lowering;
        uint64_t own = lowering->plan_seconds;

        return (options->seconds && options->seconds < own ? options->seconds : own) +
               (lowering->tune == SL_TUNE_OFF ? 0 : lowering->tune_seconds) +
               (options->n_members ? (uint64_t)ceil(lowering->merge_seconds) : 0);
}

/* A lower limit of this process binds the child as well, and messages name the one that does. */
static uint64_t lower_to_own(uint64_t value, int resource)
{
        struct rlimit own;

        return getrlimit(resource, &own) == 0 && own.rlim_max < value ? own.rlim_max : value;
}

static uint64_t memory_limit(const struct sl_compile_options *options)
{
        uint64_t wanted = options->memory_bytes ? options->memory_bytes : SL_COMPILE_MEMORY_BYTES_DEFAULT;

        return lower_to_own(lower_to_own(wanted, RLIMIT_AS), RLIMIT_FSIZE);
}

static struct sl_compilation *compilation_new(const struct sl_compile_options *options)
{
        struct sl_compilation *compilation = calloc(1, sizeof(*compilation));

        if (!compilation)
                return NULL;
        compilation->pid_fd = compilation->timer_fd = compilation->epoll_fd = -1;
        compilation->plan_fd = compilation->report_fd = -1;
        compilation->memory_bytes = memory_limit(options);
        compilation->seconds = lower_to_own(time_limit(options), RLIMIT_CPU);
        return compilation;
}

static int make_plan_fd(struct sl_compilation *compilation, struct sl_error *error)
{
        int fd = memfd_create("starling-plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        if (fd < 0)
                return sl_error_set(error, errno, "memory for the plan file: %s", strerror(errno));
        compilation->plan_fd = fd;
        return 0;
}

static int make_pipe(struct sl_compilation *compilation, int *ret_write_fd, struct sl_error *error)
{
        int ends[2];

        if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
                return sl_error_set(error, errno, "report pipe: %s", strerror(errno));
        compilation->report_fd = ends[0];
        *ret_write_fd = ends[1];
        return 0;
}

static int open_base(int base_fd, int *ret_fd, struct sl_error *error)
{
        int fd = base_fd ? sl_spawn_read_only(base_fd) : -1;

        if (base_fd && fd < 0)
                return sl_error_set(error, -fd, "base plan: it cannot be opened for reading: %s", strerror(-fd));
        *ret_fd = fd;
        return 0;
}

/*
 * About as long as the file of the model; where it is less the child cuts it off. A derived plan has its weights elsewhere, and
 * what a merged one comes to depends on the merge.
 */
static uint64_t expected_plan_bytes(const struct sl_compile_options *options)
{
        bool halves = options->lowering->weights != SL_WEIGHTS_FP32 || options->lowering->precision != SL_PRECISION_FP32;
        struct stat status;

        if (options->base_fd || options->n_members || stat(options->model_path, &status) < 0 || status.st_size <= 0)
                return 0;
        return (uint64_t)status.st_size / (halves ? 2 : 1);
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

/*
 * Before the child starts: nobody else writes the file. It may not get longer than the child's limit allows, and what the child
 * lengthens it by, for filters that take more room in another form, is not believed beyond what such forms come to.
 */
static void start_pages(struct sl_compilation *compilation, const struct sl_compile_options *options)
{
        uint64_t bytes = expected_plan_bytes(options), most = compilation->memory_bytes / SL_COMPILE_PLAN_PART;

        compilation->pages = sl_page_maker_start(compilation->plan_fd, lesser(bytes, most), lesser(FORM_GROWTH * bytes, most));
}

/* The child's ends of what it gets beside the plan's memfd. -1: it does not get it. */
struct child_ends {
        int report_fd, external_fd, base_fd;
};

static void child_ends_close(struct child_ends *ends)
{
        sl_cleanup_fd(&ends->report_fd);
        sl_cleanup_fd(&ends->external_fd);
        sl_cleanup_fd(&ends->base_fd);
}

static int make_external_socket(const struct sl_compile_options *options, int *ret_child_fd, struct sl_error *error)
{
        const char *paths[1 + SL_COMPILE_MEMBERS_MAX] = {options->model_path};
        int ends[2], r;

        for (uint32_t i = 0; i < options->n_members; i++)
                paths[1 + i] = options->members[i];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return sl_error_set(error, errno, "socket for external data: %s", strerror(errno));
        r = sl_external_opener_start(paths, 1 + options->n_members, options->data_folders, ends[0]);
        if (r < 0) {
                close(ends[1]);
                return sl_error_set(error, -r, "thread for external data: %s", strerror(-r));
        }
        *ret_child_fd = ends[1];
        return 0;
}

static int make_ends(struct sl_compilation *compilation, const struct sl_compile_options *options, struct child_ends *ends,
        struct sl_error *error)
{
        int r = make_plan_fd(compilation, error);

        if (r == 0)
                r = make_pipe(compilation, &ends->report_fd, error);
        if (r == 0)
                r = make_external_socket(options, &ends->external_fd, error);
        if (r == 0)
                r = open_base(options->base_fd, &ends->base_fd, error);
        return r;
}

struct arguments {
        char numbers[SL_CHILD_ARG_COUNT][ARG_TEXT_BYTES];
        char options[SL_LOWER_OPTION_COUNT][OPTION_TEXT_BYTES];
        char tried[SL_TRIED_SIZES_MAX][SL_DIM_SIZES_TEXT_MAX];
        char *argv[2 + 2 * SL_CHILD_ARG_COUNT + 2 * SL_COMPILE_MEMBERS_MAX + 2 * SL_TRIED_SIZES_MAX + 2 * SL_LOWER_OPTION_COUNT +
                   1];
};

static char *number_text(struct arguments *arguments, enum sl_child_arg arg, uint64_t value)
{
        snprintf(arguments->numbers[arg], ARG_TEXT_BYTES, "%llu", (unsigned long long)value);
        return arguments->numbers[arg];
}

static char *option_text(struct arguments *arguments, const struct sl_lower_options *lowering, enum sl_lower_option option)
{
        char value[SL_LOWER_OPTION_TEXT_BYTES];

        sl_lower_options_text(lowering, option, value);
        snprintf(arguments->options[option], OPTION_TEXT_BYTES, "%s=%s", sl_lower_option_name(option), value);
        return arguments->options[option];
}

static void fill_arguments(struct arguments *arguments, const char *program, const struct sl_compile_options *options,
        const struct sl_compilation *compilation)
{
        static const char *const flags[SL_CHILD_ARG_COUNT] = {
#define X(id, name) [SL_CHILD_ARG_##id] = "--" name,
                SL_CHILD_ARGS(X)
#undef X
        };
        char *values[SL_CHILD_ARG_COUNT] = {
                [SL_CHILD_ARG_MODEL] = (char *)options->model_path,
                [SL_CHILD_ARG_MEMORY_BYTES] = number_text(arguments, SL_CHILD_ARG_MEMORY_BYTES, compilation->memory_bytes),
                [SL_CHILD_ARG_SECONDS] = number_text(arguments, SL_CHILD_ARG_SECONDS, compilation->seconds),
                [SL_CHILD_ARG_PARENT] = number_text(arguments, SL_CHILD_ARG_PARENT, (uint64_t)getpid()),
                [SL_CHILD_ARG_PLAN_FD] = number_text(arguments, SL_CHILD_ARG_PLAN_FD, SL_CHILD_PLAN_FD),
                [SL_CHILD_ARG_REPORT_FD] = number_text(arguments, SL_CHILD_ARG_REPORT_FD, SL_CHILD_REPORT_FD),
                [SL_CHILD_ARG_BASE] = number_text(arguments, SL_CHILD_ARG_BASE, options->base_fd != 0),
                [SL_CHILD_ARG_BASE_SUM] = number_text(arguments, SL_CHILD_ARG_BASE_SUM, options->base_sum),
                [SL_CHILD_ARG_EXTERNAL] = number_text(arguments, SL_CHILD_ARG_EXTERNAL, 1),
        };
        struct sl_lower_options lowering = *options->lowering;
        char **next = arguments->argv;

        lowering.team_size = sl_lower_options_team(&lowering); /* the child may not ask how many CPUs there are */
        *next++ = (char *)program;
        *next++ = (char *)SL_CHILD_COMMAND;
        for (uint32_t i = 0; i < SL_CHILD_ARG_COUNT; i++) {
                *next++ = (char *)flags[i];
                *next++ = values[i];
        }
        for (uint32_t i = 0; i < options->n_members; i++) {
                *next++ = (char *)"--" SL_CHILD_MEMBER;
                *next++ = (char *)options->members[i];
        }
        for (uint32_t i = 0; options->tried && i < options->tried->n; i++) {
                *next++ = (char *)"--" SL_CHILD_TRIED;
                *next++ = (char *)sl_dim_sizes_print(&options->tried->items[i], arguments->tried[i]);
        }
        for (uint32_t i = 0; i < SL_LOWER_OPTION_COUNT; i++) {
                *next++ = (char *)"--" SL_CHILD_OPTION;
                *next++ = option_text(arguments, &lowering, (enum sl_lower_option)i);
        }
        *next = NULL;
}

/* A new process of the program. */
static int spawn(const char *program, char **argv, const int *fds, uint32_t n_fds, pid_t *ret_pid)
{
        SL_CLEANUP(sl_cleanup_free) char **environment = sl_child_environment();

        if (!environment)
                return -ENOMEM;
        return sl_spawn(
                &(struct sl_spawn_options){
                        .program = program, .argv = argv, .environment = environment, .fds = fds, .n_fds = n_fds},
                ret_pid);
}

/* @zygote: NULL: there is none. Where it cannot, the program is started. */
static int start_child(
        struct sl_compilation *compilation, struct sl_compile_zygote *zygote, char **argv, const struct child_ends *ends)
{
        const int fds[] = {
                [SL_CHILD_PLAN_FD - SL_SPAWN_FIRST_FD] = compilation->plan_fd,
                [SL_CHILD_REPORT_FD - SL_SPAWN_FIRST_FD] = ends->report_fd,
                [SL_CHILD_EXTERNAL_FD - SL_SPAWN_FIRST_FD] = ends->external_fd,
                [SL_CHILD_BASE_FD - SL_SPAWN_FIRST_FD] = ends->base_fd,
        };
        const uint32_t n_fds = sizeof(fds) / sizeof(fds[0]) - (ends->base_fd < 0);
        int r = zygote ? sl_compile_zygote_fork(zygote, argv, fds, n_fds, &compilation->pid) : -EAGAIN;

        return r == -EAGAIN ? spawn(argv[0], argv, fds, n_fds, &compilation->pid) : r;
}

static int watch(int epoll_fd, int fd)
{
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

        return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static int watch_child(struct sl_compilation *compilation, struct sl_error *error)
{
        struct itimerspec wall = {.it_value.tv_sec = (time_t)(compilation->seconds * WALL_PER_PROCESSOR_SECOND)};

        compilation->pid_fd = (int)syscall(SYS_pidfd_open, compilation->pid, 0);
        compilation->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        compilation->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (compilation->pid_fd < 0 || compilation->timer_fd < 0 || compilation->epoll_fd < 0)
                return sl_error_set(error, errno, "watching the compiler's process: %s", strerror(errno));
        if (timerfd_settime(compilation->timer_fd, 0, &wall, NULL) < 0 || watch(compilation->epoll_fd, compilation->pid_fd) < 0 ||
                watch(compilation->epoll_fd, compilation->timer_fd) < 0)
                return sl_error_set(error, errno, "watching the compiler's process: %s", strerror(errno));
        return 0;
}

static int start_with(struct sl_compile_zygote *zygote, const struct sl_compile_options *options,
        struct sl_compilation **ret_compilation, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_compile_cancel) struct sl_compilation *compilation = compilation_new(options);
        SL_CLEANUP(child_ends_close) struct child_ends ends = {-1, -1, -1};
        const char *program = options->program ? options->program : "/proc/self/exe";
        struct arguments arguments;
        int r;

        if (!compilation)
                return sl_error_set(error, ENOMEM, "compilation: no memory for %zu bytes", sizeof(*compilation));
        r = make_ends(compilation, options, &ends, error);
        if (r < 0)
                return r;
        fill_arguments(&arguments, program, options, compilation);
        start_pages(compilation, options);
        r = start_child(compilation, zygote, arguments.argv, &ends);
        compilation->zygote = zygote;
        if (r < 0)
                return sl_error_set(error, -r, "\"%s\" cannot be started: %s", program, strerror(-r));
        if (options->background)
                sl_background_process(compilation->pid);
        r = watch_child(compilation, error);
        if (r < 0)
                return r;
        *ret_compilation = sl_take(compilation);
        return 0;
}

/* A zygote that ends over an order may have left a child, which has the descriptors of that start: it gets no others. */
static int start(const struct sl_compile_options *options, struct sl_compilation **ret_compilation, struct sl_error *error)
{
        int r = start_with(options->zygote, options, ret_compilation, error);

        return r == -EIO && options->zygote ? start_with(NULL, options, ret_compilation, error) : r;
}

int sl_compile_start(const struct sl_compile_options *options, struct sl_compilation **ret_compilation, struct sl_error *error)
{
        struct sl_compile_options complete = *options;
        struct sl_lower_options defaults;

        sl_lower_options_init(&defaults);
        if (!complete.lowering)
                complete.lowering = &defaults;
        if (complete.n_members > SL_COMPILE_MEMBERS_MAX)
                return sl_error_set(error, EINVAL, "%u models are to be merged, at most %d are", 1 + complete.n_members,
                        1 + SL_COMPILE_MEMBERS_MAX);
        return start(&complete, ret_compilation, error);
}

int sl_compile_fd(const struct sl_compilation *compilation)
{
        return compilation->epoll_fd;
}

static void reap(struct sl_compilation *compilation, siginfo_t *ret_status)
{
        memset(ret_status, 0, sizeof(*ret_status));
        while (waitid(P_PID, (id_t)compilation->pid, ret_status, WEXITED) < 0 && errno == EINTR)
                ;
        compilation->pid = 0;
}

/* True when the child has ended by itself; else it has been killed for its time. */
static bool wait_for_end(struct sl_compilation *compilation)
{
        struct pollfd child = {.fd = compilation->pid_fd, .events = POLLIN};
        struct pollfd either = {.fd = compilation->epoll_fd, .events = POLLIN};

        while (poll(&either, 1, -1) < 0 && errno == EINTR)
                ;
        if (poll(&child, 1, 0) == 1)
                return true;
        kill(compilation->pid, SIGKILL);
        return false;
}

/* What the child has said: a warning, and why it failed. NULL: nothing. */
struct report {
        char bytes[2 * (SL_ERROR_TEXT_BYTES + 16) + SL_COMPILE_NOTES_BYTES];
        struct sl_compile_notes notes;
        const char *warning, *reason;
        int code; /* of the reason */
};

/* Takes "NUMBER TEXT\n" off the front of @text. Return: what is behind it; NULL when there is no such line. */
static char *split_line(char *text, long *ret_number, const char **ret_text)
{
        size_t length = strcspn(text, "\n");
        bool more = text[length] == '\n';
        char *rest;

        text[length] = 0;
        *ret_number = strtol(text, &rest, 10);
        if (rest == text || *rest != ' ')
                return NULL;
        *ret_text = rest + 1;
        return text + length + more;
}

/* What does not fit is left out. */
static void add_note(struct sl_compile_notes *notes, const char *text)
{
        size_t used = strlen(notes->text), length = strlen(text);

        if (used + length + 2 > sizeof(notes->text))
                return;
        memcpy(notes->text + used, text, length);
        memcpy(notes->text + used + length, "\n", 2);
}

static void read_report(const struct sl_compilation *compilation, struct report *report)
{
        ssize_t n = read(compilation->report_fd, report->bytes, sizeof(report->bytes) - 1);
        char *next = report->bytes;
        const char *text;
        long number;

        report->bytes[n > 0 ? n : 0] = 0;
        report->warning = report->reason = NULL;
        report->notes.text[0] = 0;
        for (char *c = report->bytes; *c; c++) {
                if ((unsigned char)*c < ' ' && *c != '\n')
                        *c = '?';
        }
        while ((next = split_line(next, &number, &text))) {
                if (number == 0)
                        report->warning = text;
                if (number == SL_CHILD_NOTE)
                        add_note(&report->notes, text);
                if (number <= 0 || number > 4095)
                        continue;
                report->reason = text;
                report->code = (int)number;
        }
}

static int failed_by_signal(const struct sl_compilation *compilation, int signal_number, struct sl_error *error)
{
        if (signal_number == SIGXCPU)
                return sl_error_set(error, ETIME, "compiler's process: over its time limit of %llu s",
                        (unsigned long long)compilation->seconds);
        if (signal_number == SIGXFSZ)
                return sl_error_set(error, ENOMEM, "compiler's process: over its memory limit of %llu bytes",
                        (unsigned long long)compilation->memory_bytes);
        return sl_error_set(error, ECHILD, "compiler's process: killed by signal %d (%s)", signal_number, strsignal(signal_number));
}

static int failed_by_report(
        const struct sl_compilation *compilation, int status, const struct report *report, struct sl_error *error)
{
        if (!report->reason)
                return sl_error_set(error, ECHILD, "compiler's process: ended with status %d and without a reason", status);
        if (report->code == ENOMEM)
                return sl_error_set(error, report->code, "over its memory limit of %llu bytes: %s",
                        (unsigned long long)compilation->memory_bytes, report->reason);
        return sl_error_set(error, report->code, "%s", report->reason);
}

static int judge(const struct sl_compilation *compilation, bool ended, const siginfo_t *status, const struct report *report,
        struct sl_error *error)
{
        if (!ended)
                return sl_error_set(error, ETIME, "compiler's process: over its time limit of %llu s (wall time)",
                        (unsigned long long)compilation->seconds * WALL_PER_PROCESSOR_SECOND);
        if (status->si_code == CLD_EXITED && status->si_status == 0)
                return 0;
        if (status->si_code == CLD_EXITED)
                return failed_by_report(compilation, status->si_status, report, error);
        if (status->si_code == CLD_KILLED || status->si_code == CLD_DUMPED)
                return failed_by_signal(compilation, status->si_status, error);
        return sl_error_set(error, ECHILD, "compiler's process: it was reaped by someone else");
}

/*
 * The child has ended, but the kernel may hold pages of the file for a moment longer: to move them, or for a processor that has not
 * come to tell. It waits some tens of milliseconds for that by itself, and is asked again.
 */
int sl_compile_seal(int fd, struct sl_error *error)
{
        for (int i = 0; i < SEAL_TRIES; i++) {
                if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0)
                        return 0;
                if (errno != EBUSY)
                        break;
        }
        return sl_error_set(error, errno, "plan file: it cannot be sealed: %s", strerror(errno));
}

int sl_compile_finish_unsealed(
        struct sl_compilation *compilation, int *ret_plan_fd, struct sl_compile_notes *ret_notes, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_compile_cancel) struct sl_compilation *owned = compilation;
        bool ended = wait_for_end(owned);
        struct report report;
        siginfo_t status;
        int r;

        reap(owned, &status);
        owned->pages = sl_page_maker_end(owned->pages);
        /* Whoever makes a process crash may have learnt where its memory lies; the next one has it elsewhere. */
        if (owned->zygote && status.si_code != CLD_EXITED)
                sl_compile_zygote_renew(owned->zygote);
        read_report(owned, &report);
        if (ret_notes)
                *ret_notes = report.notes;
        r = judge(owned, ended, &status, &report, error);
        if (r < 0)
                return r;
        *ret_plan_fd = sl_take_fd(&owned->plan_fd);
        if (error)
                snprintf(error->text, sizeof(error->text), "%s", report.warning ? report.warning : "");
        return 0;
}

int sl_compile_finish(struct sl_compilation *compilation, int *ret_plan_fd, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        struct sl_error cause;
        int r = sl_compile_finish_unsealed(compilation, &fd, NULL, error);

        if (r < 0)
                return r;
        r = sl_compile_seal(fd, &cause);
        if (r < 0 && error)
                *error = cause;
        if (r == 0)
                *ret_plan_fd = sl_take_fd(&fd);
        return r;
}

void sl_compile_kill(const struct sl_compilation *compilation)
{
        if (compilation->pid)
                kill(compilation->pid, SIGKILL);
}

struct sl_compilation *sl_compile_cancel(struct sl_compilation *compilation)
{
        siginfo_t status;

        if (!compilation)
                return NULL;
        if (compilation->pid) {
                kill(compilation->pid, SIGKILL);
                reap(compilation, &status);
        }
        sl_page_maker_end(compilation->pages);
        sl_cleanup_fd(&compilation->pid_fd);
        sl_cleanup_fd(&compilation->timer_fd);
        sl_cleanup_fd(&compilation->epoll_fd);
        sl_cleanup_fd(&compilation->plan_fd);
        sl_cleanup_fd(&compilation->report_fd);
        free(compilation);
        return NULL;
}

int sl_compile(const struct sl_compile_options *options, int *ret_plan_fd, struct sl_error *error)
{
        struct sl_compilation *compilation;
        int r = sl_compile_start(options, &compilation, error);

        return r < 0 ? r : sl_compile_finish(compilation, ret_plan_fd, error);
}
