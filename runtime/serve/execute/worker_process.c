/* SPDX-License-Identifier: Apache-2.0 */
#include "process_state.h"

#include "accumulator.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "child_spawn.h"
#include "gpu_host.h"
#include "gpu_let.h"
#include "let.h"
#include "process_packet.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static uint64_t order_bytes(const struct sl_plan_info *info, uint32_t jobs_max)
{
        return sizeof(struct sl_process_order) + jobs_max * sl_process_job_bytes(info->n_inputs, info->n_outputs);
}

static bool reply_overflows(const struct sl_process_staging *staging, uint32_t jobs_max, uint64_t *ret_bytes)
{
        return sl_mul_overflows(staging->job_bytes, jobs_max, ret_bytes) ||
               sl_add_overflows(*ret_bytes, sizeof(struct sl_process_reply) + staging->first, ret_bytes);
}

uint64_t sl_process_executor_bytes(const struct sl_plan *plan, uint32_t batch_max, uint64_t open_bytes, bool on_gpu)
{
        uint32_t jobs_max = sl_process_executor_jobs(on_gpu);
        struct sl_process_staging staging = {0};
        uint64_t bytes, pinned_bytes;

        /* Results on their way from a GPU lie in memory of its process that is pinned, as large as that which it shares. */
        if (sl_process_staging_init(&staging, sl_plan_info(plan), batch_max, open_bytes) < 0 ||
                reply_overflows(&staging, jobs_max, &bytes) ||
                sl_mul_overflows(on_gpu ? staging.job_bytes : 0, jobs_max, &pinned_bytes) ||
                sl_add_overflows(bytes, pinned_bytes, &bytes) ||
                sl_add_overflows(bytes, order_bytes(sl_plan_info(plan), jobs_max), &bytes))
                bytes = UINT64_MAX;
        sl_process_staging_deinit(&staging);
        return bytes;
}

/* The child's ends, while it is started. */
struct worker_fds {
        int socket, order, reply, verdicts, plan, base;
};

static void worker_fds_close(struct worker_fds *fds)
{
        sl_cleanup_fd(&fds->socket);
        sl_cleanup_fd(&fds->order);
        sl_cleanup_fd(&fds->reply);
        sl_cleanup_fd(&fds->verdicts);
        sl_cleanup_fd(&fds->plan);
        sl_cleanup_fd(&fds->base);
}

static int reopen(int fd, int *ret_fd)
{
        int r = sl_spawn_read_only(fd);

        if (r < 0)
                return r;
        *ret_fd = r;
        return 0;
}

static int make_shared(struct sl_process *p, struct worker_fds *fds, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int order_fd = -1;
        uint64_t bytes;
        int r;

        if (reply_overflows(&p->staging, p->common.jobs_max, &bytes))
                return sl_error_set(error, ENOMEM, "its predictions have more bytes than can be said");
        r = sl_segment_create("starling-order", order_bytes(sl_plan_info(p->options.plan), p->common.jobs_max), SL_SEAL_SHARED,
                &order_fd, &p->order_map, error);
        if (r == 0)
                r = sl_segment_create("starling-reply", bytes, SL_SEAL_SHARED, &fds->reply, &p->reply_map, error);
        if (r < 0)
                return r;
        p->order = p->order_map.base;
        p->reply = p->reply_map.base;
        r = reopen(order_fd, &fds->order);
        if (r == 0)
                r = reopen(sl_accumulator_verdicts_fd(p->options.accumulator), &fds->verdicts);
        if (r == 0)
                r = reopen(sl_plan_fd(p->options.plan), &fds->plan);
        if (r == 0 && sl_plan_base(p->options.plan))
                r = reopen(sl_plan_fd(sl_plan_base(p->options.plan)), &fds->base);
        return r < 0 ? sl_error_set(error, -r, "what its process reads: %s", strerror(-r)) : 0;
}

static int make_channels(struct sl_process *p, struct worker_fds *fds, struct sl_error *error)
{
        int ends[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return sl_error_set(error, errno, "a socket for its process: %s", strerror(errno));
        p->socket_fd = ends[0];
        fds->socket = ends[1];
        p->common.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        return p->common.wake_fd < 0 ? sl_error_set(error, errno, "a bell for its process: %s", strerror(errno)) : 0;
}

static int spawn_worker(struct sl_process *p, const struct worker_fds *fds, struct sl_error *error)
{
        const char *program = p->options.program ? p->options.program : "/proc/self/exe";
        char *const argv[] = {(char *)program, (char *)SL_PROCESS_COMMAND, NULL};
        const int ends[] = {
                [SL_PROCESS_SOCKET_FD - SL_SPAWN_FIRST_FD] = fds->socket,
                [SL_PROCESS_ORDER_FD - SL_SPAWN_FIRST_FD] = fds->order,
                [SL_PROCESS_REPLY_FD - SL_SPAWN_FIRST_FD] = fds->reply,
                [SL_PROCESS_VERDICTS_FD - SL_SPAWN_FIRST_FD] = fds->verdicts,
                [SL_PROCESS_WAKE_FD - SL_SPAWN_FIRST_FD] = p->common.wake_fd,
                [SL_PROCESS_PLAN_FD - SL_SPAWN_FIRST_FD] = fds->plan,
                [SL_PROCESS_BASE_FD - SL_SPAWN_FIRST_FD] = fds->base,
        };
        const uint32_t n = sizeof(ends) / sizeof(ends[0]);
        int r = sl_spawn(
                &(struct sl_spawn_options){
                        .program = program, .argv = argv, .environment = environ, .fds = ends, .n_fds = fds->base >= 0 ? n : n - 1},
                &p->pid);

        if (r < 0)
                return sl_error_set(error, -r, "\"%s\" cannot be started: %s", program, strerror(-r));
        p->pid_fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
        return p->pid_fd < 0 ? sl_error_set(error, errno, "its process cannot be watched: %s", strerror(errno)) : 0;
}

static int attach_worker(struct sl_process *p, const struct worker_fds *fds, struct sl_error *error)
{
        const int ends[SL_ATTACH_FDS_MAX] = {
                [SL_ATTACH_SOCKET] = fds->socket,
                [SL_ATTACH_ORDER] = fds->order,
                [SL_ATTACH_REPLY] = fds->reply,
                [SL_ATTACH_VERDICTS] = fds->verdicts,
                [SL_ATTACH_WAKE] = p->common.wake_fd,
                [SL_ATTACH_PLAN] = fds->plan,
                [SL_ATTACH_BASE] = fds->base,
        };
        int r = sl_gpu_host_hold(p->options.gpu_hosts, p->options.gpu->gpu, p->options.program, &p->host, error);

        return r < 0 ? r : sl_gpu_host_attach(p->host, ends, SL_ATTACH_FDS_MAX - (fds->base < 0), error);
}

static int send_start(struct sl_process *p, bool has_base, struct sl_error *error)
{
        const struct sl_process_start start = {
                .kind = SL_PROCESS_START,
                .batch_max = p->common.batch_max,
                .fake = p->options.fake,
                .gpu_part = p->options.gpu_part,
                .gpu_words = p->options.gpu_words,
                .gpu_tuning = p->options.gpu_tuning,
                .n_regions = p->options.regions->n_max,
                .has_base = has_base,
                .background = p->options.background,
                .parent = getpid(),
                .order_bytes = p->order_map.bytes,
                .reply_bytes = p->reply_map.bytes,
                .verdicts_bytes = sl_accumulator_verdicts_bytes(p->options.accumulator),
                .memory_bytes = p->options.memory_bytes,
                .spin_ns = p->options.spin_ns,
                .warmup_ns = p->options.warmup_ns,
                .cpus = p->options.let->cpus,
        };
        int r = sl_process_packet_send(p->socket_fd, &start, sizeof(start), p->options.gpu ? p->options.choices_fd : -1);

        p->timing = r == 0 && p->options.gpu && p->options.gpu_tuning.tune != SL_GPU_TUNE_OFF;
        p->options.choices_fd = -1;
        return r < 0 ? sl_error_set(error, -r, "its process cannot be told what to do: %s", strerror(-r)) : 0;
}

/*
 * Nothing that names the region is in flight, so that the dispatcher no longer changes what it has noted of it. A worker that
 * computes hears of it when it is done. A packet that finds no room leaves the region mapped until its number is used again.
 */
static void process_forget(struct sl_regions_watch *watch, uint32_t region)
{
        struct sl_process *p = (struct sl_process *)((char *)watch - offsetof(struct sl_process, watch));
        struct sl_process_packet packet = {.kind = SL_PROCESS_FORGET, .region = region};

        if (p->mapped[region] != p->options.regions->at[region].serial)
                return;
        (void)sl_process_packet_send(p->socket_fd, &packet, sizeof(packet), -1);
        sl_process_wake(p);
}

int sl_process_start(struct sl_process *p, struct sl_error *error)
{
        SL_CLEANUP(worker_fds_close) struct worker_fds fds = {-1, -1, -1, -1, -1, -1};
        int r = make_shared(p, &fds, error);

        if (r == 0)
                r = make_channels(p, &fds, error);
        if (r == 0)
                r = p->options.gpu ? attach_worker(p, &fds, error) : spawn_worker(p, &fds, error);
        if (r == 0)
                r = send_start(p, fds.base >= 0, error);
        if (r == 0) {
                p->watch.removed = process_forget;
                sl_regions_watch(p->options.regions, &p->watch);
        }
        return r;
}

/* It is about to be reaped; the number is not used again before. */
void sl_process_kill(struct sl_process *p)
{
        if (p->host)
                sl_gpu_host_kill(p->host);
        else if (p->pid_fd >= 0)
                (void)syscall(SYS_pidfd_send_signal, p->pid_fd, SIGKILL, NULL, 0);
        else if (p->pid) /* it could not be watched, and nobody else knows it */
                (void)kill(p->pid, SIGKILL);
}

static void process_reap(struct sl_process *p, siginfo_t *ret_status)
{
        memset(ret_status, 0, sizeof(*ret_status));
        while (waitid(P_PID, (id_t)p->pid, ret_status, WEXITED) < 0 && errno == EINTR)
                ;
        p->pid = 0;
}

/* Of a GPU's process that was ended for what one of its workers said, all have that cause. */
static void note_end(struct sl_process *p, const siginfo_t *status)
{
        const char *lost = p->host ? sl_gpu_host_why_lost(p->host) : "";

        if (lost[0])
                sl_error_fit(lost, p->ended, sizeof(p->ended));
        else if (status->si_code == CLD_EXITED)
                snprintf(p->ended, sizeof(p->ended), "its process ended with status %d", status->si_status);
        else
                snprintf(p->ended, sizeof(p->ended), "its process was killed by signal %d (%s)", status->si_status,
                        strsignal(status->si_status));
}

/* It has closed its socket, and may do anything else still. Of a GPU's process, all workers have ended with it. */
static void end_process(struct sl_process *p, siginfo_t *ret_status)
{
        if (p->host) {
                sl_gpu_host_end(p->host, ret_status);
                return;
        }
        sl_process_kill(p);
        process_reap(p, ret_status);
}

/* A worker that was refused leaves the others of its GPU alone: the process has given it up, and said why. */
static int process_ended(struct sl_process *p, int status, struct sl_error *error)
{
        siginfo_t end = {.si_code = 0};

        if (!p->host || !p->refused)
                end_process(p, &end);
        if (!p->ended[0])
                note_end(p, &end);
        sl_executor_say(&p->common, status, p->common.first_ns);
        sl_bell_ring(p->options.dispatcher, NULL);
        return sl_error_set(error, -status, "%s", p->ended);
}

void sl_process_leave_behind(struct sl_process *p)
{
        struct sl_error unused;

        (void)process_ended(p, -ECHILD, &unused);
}

/* All workers of its process are, which ends: who comes next gets another one. */
static int worker_lost(struct sl_process *p, const char *text, struct sl_error *error)
{
        sl_gpu_host_lose(p->host, text);
        return process_ended(p, -ECHILD, error);
}

/* Once, of a worker on a GPU that is not ready. False: it is none of these. The descriptor is taken in any case. */
static bool hear_choices(struct sl_process *p, int bytes, const struct sl_process_packet *packet, int fd)
{
        bool due = bytes == sizeof(*packet) && packet->kind == SL_PROCESS_CHOICES && p->host && !p->has_choices &&
                   sl_executor_started(&p->common) == SL_EXECUTOR_STARTING;

        if (!due) {
                sl_cleanup_fd(&fd);
                return false;
        }
        p->has_choices = true;
        p->timing = false;
        p->choices.fd = fd;
        memcpy(p->choices.ignored, packet->text, sizeof(p->choices.ignored));
        return true;
}

/* Return: bytes, as the socket says; the text ends. */
static int receive_packet(struct sl_process *p, struct sl_process_packet *packet, int *ret_fd)
{
        int r = sl_process_packet_receive(p->socket_fd, packet, sizeof(*packet), ret_fd);

        packet->text[sizeof(packet->text) - 1] = 0;
        return r;
}

int sl_process_executor_hear(struct sl_executor *executor, struct sl_error *ret_warning, struct sl_error *error)
{
        struct sl_process *p = sl_process_of(executor);
        struct sl_process_packet packet;
        int r, fd;

        ret_warning->text[0] = 0;
        if (sl_executor_started(executor) < 0)
                return sl_error_set(error, -sl_executor_started(executor), "%s", p->ended);
        while ((r = receive_packet(p, &packet, &fd)) > 0) {
                if (hear_choices(p, r, &packet, fd))
                        continue;
                if (r == sizeof(packet) && packet.kind == SL_PROCESS_LOST && p->host)
                        return worker_lost(p, packet.text, error);
                if (r != sizeof(packet) || packet.kind != SL_PROCESS_READY || sl_executor_started(executor) == SL_EXECUTOR_READY)
                        return process_ended(p, -ECHILD, error);
                p->timing = false;
                if (packet.status) {
                        sl_error_fit(packet.text[0] ? packet.text : "its process refuses it, and does not say why", p->ended,
                                sizeof(p->ended));
                        p->refused = true;
                        return process_ended(p, packet.status == -ENOMEM ? -ENOMEM : -ECHILD, error);
                }
                if (packet.lacks_sandbox)
                        sl_error_set(ret_warning, 0, "%s", packet.text);
                sl_executor_say(executor, SL_EXECUTOR_READY, packet.first_ns);
        }
        return r == -EAGAIN ? 0 : process_ended(p, -ECHILD, error);
}

const struct sl_process_executor_options *sl_process_executor_options(const struct sl_executor *executor)
{
        return &sl_process_of(executor)->options;
}

bool sl_process_executor_take_choices(struct sl_executor *executor, struct sl_process_choices *ret_choices)
{
        struct sl_process *p = sl_process_of(executor);

        if (p->choices.fd < 0 && !p->choices.ignored[0])
                return false;
        *ret_choices = p->choices;
        p->choices = (struct sl_process_choices){.fd = -1};
        return true;
}

bool sl_process_executor_is_timing(const struct sl_executor *executor)
{
        return sl_process_of(executor)->timing;
}

int sl_process_executor_fd(const struct sl_executor *executor)
{
        return sl_process_of((struct sl_executor *)executor)->socket_fd;
}

const char *sl_process_executor_why(const struct sl_executor *executor)
{
        return sl_process_of(executor)->ended;
}

bool sl_process_executor_was_useful(const struct sl_executor *executor)
{
        return atomic_load_explicit(&sl_process_of(executor)->taken, memory_order_relaxed) > 0;
}

int sl_process_executor_pid(const struct sl_executor *executor)
{
        const struct sl_process *p = sl_process_of((struct sl_executor *)executor);

        return p->host ? sl_gpu_host_pid(p->host) : p->pid;
}

void sl_process_executor_kill(struct sl_executor *executor)
{
        sl_process_kill(sl_process_of(executor));
}

void sl_process_stop(struct sl_process *p)
{
        siginfo_t status;

        sl_regions_unwatch(p->options.regions, &p->watch);
        if (p->pid) {
                sl_process_kill(p);
                process_reap(p, &status);
        }
        sl_cleanup_fd(&p->socket_fd);
        sl_cleanup_fd(&p->choices.fd);
        p->host = sl_gpu_host_drop(p->host);
        sl_cleanup_fd(&p->pid_fd);
        sl_cleanup_fd(&p->common.wake_fd);
        sl_mapping_free(&p->order_map);
        sl_mapping_free(&p->reply_map);
}
