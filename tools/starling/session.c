/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"
#include "command.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>

enum { OPTION_NAME = 256, OPTION_JSON, OPTION_VERBOSE };

#define OPTIONS_MAX 4

int session_parse(int argc, char **argv, unsigned takes, int min, int max, struct session_arguments *ret_arguments)
{
        struct option options[OPTIONS_MAX] = {{"name", required_argument, NULL, OPTION_NAME}};
        int n_options = 1;
        struct session_arguments arguments = {.name = NULL};

        if (takes & SESSION_JSON)
                options[n_options++] = (struct option){"json", no_argument, NULL, OPTION_JSON};
        if (takes & SESSION_VERBOSE)
                options[n_options++] = (struct option){"verbose", no_argument, NULL, OPTION_VERBOSE};
        for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
                if (option == OPTION_NAME)
                        arguments.name = optarg;
                else if (option == OPTION_JSON)
                        arguments.json = true;
                else if (option == OPTION_VERBOSE)
                        arguments.verbose = true;
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
        switch (-result) {
        case 0:
                return STATUS_OK;
        case ENOENT:
        case ECONNREFUSED:
        case ETIMEDOUT:
                return STATUS_NOBODY;
        case EACCES:
        case EPERM:
                return STATUS_REFUSED;
        default:
                return STATUS_FAILED;
        }
}

int session_open(const char *command, const struct session_arguments *arguments, enum starling_role role,
        struct starling_client **ret_client)
{
        struct starling_options options = {.runtime = arguments->name, .role = role};
        struct starling_error error = {""};
        int result = starling_connect(&options, ret_client, &error);

        return result == 0 ? STATUS_OK : complain(session_status(result), command, "%s", error.text);
}
