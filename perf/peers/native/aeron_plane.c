/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three processes: the media driver, this one that asks, and a child that answers. Each of the latter two has a client of the
 * driver with one exclusive publication and one subscription; the driver is idle while messages travel, as they go through a log
 * buffer that both have mapped. The library is found at run time, and its functions are declared here as its manual says.
 */
#include "aeron_plane.h"

#include "pair.h"
#include "ticks.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHANNEL   "aeron:ipc"
#define THERE     1001
#define BACK      1002
#define LINE      64u
#define LIMIT_NS  (20 * SL_NS_PER_SECOND)
#define FRAGMENTS 10u

typedef void fragment_fn(void *argument, const uint8_t *buffer, size_t length, void *header);

/* clang-format off */
#define CALLS(X) \
        X(int, context_init, (void **context)) \
        X(int, context_set_dir, (void *context, const char *folder)) \
        X(int, init, (void **client, void *context)) \
        X(int, start, (void *client)) \
        X(int, close, (void *client)) \
        X(int, context_close, (void *context)) \
        X(const char *, errmsg, (void)) \
        X(int, async_add_exclusive_publication, (void **async, void *client, const char *uri, int32_t stream)) \
        X(int, async_add_exclusive_publication_poll, (void **publication, void *async)) \
        X(int, async_add_subscription, (void **async, void *client, const char *uri, int32_t stream, void *, void *, void *, void *)) \
        X(int, async_add_subscription_poll, (void **subscription, void *async)) \
        X(bool, exclusive_publication_is_connected, (void *publication)) \
        X(int64_t, exclusive_publication_offer, (void *publication, const uint8_t *buffer, size_t length, void *, void *)) \
        X(int, subscription_poll, (void *subscription, fragment_fn *handler, void *argument, size_t limit))
/* clang-format on */

#define DECLARE(type, name, parameters) type(*name) parameters;
struct library {
        CALLS(DECLARE)
};

/* One side: its client, and the two streams. */
struct side {
        const struct library *library;
        void *context, *client, *publication, *subscription;
        uint64_t received; /* the last message's first word */
};

static int open_library(const char *build, struct library *ret_library, char *reason, size_t reason_bytes)
{
        char path[4096];

        snprintf(path, sizeof(path), "%s/lib/libaeron.so", build);
        void *handle = dlopen(path, RTLD_NOW);

        if (!handle) {
                snprintf(reason, reason_bytes, "%s", dlerror());
                return -ENOENT;
        }
#define FIND(type, name, parameters) *(void **)&ret_library->name = dlsym(handle, "aeron_" #name);
        CALLS(FIND)
#define MISSING(type, name, parameters) || !ret_library->name
        if (false CALLS(MISSING)) {
                snprintf(reason, reason_bytes, "%s lacks a function", path);
                return -ENOSYS;
        }
        return 0;
}

static pid_t start_driver(const char *build, const char *folder)
{
        char path[4096];
        pid_t parent = getpid(), child = fork();

        if (child != 0)
                return child;
        snprintf(path, sizeof(path), "%s/binaries/aeronmd", build);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
                _exit(1);
        setenv("AERON_DIR", folder, 1);
        setenv("AERON_THREADING_MODE", "SHARED", 1);
        setenv("AERON_DIR_DELETE_ON_START", "1", 1);
        setenv("AERON_DIR_DELETE_ON_SHUTDOWN", "1", 1);
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
        execl(path, path, (char *)NULL);
        _exit(1);
}

static void end_driver(pid_t driver)
{
        kill(driver, SIGTERM);
        waitpid(driver, NULL, 0);
}

/* Repeats a step that is 0 until it is done. */
static int await_stream(int (*poll)(void **stream, void *async), void **ret_stream, void *async)
{
        uint64_t until_ns = sl_clock_ns() + LIMIT_NS;
        int r;

        while ((r = poll(ret_stream, async)) == 0 && sl_clock_ns() < until_ns)
                usleep(1000);
        return r > 0 ? 0 : -ETIMEDOUT;
}

static int open_side(struct side *side, const struct library *library, const char *folder, int32_t out, int32_t in)
{
        void *async;
        int r = -EIO;

        *side = (struct side){.library = library};
        if (library->context_init(&side->context) < 0 || library->context_set_dir(side->context, folder) < 0 ||
                library->init(&side->client, side->context) < 0 || library->start(side->client) < 0)
                return -EIO;
        if (library->async_add_exclusive_publication(&async, side->client, CHANNEL, out) == 0)
                r = await_stream(library->async_add_exclusive_publication_poll, &side->publication, async);
        if (r == 0 && library->async_add_subscription(&async, side->client, CHANNEL, in, NULL, NULL, NULL, NULL) == 0)
                r = await_stream(library->async_add_subscription_poll, &side->subscription, async);
        for (uint64_t until_ns = sl_clock_ns() + LIMIT_NS;
                r == 0 && !library->exclusive_publication_is_connected(side->publication);)
                r = sl_clock_ns() < until_ns && usleep(1000) == 0 ? 0 : -ETIMEDOUT;
        return r;
}

static void close_side(struct side *side)
{
        if (side->client)
                side->library->close(side->client);
        if (side->context)
                side->library->context_close(side->context);
}

static void note_message(void *argument, const uint8_t *buffer, size_t length, void *header)
{
        struct side *side = argument;

        (void)length;
        (void)header;
        memcpy(&side->received, buffer, sizeof(side->received));
}

static void offer(const struct side *side, uint64_t number)
{
        uint64_t line[LINE / sizeof(uint64_t)] = {number};

        while (side->library->exclusive_publication_offer(side->publication, (const uint8_t *)line, sizeof(line), NULL, NULL) < 0)
                sl_relax();
}

/* Returns the number of a message that is not @seen; 0 when none comes for seconds. */
static uint64_t await_other(struct side *side, uint64_t seen)
{
        for (uint64_t spins = 1; side->received == seen; spins++)
                if (side->library->subscription_poll(side->subscription, note_message, side, FRAGMENTS) == 0) {
                        sl_relax();
                        if (spins % (1u << 28) == 0)
                                return 0;
                }
        return side->received;
}

struct answerer {
        const struct library *library;
        const char *folder;
        uint64_t last; /* message */
};

static int answer(void *memory, void *argument)
{
        const struct answerer *answerer = argument;
        struct side side;
        uint64_t seen = 0;

        (void)memory;
        if (open_side(&side, answerer->library, answerer->folder, BACK, THERE) < 0)
                return 1;
        while (seen < answerer->last && (seen = await_other(&side, seen)) > 0)
                offer(&side, seen);
        close_side(&side);
        return seen == 0;
}

static int ask(struct side *side, uint32_t warm_up, uint32_t rounds, struct sl_latencies *samples)
{
        for (uint64_t i = 1; i <= (uint64_t)warm_up + rounds; i++) {
                uint64_t start = sl_ticks();

                offer(side, i);
                if (await_other(side, i - 1) != i)
                        return -EIO;
                if (i > warm_up)
                        sl_latencies_add(samples, sl_ticks() - start);
        }
        return 0;
}

static int measure(
        const struct answerer *answerer, const int cpus[2], uint32_t warm_up, uint32_t rounds, struct sl_latencies *samples)
{
        struct side side;
        struct sl_pair pair;
        int r = sl_pair_start(&pair, cpus, LINE, answer, (void *)answerer);

        if (r < 0)
                return r;
        r = open_side(&side, answerer->library, answerer->folder, THERE, BACK);
        if (r == 0)
                r = ask(&side, warm_up, rounds, samples);
        close_side(&side);
        if (r == 0)
                return sl_pair_end(&pair);
        sl_pair_abort(&pair);
        return r;
}

int sl_aeron_plane_measure(const char *build, const int cpus[2], uint32_t warm_up, uint32_t rounds, struct sl_latencies *samples,
        char *reason, size_t reason_bytes)
{
        char folder[64];
        struct library library;
        int r = open_library(build, &library, reason, reason_bytes);

        if (r < 0)
                return r;
        snprintf(folder, sizeof(folder), "/dev/shm/bench-planes-%d", (int)getpid());
        pid_t driver = start_driver(build, folder);

        if (driver < 0) {
                snprintf(reason, reason_bytes, "%s", strerror(errno));
                return -errno;
        }
        const struct answerer answerer = {.library = &library, .folder = folder, .last = (uint64_t)warm_up + rounds};

        usleep(500 * 1000);
        r = measure(&answerer, cpus, warm_up, rounds, samples);
        if (r < 0)
                snprintf(reason, reason_bytes, "%s; Aeron says: %s", strerror(-r), library.errmsg());
        end_driver(driver);
        return r;
}
