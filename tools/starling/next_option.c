/* SPDX-License-Identifier: Apache-2.0 */
#include "command_options.h"

#include <stddef.h>
#include <stdio.h>

int next_option(int argc, char **argv, const struct option *options)
{
        char letters[64], name[64], *given = argv[0];
        int n = 0, value;

        for (const struct option *option = options; option->name && n < (int)sizeof(letters) - 2; option++) {
                if (option->val > OPTIONS_BEGIN)
                        continue;
                letters[n++] = (char)option->val;
                if (option->has_arg)
                        letters[n++] = ':';
        }
        letters[n] = 0;
        snprintf(name, sizeof(name), "starling %s", given);
        argv[0] = name; /* getopt's own messages begin with it */
        value = getopt_long(argc, argv, letters, options, NULL);
        argv[0] = given;
        return value;
}
