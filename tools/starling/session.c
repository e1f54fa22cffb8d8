/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"
#include "base/exit_status.h"
#include "command.h"

#include <stddef.h>
#include <string.h>

int session_parse(int argc, char **argv, const struct option *options, int min, int max, struct session_arguments *ret_arguments)
{
        struct session_arguments arguments = {.name = NULL};

        for (int option; (option = next_option(argc, argv, options)) != -1;) {
                if (option == OPTION_NAME)
                        arguments.name = optarg;
                else if (option == OPTION_JSON)
                        arguments.json = true;
                else if (option == OPTION_VERBOSE)
                        arguments.verbose = true;
                else if (option == OPTION_WHY)
                        arguments.why = optarg;
                else if (option == OPTION_EXPLAIN)
                        arguments.explain = optarg;
                else if (option == OPTION_CONFIGURED)
                        arguments.configured = true;
                else
                        return complain_usage(argv[0]);
        }
        arguments.n_arguments = argc - optind;
        arguments.arguments = argv + optind;
        if (arguments.n_arguments < min || arguments.n_arguments > max)
                return complain_usage(argv[0]);
        *ret_arguments = arguments;
        return STATUS_OK;
}

int session_status(int result)
{
        return sl_exit_status_of(result); /* STATUS_NOBODY, STATUS_REFUSED */
}

int session_complain(int result, const char *command, const char *name, const char *text)
{
        bool is_named = strcmp(name, "starling") != 0;
        int status = session_status(result);

        if (status != STATUS_NOBODY || strchr(name, '/'))
                return complain(status, command, "%s", text);
        return complain(status, command,
                "%s; no runtime \"%s\" is there, and none has crashed; to start it: starling serve MODELS%s%s", text, name,
                is_named ? " --name " : "", is_named ? name : "");
}

int session_open(const char *command, const struct session_arguments *arguments, enum starling_role role,
        struct starling_client **ret_client)
{
        struct starling_options options = {.runtime = arguments->name, .role = role};
        struct starling_error error = {""};
        int result = starling_connect(&options, ret_client, &error);

        return result == 0 ? STATUS_OK : complain(session_status(result), command, "%s", error.text);
}
