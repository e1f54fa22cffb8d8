/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_copier.h"

#include "base/background.h"
#include "base/cleanup.h"
#include "base/thread.h"
#include "plan_sum.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES (8u << 20) /* between two looks at whether to stop */

/* One plan on its way into the folder. */
struct sl_plan_copy {
        struct sl_plan_copy *next;
        int folder;
        char name[SL_CACHE_NAME_BYTES];
        int plan_fd;
};

void sl_plan_copier_init(struct sl_plan_copier *copier, void (*kept)(void *context, const char *name, int fd), void *context)
{
        *copier = (struct sl_plan_copier){.kept = kept, .context = context};
        pthread_mutex_init(&copier->lock, NULL);
        pthread_cond_init(&copier->change, NULL);
        copier->last = &copier->first;
}

/* Return: the next one. */
static struct sl_plan_copy *copy_free(struct sl_plan_copy *copy)
{
        struct sl_plan_copy *next = copy->next;

        close(copy->plan_fd);
        free(copy);
        return next;
}

void sl_plan_copier_deinit(struct sl_plan_copier *copier)
{
        pthread_mutex_lock(&copier->lock);
        copier->stops = true;
        pthread_cond_broadcast(&copier->change);
        pthread_mutex_unlock(&copier->lock);
        if (copier->has_thread)
                pthread_join(copier->thread, NULL);
        while (copier->first)
                copier->first = copy_free(copier->first);
        pthread_cond_destroy(&copier->change);
        pthread_mutex_destroy(&copier->lock);
}

struct copying {
        const struct sl_plan_copier *copier;
        int plan_fd;
};

static int write_plan(int fd, void *context)
{
        const struct copying *copying = context;
        struct stat status;

        if (fstat(copying->plan_fd, &status) < 0)
                return -errno;
        for (off_t at = 0; at < status.st_size;) {
                ssize_t n = sendfile(fd, copying->plan_fd, &at, COPY_BYTES);

                if (copying->copier->stops)
                        return -ECANCELED;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
        }
        return sl_plan_sum_write(fd);
}

static int copy_plan(struct sl_plan_copier *copier, const struct sl_plan_copy *copy)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        struct copying copying = {copier, copy->plan_fd};
        int r = sl_cache_folder_put(copy->folder, copy->name, write_plan, &copying, &fd);

        if (r == 0)
                copier->kept(copier->context, copy->name, fd);
        return r;
}

static void *run_copier(void *context)
{
        struct sl_plan_copier *copier = context;

        sl_background_thread(true);
        pthread_mutex_lock(&copier->lock);
        while (!copier->stops) {
                int r;

                if (!copier->first) {
                        pthread_cond_wait(&copier->change, &copier->lock);
                        continue;
                }
                pthread_mutex_unlock(&copier->lock);
                r = copy_plan(copier, copier->first);
                pthread_mutex_lock(&copier->lock);
                copier->failed = copier->failed ? copier->failed : r;
                copier->first = copy_free(copier->first);
                if (!copier->first)
                        copier->last = &copier->first;
                pthread_cond_broadcast(&copier->change);
        }
        pthread_mutex_unlock(&copier->lock);
        return NULL;
}

static int start_copier(struct sl_plan_copier *copier)
{
        int r;

        if (copier->has_thread)
                return 0;
        r = sl_thread_start_aside(NULL, "sl-plan-copier", run_copier, copier, &copier->thread);
        copier->has_thread = r == 0;
        return r;
}

int sl_plan_copier_add(struct sl_plan_copier *copier, int folder, const char *name, int plan_fd)
{
        struct sl_plan_copy *copy = calloc(1, sizeof(*copy));
        int r = copy ? start_copier(copier) : -ENOMEM;

        if (r == 0) {
                copy->plan_fd = fcntl(plan_fd, F_DUPFD_CLOEXEC, 0);
                r = copy->plan_fd < 0 ? -errno : 0;
        }
        if (r < 0) {
                free(copy);
                return r;
        }
        copy->folder = folder;
        strncpy(copy->name, name, sizeof(copy->name) - 1);
        pthread_mutex_lock(&copier->lock);
        *copier->last = copy;
        copier->last = &copy->next;
        pthread_cond_broadcast(&copier->change);
        pthread_mutex_unlock(&copier->lock);
        return 0;
}

void sl_plan_copier_wait(struct sl_plan_copier *copier)
{
        pthread_mutex_lock(&copier->lock);
        while (copier->first)
                pthread_cond_wait(&copier->change, &copier->lock);
        pthread_mutex_unlock(&copier->lock);
}

int sl_plan_copier_failure(struct sl_plan_copier *copier)
{
        int r;

        pthread_mutex_lock(&copier->lock);
        r = copier->failed;
        copier->failed = 0;
        pthread_mutex_unlock(&copier->lock);
        return r;
}
