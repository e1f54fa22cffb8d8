/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The client is locked. */
static int ask(struct starling_client *client, const struct sl_message *question, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        struct sl_message answer;

        return sl_connection_ask(&client->connection, question, -1, SL_MESSAGE_DONE, &answer, &fd, error);
}

static int check_role(struct starling_client *client, const char *model, struct sl_error *error)
{
        if (sl_forked(&client->fork))
                return sl_error_set(error, ECHILD, "%s", starling_strerror(-ECHILD));
        if (client->connection.role != SL_ROLE_ADMIN)
                return sl_error_set(error, EPERM, "model \"%s\": this client did not connect as administrator", model);
        return 0;
}

static int check(struct starling_client *client, const char *name, struct sl_error *error)
{
        const char *model = name ? name : "";
        size_t length = strlen(model);
        int r = check_role(client, model, error);

        if (r < 0)
                return r;
        if (length == 0 || length >= SL_MODEL_NAME_BYTES)
                return sl_error_set(error, EINVAL, "model \"%s\": a name has 1 to %u bytes, this one %zu", model,
                        SL_MODEL_NAME_BYTES - 1, length);
        return 0;
}

static int administer(struct starling_client *client, uint32_t type, const char *model, struct starling_error *error)
{
        struct sl_message question = {.magic = SL_WIRE_MAGIC, .type = type};
        int r = check(client, model, sl_error_of(error));

        if (r < 0)
                return r;
        strcpy(question.model, model);
        pthread_mutex_lock(&client->lock);
        r = ask(client, &question, sl_error_of(error));
        pthread_mutex_unlock(&client->lock);
        return r;
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

static int check_allotment(struct starling_client *client, const struct starling_allotment *allotment, struct sl_error *error)
{
        int r = check(client, allotment->model, error);

        if (r < 0 || strlen(allotment->device) < SL_MESSAGE_TEXT)
                return r;
        return sl_error_set(error, EINVAL, "model \"%s\": device \"%s\" has more than %u bytes", allotment->model,
                allotment->device, SL_MESSAGE_TEXT - 1);
}

static int allot(struct starling_client *client, const struct starling_allotment *allotment, struct sl_error *error)
{
        struct sl_message question = {.magic = SL_WIRE_MAGIC, .type = SL_MESSAGE_ALLOT, .allot.batch = allotment->batch};

        strcpy(question.model, allotment->model);
        strcpy(question.text, allotment->device);
        return ask(client, &question, error);
}

/* One after the other without anybody between them: they make one allocation. */
static int apply(struct starling_client *client, const struct starling_allotment *allotments, uint32_t n, struct sl_error *error)
{
        const struct sl_message question = {.magic = SL_WIRE_MAGIC, .type = SL_MESSAGE_APPLY};
        int r = 0;

        for (uint32_t i = 0; i < n && r == 0; i++)
                r = allot(client, &allotments[i], error);
        return r < 0 ? r : ask(client, &question, error);
}

int starling_admin_apply(
        struct starling_client *client, const struct starling_allotment *allotments, uint32_t n, struct starling_error *error)
{
        int r = check_role(client, "", sl_error_of(error));

        for (uint32_t i = 0; i < n && r == 0; i++)
                r = check_allotment(client, &allotments[i], sl_error_of(error));
        if (r < 0)
                return r;
        pthread_mutex_lock(&client->lock);
        r = apply(client, allotments, n, sl_error_of(error));
        pthread_mutex_unlock(&client->lock);
        return r;
}
