/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection of a command to a runtime, and what its errors are as an exit status. One thread.
 */
#pragma once

#include "command_options.h"
#include "starling.h"

#include <stdbool.h>

/* The options of all commands that talk to a runtime; each has a table of those that it takes. */
enum { SESSION_OPTIONS = OPTIONS_BEGIN, MODELS_OPTIONS(OPTION_ID) OPTION_CONFIGURED, OPTION_EXPLAIN };

/* What they say; then the arguments. */
struct session_arguments {
        const char *name; /* of the runtime, or the path of its socket; NULL: the default */
        const char *why;  /* of a model; NULL: nobody asks */
        const char *explain; /* a wish; NULL: nobody asks */
        bool json, verbose, configured;
        int n_arguments;
        char **arguments;
};

/* Return: STATUS_OK; STATUS_USAGE after the usage was printed. */
int session_parse(int argc, char **argv, const struct option *options, int min, int max, struct session_arguments *ret_arguments);

/* Connects; complains and returns an enum status when that fails. */
int session_open(const char *command, const struct session_arguments *arguments, enum starling_role role,
        struct starling_client **ret_client);

/* The exit status of a -errno. */
int session_status(int result);

/* Why runtime @name has no stats page, and what is to be done where that is because it is not there. Return: enum status. */
int session_complain(int result, const char *command, const char *name, const char *text);
