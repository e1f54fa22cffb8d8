/* SPDX-License-Identifier: Apache-2.0 */
#include "core_claims.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "stats_claim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#define FILE_BYTES   32
#define HOLDER_BYTES 96
#define ENDING_NS    (2 * SL_NS_PER_SECOND) /* until the kernel has taken apart a holder that was killed */

static const char *const uses[] = {"dispatcher", "workers"};

enum use { USE_DISPATCHER, USE_WORKERS, USES };

struct core_claim {
        char file[FILE_BYTES];
        int fd;
};

struct sl_core_claims {
        char *folder;
        uint64_t until_ns; /* holders that end are waited for */
        uint32_t n, n_max;
        struct core_claim claims[USES * CPU_SETSIZE];
};

static void file_of(int core, enum use use, char ret_file[FILE_BYTES])
{
        snprintf(ret_file, FILE_BYTES, "core-%d.%s", core, uses[use]);
}

/* Return: true when somebody lives who holds it; the text is "NAME PID". */
static bool read_holder(const char *folder, const char *file, char ret_holder[HOLDER_BYTES])
{
        char path[512];
        ssize_t n;

        snprintf(path, sizeof(path), "%s/%s", folder, file);
        SL_CLEANUP(sl_cleanup_fd) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0 || !sl_claim_is_held(fd))
                return false;
        n = read(fd, ret_holder, HOLDER_BYTES - 1);
        ret_holder[n > 0 ? n : 0] = 0;
        return true;
}

static uint32_t pid_of(const char *holder)
{
        const char *space = strrchr(holder, ' ');

        return space ? (uint32_t)strtoul(space + 1, NULL, 10) : 0;
}

/* A lock without a process of that pid is that of a runtime in another namespace: it lives, as nobody else would hold it for long.
 */
static bool is_taken(const char *folder, int core, enum use use)
{
        char file[FILE_BYTES], holder[HOLDER_BYTES];

        file_of(core, use, file);
        if (!read_holder(folder, file, holder))
                return false;
        return !sl_claim_owner_is_here(pid_of(holder)) || !sl_claim_owner_is_ending(pid_of(holder));
}

void sl_core_claims_survey(const char *folder, struct sl_machine *machine)
{
        for (int core = 0; core < CPU_SETSIZE; core++) {
                if (!CPU_ISSET(core, &machine->allowed))
                        continue;
                if (is_taken(folder, core, USE_DISPATCHER))
                        CPU_SET(core, &machine->dispatching);
                if (CPU_ISSET(core, &machine->dispatching) || is_taken(folder, core, USE_WORKERS))
                        CPU_SET(core, &machine->taken);
        }
}

static void add_holder(struct sl_core_sharing *sharing, const char *holder)
{
        const char *space = strrchr(holder, ' ');
        size_t used = strlen(sharing->holders);
        char text[HOLDER_BYTES + 16];

        snprintf(text, sizeof(text), "%.*s (pid %u)", space ? (int)(space - holder) : 0, holder, pid_of(holder));
        if (!strstr(sharing->holders, text))
                snprintf(sharing->holders + used, sizeof(sharing->holders) - used, "%s%s", used ? ", " : "", text);
}

static int take_file(const char *folder, const char *file, uint64_t until_ns, int *ret_fd)
{
        const struct timespec pause = {.tv_nsec = 5 * SL_NS_PER_MS};
        char holder[HOLDER_BYTES];
        bool stale;

        for (;;) {
                int r = sl_claim_create(folder, file, NULL, &stale, ret_fd, NULL);

                if (r != -EADDRINUSE || sl_clock_ns() >= until_ns)
                        return r;
                if (read_holder(folder, file, holder) && !sl_claim_owner_is_ending(pid_of(holder)))
                        return r;
                nanosleep(&pause, NULL);
        }
}

static void take_core(struct sl_core_claims *claims, const char *name, int core, enum use use, struct sl_core_sharing *sharing)
{
        struct core_claim *claim = &claims->claims[claims->n];
        char holder[HOLDER_BYTES];
        int r;

        file_of(core, use, claim->file);
        r = claims->n < claims->n_max ? take_file(claims->folder, claim->file, claims->until_ns, &claim->fd) : -EMFILE;
        if (r == 0) {
                dprintf(claim->fd, "%s %d", name, getpid());
                fchmod(claim->fd, 0644);
                claims->n++;
        } else if (r == -EADDRINUSE) {
                CPU_SET(core, &sharing->cores);
                if (read_holder(claims->folder, claim->file, holder))
                        add_holder(sharing, holder);
        } else {
                sharing->result = r;
        }
}

/* Of the fds that the process may have, claims take a small share. */
static uint32_t claims_max(void)
{
        struct rlimit limit;
        rlim_t share = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 8 : 0;

        return share < USES * CPU_SETSIZE ? (uint32_t)share : USES * CPU_SETSIZE;
}

int sl_core_claims_take(const char *folder, const char *name, const struct sl_thread_cores *thread_cores,
        struct sl_core_claims **ret_claims, struct sl_core_sharing *ret_sharing)
{
        struct sl_core_claims *claims = calloc(1, sizeof(*claims));

        *ret_sharing = (struct sl_core_sharing){.result = 0};
        if (claims)
                claims->folder = strdup(folder);
        if (!claims || !claims->folder) {
                sl_core_claims_free(claims);
                return -ENOMEM;
        }
        claims->n_max = claims_max();
        claims->until_ns = sl_clock_ns() + ENDING_NS;
        for (int core = 0; core < CPU_SETSIZE; core++) {
                if (CPU_ISSET(core, &thread_cores->dispatcher_cores))
                        take_core(claims, name, core, USE_DISPATCHER, ret_sharing);
                if (CPU_ISSET(core, &thread_cores->worker_cores))
                        take_core(claims, name, core, USE_WORKERS, ret_sharing);
        }
        *ret_claims = claims;
        return 0;
}

struct sl_core_claims *sl_core_claims_free(struct sl_core_claims *claims)
{
        if (!claims)
                return NULL;
        for (uint32_t i = 0; i < claims->n; i++) {
                sl_claim_remove(claims->folder, claims->claims[i].file, claims->claims[i].fd);
                close(claims->claims[i].fd);
        }
        free(claims->folder);
        free(claims);
        return NULL;
}
