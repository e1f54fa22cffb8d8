/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int ask(struct starling_client *client, const struct sl_message *question, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        struct sl_message answer;

        pthread_mutex_lock(&client->lock);
        int r = sl_connection_ask(&client->connection, question, -1, SL_MESSAGE_DONE, &answer, &fd, error);
        pthread_mutex_unlock(&client->lock);
        return r;
}

static int administer(struct starling_client *client, uint32_t type, const char *model, struct starling_error *error)
{
        struct sl_message question = {.magic = SL_WIRE_MAGIC, .type = type};
        size_t length = strlen(model);

        if (sl_forked(&client->fork))
                return sl_error_set(sl_error_of(error), ECHILD, "%s", starling_strerror(-ECHILD));
        if (client->connection.role != SL_ROLE_ADMIN)
                return sl_error_set(
                        sl_error_of(error), EPERM, "model \"%.80s\": this client did not connect as administrator", model);
        if (length == 0 || length >= sizeof(question.admin.model))
                return sl_error_set(sl_error_of(error), EINVAL, "model \"%.80s\": a name has 1 to %zu bytes, this one %zu", model,
                        sizeof(question.admin.model) - 1, length);
        memcpy(question.admin.model, model, length);
        return ask(client, &question, sl_error_of(error));
}

int starling_admin_load(struct starling_client *client, const char *model, struct starling_error *error)
{
        return administer(client, SL_MESSAGE_LOAD, model, error);
}

int starling_admin_unload(struct starling_client *client, const char *model, struct starling_error *error)
{
        return administer(client, SL_MESSAGE_UNLOAD, model, error);
}

int starling_admin_reload(struct starling_client *client, const char *model, struct starling_error *error)
{
        return administer(client, SL_MESSAGE_RELOAD, model, error);
}
