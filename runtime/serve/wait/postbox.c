/* SPDX-License-Identifier: Apache-2.0 */
#include "postbox.h"
#include "wait.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct sl_postbox {
        int fd;
        pthread_mutex_t mutex;
        uint32_t n;
        uint64_t tokens[SL_WAIT_POSTS_MAX];
};

int sl_postbox_new(struct sl_postbox **ret_postbox)
{
        struct sl_postbox *postbox = calloc(1, sizeof(*postbox));

        if (!postbox)
                return -ENOMEM;
        postbox->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (postbox->fd < 0) {
                int result = -errno;

                free(postbox);
                return result;
        }
        pthread_mutex_init(&postbox->mutex, NULL);
        *ret_postbox = postbox;
        return 0;
}

struct sl_postbox *sl_postbox_free(struct sl_postbox *postbox)
{
        if (!postbox)
                return NULL;
        close(postbox->fd);
        pthread_mutex_destroy(&postbox->mutex);
        free(postbox);
        return NULL;
}

int sl_postbox_fd(const struct sl_postbox *postbox)
{
        return postbox->fd;
}

static int put_locked(struct sl_postbox *postbox, uint64_t token)
{
        for (uint32_t i = 0; i < postbox->n; i++)
                if (postbox->tokens[i] == token)
                        return 0;
        if (postbox->n == SL_WAIT_POSTS_MAX)
                return -EAGAIN;
        postbox->tokens[postbox->n++] = token;
        return 0;
}

int sl_postbox_put(struct sl_postbox *postbox, uint64_t token)
{
        pthread_mutex_lock(&postbox->mutex);
        int result = put_locked(postbox, token);
        pthread_mutex_unlock(&postbox->mutex);

        /* Only a counter at its limit refuses a write, and then the reader has been woken already. */
        uint64_t one = 1;
        ssize_t written = write(postbox->fd, &one, sizeof(one));
        (void)written;
        return result;
}

uint32_t sl_postbox_take(struct sl_postbox *postbox, uint64_t *ret_tokens, uint32_t n, bool *ret_more)
{
        /* The count is reset before the tokens are read: a token that comes later makes the eventfd readable again. */
        uint64_t count;
        ssize_t got = read(postbox->fd, &count, sizeof(count));
        (void)got;

        pthread_mutex_lock(&postbox->mutex);
        uint32_t taken = postbox->n < n ? postbox->n : n;
        memcpy(ret_tokens, postbox->tokens, taken * sizeof(*ret_tokens));
        postbox->n -= taken;
        memmove(postbox->tokens, postbox->tokens + taken, postbox->n * sizeof(*ret_tokens));
        *ret_more = postbox->n > 0;
        pthread_mutex_unlock(&postbox->mutex);
        return taken;
}
