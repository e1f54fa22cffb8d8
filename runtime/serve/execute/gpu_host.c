/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_host.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "child_spawn.h"
#include "fault.h"
#include "process_link.h"
#include "process_packet.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* A process that has not read what it was sent for so long does not read at all. */
#define ATTACH_LIMIT_MS 1000

/* One that has not ended so long after it was killed cannot be ended: it waits in the driver, uninterruptibly. */
#define END_LIMIT_MS 1000

struct sl_gpu_host {
        struct sl_gpu_hosts *hosts;
        struct sl_gpu_host *next;
        uint32_t gpu, holders;
        int socket_fd, pid_fd;
        pid_t pid;
        bool ended;          /* it has, or has been killed */
        _Atomic bool killed; /* it is about to end; relaxed: who sees it late hears of the end as the others do */
        bool reaped;
        siginfo_t status;
        char why_lost[SL_FAULT_BYTES]; /* "": nobody has said that it is */
};

static int spawn_host(struct sl_gpu_host *host, const char *program, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int theirs = -1;
        char number[16];
        char *const argv[] = {(char *)program, (char *)SL_PROCESS_GPU_COMMAND, number, NULL};
        int ends[2], r;

        snprintf(number, sizeof(number), "%u", host->gpu);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return sl_error_set(error, errno, "a socket for the process of gpu:%u: %s", host->gpu, strerror(errno));
        host->socket_fd = ends[0];
        theirs = ends[1];
        r = sl_spawn(
                &(struct sl_spawn_options){.program = program, .argv = argv, .environment = environ, .fds = &theirs, .n_fds = 1},
                &host->pid);
        if (r < 0)
                return sl_error_set(error, -r, "\"%s\" cannot be started: %s", program, strerror(-r));
        host->pid_fd = (int)syscall(SYS_pidfd_open, host->pid, 0);
        return host->pid_fd < 0
                       ? sl_error_set(error, errno, "the process of gpu:%u cannot be watched: %s", host->gpu, strerror(errno))
                       : 0;
}

void sl_gpu_host_kill(struct sl_gpu_host *host)
{
        atomic_store_explicit(&host->killed, true, memory_order_relaxed);
        if (host->pid_fd >= 0)
                (void)syscall(SYS_pidfd_send_signal, host->pid_fd, SIGKILL, NULL, 0);
        else if (host->pid) /* it could not be watched, and nobody else knows it */
                (void)kill(host->pid, SIGKILL);
}

static bool reap(struct sl_gpu_host *host)
{
        siginfo_t status = {.si_pid = 0};
        int r;

        while ((r = waitid(P_PID, (id_t)host->pid, &status, WEXITED | WNOHANG)) < 0 && errno == EINTR)
                ;
        host->reaped = r < 0 || status.si_pid; /* of one that nobody waits for any more there is nothing to wait for */
        if (status.si_pid)
                host->status = status;
        return host->reaped;
}

void sl_gpu_host_end(struct sl_gpu_host *host, siginfo_t *ret_status)
{
        struct pollfd process = {.fd = host->pid_fd, .events = POLLIN};

        if (!host->ended && host->pid) {
                host->status = (siginfo_t){.si_code = CLD_KILLED};
                host->status.si_status = SIGKILL;
                sl_gpu_host_kill(host);
                while (poll(&process, 1, END_LIMIT_MS) < 0 && errno == EINTR)
                        ;
                (void)reap(host);
        }
        host->ended = true;
        *ret_status = host->status;
}

void sl_gpu_host_explain(struct sl_gpu_host *host, const char *why)
{
        if (!host->why_lost[0])
                sl_error_fit(why, host->why_lost, sizeof(host->why_lost));
}

void sl_gpu_host_lose(struct sl_gpu_host *host, const char *why)
{
        siginfo_t status;

        sl_gpu_host_explain(host, why);
        sl_gpu_host_end(host, &status);
}

const char *sl_gpu_host_why_lost(const struct sl_gpu_host *host)
{
        return host->why_lost;
}

static void unlink_host(struct sl_gpu_host *host)
{
        struct sl_gpu_host **at = &host->hosts->first;

        while (*at && *at != host)
                at = &(*at)->next;
        if (*at)
                *at = host->next;
}

struct sl_gpu_host *sl_gpu_host_drop(struct sl_gpu_host *host)
{
        siginfo_t status;

        if (!host || --host->holders)
                return NULL;
        unlink_host(host);
        sl_gpu_host_end(host, &status);
        sl_cleanup_fd(&host->socket_fd);
        sl_cleanup_fd(&host->pid_fd);
        if (!host->pid || host->reaped || reap(host)) {
                free(host);
                return NULL;
        }
        host->next = host->hosts->dying;
        host->hosts->dying = host;
        return NULL;
}

static void bury(struct sl_gpu_hosts *hosts)
{
        for (struct sl_gpu_host **at = &hosts->dying, *host; (host = *at);) {
                if (!reap(host)) {
                        at = &host->next;
                        continue;
                }
                *at = host->next;
                free(host);
        }
}

/* Its workers may not have heard of it yet. A process that dies closes its socket before it has ended. */
static bool is_dead(struct sl_gpu_host *host)
{
        struct pollfd ends[] = {{.fd = host->pid_fd, .events = POLLIN}, {.fd = host->socket_fd}};
        siginfo_t status;

        if (host->ended || atomic_load_explicit(&host->killed, memory_order_relaxed))
                return true;
        if (poll(ends, 2, 0) <= 0)
                return false;
        sl_gpu_host_end(host, &status);
        return true;
}

int sl_gpu_host_hold(
        struct sl_gpu_hosts *hosts, uint32_t gpu, const char *program, struct sl_gpu_host **ret_host, struct sl_error *error)
{
        struct sl_gpu_host *host = hosts->first;
        int r;

        bury(hosts);
        while (host && (host->gpu != gpu || is_dead(host)))
                host = host->next;
        if (host) {
                host->holders++;
                *ret_host = host;
                return 0;
        }
        host = calloc(1, sizeof(*host));
        if (!host)
                return sl_error_set(error, ENOMEM, "no memory for the process of gpu:%u", gpu);
        *host = (struct sl_gpu_host){.hosts = hosts, .next = hosts->first, .gpu = gpu, .holders = 1, .socket_fd = -1, .pid_fd = -1};
        hosts->first = host;
        r = spawn_host(host, program ? program : "/proc/self/exe", error);
        if (r < 0)
                sl_gpu_host_drop(host);
        else
                *ret_host = host;
        return r;
}

/* There is room for many; who starts many at once waits for the process to read. */
int sl_gpu_host_attach(struct sl_gpu_host *host, const int *fds, uint32_t n_fds, struct sl_error *error)
{
        const struct sl_process_attach packet = {.n_fds = n_fds};
        struct pollfd socket = {.fd = host->socket_fd, .events = POLLOUT};
        int r = sl_process_packet_send_all(host->socket_fd, &packet, sizeof(packet), fds, n_fds);

        if (r == -EAGAIN && poll(&socket, 1, ATTACH_LIMIT_MS) > 0)
                r = sl_process_packet_send_all(host->socket_fd, &packet, sizeof(packet), fds, n_fds);
        return r < 0 ? sl_error_set(error, -r, "the process of gpu:%u takes no worker: %s", host->gpu, strerror(-r)) : 0;
}

pid_t sl_gpu_host_pid(const struct sl_gpu_host *host)
{
        return host->ended ? 0 : host->pid;
}

int sl_gpu_host_ask(struct sl_gpu_host *host, int *ret_fd, struct sl_error *error)
{
        int ends[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return sl_error_set(error, errno, "a socket for the process of gpu:%u: %s", host->gpu, strerror(errno));
        r = sl_gpu_host_attach(host, &ends[1], 1, error);
        close(ends[1]);
        if (r < 0)
                close(ends[0]);
        else
                *ret_fd = ends[0];
        return r;
}

int sl_gpu_host_answer(
        struct sl_gpu_host *host, int fd, uint32_t *ret_n_gpus, struct sl_cuda_figures *ret_figures, struct sl_error *error)
{
        struct sl_process_packet packet;
        siginfo_t status;
        int r = sl_process_packet_receive(fd, &packet, sizeof(packet), NULL);

        *ret_figures = (struct sl_cuda_figures){0};
        if (r == sizeof(packet) && packet.kind == SL_PROCESS_READY) {
                packet.text[sizeof(packet.text) - 1] = 0;
                *ret_n_gpus = packet.n_gpus;
                if (sl_cuda_figures_are_sound(&packet.gpu))
                        *ret_figures = packet.gpu;
                return packet.status < 0 ? sl_error_set(error, -packet.status, "%s", packet.text) : 0;
        }
        *ret_n_gpus = 0;
        sl_gpu_host_end(host, &status);
        if (host->why_lost[0])
                return sl_error_set(error, EIO, "gpu:%u: %s", host->gpu, host->why_lost);
        if (status.si_code == CLD_EXITED)
                return sl_error_set(error, EIO, "the process of gpu:%u ended with status %d", host->gpu, status.si_status);
        return sl_error_set(error, EIO, "the process of gpu:%u was killed by signal %d (%s)", host->gpu, status.si_status,
                strsignal(status.si_status));
}
