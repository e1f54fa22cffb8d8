/* SPDX-License-Identifier: Apache-2.0 */
#include "wait.h"
#include "base/error.h"
#include "postbox.h"
#include "table.h"

#include <stddef.h>

int sl_wait_new(enum sl_wait_kind kind, struct sl_wait **ret_wait, struct sl_error *error)
{
        if (kind == SL_WAIT_EPOLL)
                return sl_wait_epoll_new(ret_wait, error);

        int result = sl_wait_uring_new(ret_wait, error);
        if (result < 0 && kind == SL_WAIT_ANY)
                result = sl_wait_epoll_new(ret_wait, error);
        return result;
}

struct sl_wait *sl_wait_free(struct sl_wait *wait)
{
        return wait ? wait->table->free(wait) : NULL;
}

const char *sl_wait_name(const struct sl_wait *wait)
{
        return wait->table->name;
}

int sl_wait_watch(struct sl_wait *wait, int fd, uint64_t token)
{
        return wait->table->watch(wait, fd, token);
}

int sl_wait_accept(struct sl_wait *wait, int fd, uint64_t token)
{
        return wait->table->accept(wait, fd, token);
}

int sl_wait_unwatch(struct sl_wait *wait, uint64_t token)
{
        return wait->table->unwatch(wait, token);
}

int sl_wait_for(struct sl_wait *wait, struct sl_wait_event *ret_events, uint32_t n, uint64_t timeout_ns)
{
        return n ? wait->table->wait_for(wait, ret_events, n, timeout_ns) : -EINVAL;
}

int sl_wait_post(struct sl_wait *from, struct sl_wait *target, uint64_t token)
{
        bool alike = from && from->table == target->table && target->table->post_directly;

        if (alike && target->table->post_directly(from, target, token))
                return 0;
        return sl_postbox_put(target->postbox, token);
}
