/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "command.h"
#include "counts.h"
#include "session.h"

#include <errno.h>
#include <string.h>

static const struct option options[] = {STATS_OPTIONS(OPTION_GETOPT){0}};

int command_stats(int argc, char **argv)
{
        struct session_arguments arguments;
        struct sl_error error = {""};
        struct counts counts;
        int status = session_parse(argc, argv, options, 0, 1, &arguments);

        if (status != STATUS_OK)
                return status;
        const char *name = arguments.n_arguments ? arguments.arguments[0] : arguments.name ? arguments.name : "starling";
        int result = counts_read(name, &counts, &error);
        if (result < 0)
                return complain(session_status(result), argv[0], "%s", error.text[0] ? error.text : strerrordesc_np(-result));
        (arguments.json ? counts_print_json : counts_print)(&counts);
        counts_deinit(&counts);
        return STATUS_OK;
}
