/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "command.h"
#include "command_options.h"
#include "daemon.h"

#include <errno.h>
#include <stddef.h>

enum { OPTIONS = OPTIONS_BEGIN, SERVE_OPTIONS(OPTION_ID) };

static const struct option options[] = {SERVE_OPTIONS(OPTION_GETOPT){0}};

#define LOWERING_MAX 64 /* assignments on a command line */

static int parse(int argc, char **argv, const char **lowering, struct sl_daemon_options *ret_options)
{
        ret_options->lowering = lowering;
        for (int option; (option = next_option(argc, argv, options)) != -1;) {
                switch (option) {
                case OPTION_CONFIG:
                        ret_options->config_path = optarg;
                        break;
                case OPTION_NAME:
                        ret_options->name = optarg;
                        break;
                case OPTION_WAIT:
                        ret_options->wait = optarg;
                        break;
                case OPTION_ALLOCATION:
                        ret_options->allocation = optarg;
                        break;
                case OPTION_FAKE:
                        ret_options->fake = true;
                        break;
                case OPTION_HISTORY:
                        ret_options->history = optarg;
                        break;
                case OPTION_LOG_LEVEL:
                        ret_options->log_level = optarg;
                        break;
                case OPTION_LOG_FORMAT:
                        ret_options->log_format = optarg;
                        break;
                case 'O':
                        if (ret_options->n_lowering == LOWERING_MAX)
                                return -EINVAL;
                        lowering[ret_options->n_lowering++] = optarg;
                        break;
                default:
                        return -EINVAL;
                }
        }
        ret_options->repositories = (const char *const *)argv + optind;
        ret_options->n_repositories = (unsigned)(argc - optind);
        return 0;
}

int command_serve(int argc, char **argv)
{
        const char *lowering[LOWERING_MAX];
        struct sl_daemon_options daemon = {.config_path = NULL};
        struct sl_error error = {""};

        if (parse(argc, argv, lowering, &daemon) < 0)
                return complain_usage("serve");
        int result = sl_daemon_serve(&daemon, &error);
        if (result == 0)
                return STATUS_OK;
        if (error.text[0])
                complain(STATUS_FAILED, "serve", "%s", error.text);
        return result == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
}
