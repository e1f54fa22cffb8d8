/*
 * A connection of a command to a runtime, and what its errors are as an exit status. One thread.
 */
#pragma once

#include "starling.h"

#include <stdbool.h>

/* What every command that talks to a runtime takes: --name NAME, --json where @json is not NULL; then the arguments. */
struct session_arguments {
        const char *name; /* of the runtime, or the path of its socket; NULL: the default */
        bool json;
        int n_arguments;
        char **arguments;
};

/* Return: STATUS_OK; STATUS_USAGE after the usage was printed. */
int session_parse(int argc, char **argv, bool takes_json, int min, int max, struct session_arguments *ret_arguments);

/* Connects; complains and returns an enum status when that fails. */
int session_open(const char *command, const struct session_arguments *arguments, enum starling_role role,
        struct starling_client **ret_client);

/* The exit status of a -errno. */
int session_status(int result);
