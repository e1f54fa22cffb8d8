/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling apply`: puts an allocation in the place of the one in force, while the runtime serves.
 */
#include "allocation_file.h"
#include "allotments.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "command.h"
#include "session.h"

#include <errno.h>
#include <stdlib.h>

SL_DEFINE_CLEANUP(struct sl_allocation *, sl_allocation_free)

static int apply(const struct session_arguments *arguments, const struct starling_allotment *allotments, uint32_t n)
{
        struct starling_client *client;
        struct starling_error error = {""};
        int status = session_open("apply", arguments, STARLING_ROLE_ADMIN, &client);

        if (status != STATUS_OK)
                return status;
        int result = starling_admin_apply(client, allotments, n, &error);
        starling_close(client);
        /* The runtime was there: a model that is not is a failure like any other. */
        status = result == -EPIPE ? STATUS_NOBODY : result == -EPERM || result == -EACCES ? STATUS_REFUSED : STATUS_FAILED;
        return result == 0 ? STATUS_OK : complain(status, "apply", "%s", error.text);
}

static int apply_file(const struct session_arguments *arguments, const char *path)
{
        SL_CLEANUP(sl_cleanup_sl_allocation_free) struct sl_allocation *allocation = NULL;
        SL_CLEANUP(sl_cleanup_free) struct starling_allotment *allotments = NULL;
        struct sl_error error = {""};

        if (sl_allocation_read(path, &allocation, &error) < 0)
                return complain(STATUS_FAILED, "apply", "%s", error.text);
        allotments = allotments_of(allocation);
        if (!allotments)
                return complain(STATUS_FAILED, "apply", "out of memory");
        if (!allocation->n_workers)
                return complain(STATUS_FAILED, "apply", "%s: no device has workers", path);
        return apply(arguments, allotments, allocation->n_workers);
}

int command_apply(int argc, char **argv)
{
        static const struct option options[] = {APPLY_OPTIONS(OPTION_GETOPT){0}};
        struct session_arguments arguments;
        int status = session_parse(argc, argv, options, 0, 1, &arguments);

        if (status != STATUS_OK)
                return status;
        if (arguments.n_arguments != !arguments.configured)
                return complain_usage("apply");
        return arguments.configured ? apply(&arguments, NULL, 0) : apply_file(&arguments, arguments.arguments[0]);
}
