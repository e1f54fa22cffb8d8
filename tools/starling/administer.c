/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"
#include "session.h"

#include <errno.h>

static const struct option options[] = {ADMINISTER_OPTIONS(OPTION_GETOPT){0}};

typedef int (*deed_fn)(struct starling_client *client, const char *model, struct starling_error *error);

static int administer(int argc, char **argv, deed_fn deed)
{
        struct session_arguments arguments;
        struct starling_client *client;
        struct starling_error error = {""};
        int status = session_parse(argc, argv, options, 1, 1, &arguments);

        if (status == STATUS_OK)
                status = session_open(argv[0], &arguments, STARLING_ROLE_ADMIN, &client);
        if (status != STATUS_OK)
                return status;
        int result = deed(client, arguments.arguments[0], &error);
        starling_close(client);
        if (result == 0)
                return STATUS_OK;
        /* The runtime was there: a model that is not is a failure like any other. */
        status = result == -EPERM || result == -EACCES ? STATUS_REFUSED : result == -EPIPE ? STATUS_NOBODY : STATUS_FAILED;
        return complain(status, argv[0], "%s", error.text);
}

int command_load(int argc, char **argv)
{
        return administer(argc, argv, starling_admin_load);
}

int command_unload(int argc, char **argv)
{
        return administer(argc, argv, starling_admin_unload);
}

int command_reload(int argc, char **argv)
{
        return administer(argc, argv, starling_admin_reload);
}
