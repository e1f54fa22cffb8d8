/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling compile`: the same child, with the same limits, as the runtime starts; its plan file goes into a folder of the user.
 */
#include "compile.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "command.h"
#include "command_options.h"
#include "data_folders.h"
#include "lower_options.h"
#include "plan_sum.h"
#include "variant_note.h"
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPTIONS = OPTIONS_BEGIN, COMPILE_OPTIONS(OPTION_ID) };

static const struct option options[] = {COMPILE_OPTIONS(OPTION_GETOPT){0}};

struct wish {
        const char *model, *output, *base;
        struct data_folders folders;
        struct sl_lower_options lowering;
};

/* -EINVAL without a text: wrong usage. */
static int parse(int argc, char **argv, struct wish *wish, struct sl_error *error)
{
        for (int option; (option = next_option(argc, argv, options)) != -1;) {
                if (option == 'o')
                        wish->output = optarg;
                else if (option == 'b')
                        wish->base = optarg;
                else if (option == OPTION_DATA_FOLDER) {
                        if (data_folders_add(&wish->folders, optarg, error) < 0)
                                return -EINVAL;
                } else if (option != 'O')
                        return -EINVAL;
                else if (sl_lower_options_parse(&wish->lowering, optarg, error) < 0)
                        return -EINVAL;
        }
        if (argc - optind != 1 || !wish->output)
                return -EINVAL;
        wish->model = argv[optind];
        return 0;
}

/* @context: a descriptor of the plan, in memory. */
static int copy_plan(int to, void *context)
{
        return sl_plan_sum_copy(*(const int *)context, to);
}

int command_compile(int argc, char **argv)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        SL_CLEANUP(sl_cleanup_fd) int base_fd = -1;
        struct sl_error error = {""};
        struct wish wish = {0};
        struct sl_data_folders folders;
        char place[PATH_MAX];
        int r;

        sl_lower_options_init(&wish.lowering);
        wish.lowering.shapes_known = true;
        if (parse(argc, argv, &wish, &error) < 0)
                return error.text[0] ? complain(STATUS_USAGE, "compile", "%s", error.text) : complain_usage("compile");
        if (wish.base && (base_fd = open(wish.base, O_RDONLY | O_CLOEXEC)) < 0)
                return complain(STATUS_FAILED, "compile", "\"%s\": %s", wish.base, strerror(errno));
        if (find_whole_file(wish.output, place, &error) < 0)
                return complain(STATUS_FAILED, "compile", "%s", error.text);
        folders = data_folders_given(&wish.folders);
        r = sl_compile(&(struct sl_compile_options){.model_path = wish.model,
                               .lowering = &wish.lowering,
                               .base_fd = wish.base ? base_fd : 0,
                               .data_folders = &folders},
                &fd, &error);
        if (r == 0 && error.text[0])
                fprintf(stderr, "starling compile: warning: %s\n", error.text);
        if (r == 0)
                r = keep_whole_file(place, copy_plan, &fd, &error);
        if (r == 0 && !wish.base)
                note_if_slower("compile", fd, &wish.lowering);
        return r == 0 ? STATUS_OK : complain(STATUS_FAILED, "compile", "%s", error.text);
}

int command_compiler(int argc, char **argv)
{
        return sl_compile_child_main(argc, argv);
}

int command_zygote(int argc, char **argv)
{
        return sl_compile_zygote_main(argc, argv, sl_compile_child_main);
}

void print_lower_options(void)
{
        struct sl_lower_options defaults;

        sl_lower_options_init(&defaults);
        printf("\n  KEY of --option, see starling-config(5):");
        for (uint32_t i = 0; i < SL_LOWER_OPTION_COUNT; i++) {
                char text[SL_LOWER_OPTION_TEXT_BYTES];

                sl_lower_options_text(&defaults, (enum sl_lower_option)i, text);
                printf("\n    %s (default: %s)", sl_lower_option_name((enum sl_lower_option)i), *text ? text : "none");
        }
        printf("\n");
}
