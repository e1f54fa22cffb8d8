/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling profile`: compiles a model in this process, runs it on the calling thread and says where the time goes.
 */
#include "base/cleanup.h"
#include "base/error.h"
#include "command.h"
#include "compile.h"
#include "lower_options.h"
#include "node_profile.h"
#include "plan.h"
#include "profile_print.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

SL_DEFINE_CLEANUP(struct sl_plan *, sl_plan_free)
SL_DEFINE_CLEANUP(struct sl_node_profile *, sl_node_profile_free)

enum { OPTION_NODES = 256, OPTION_BATCH, OPTION_JSON, OPTION_TRACE, OPTION_SECONDS };

static const struct option options[] = {
        {"nodes", no_argument, NULL, OPTION_NODES},
        {"batch", required_argument, NULL, OPTION_BATCH},
        {"json", no_argument, NULL, OPTION_JSON},
        {"trace", required_argument, NULL, OPTION_TRACE},
        {"seconds", required_argument, NULL, OPTION_SECONDS},
        {"option", required_argument, NULL, 'O'},
        {0},
};

struct wish {
        const char *model, *trace;
        struct sl_lower_options lowering;
        uint32_t batch; /* 0: the largest of the ladder */
        double seconds;
        bool nodes, json;
};

static int take(struct wish *wish, int option, const char *value, struct sl_error *error)
{
        switch (option) {
        case OPTION_NODES:
                wish->nodes = true;
                return 0;
        case OPTION_BATCH:
                wish->batch = (uint32_t)strtoul(value, NULL, 10);
                wish->lowering.batch_max = wish->batch;
                return wish->batch >= 1 && wish->batch <= 1024 ? 0 : -EINVAL;
        case OPTION_JSON:
                wish->json = true;
                return 0;
        case OPTION_TRACE:
                wish->trace = value;
                return 0;
        case OPTION_SECONDS:
                wish->seconds = strtod(value, NULL);
                return wish->seconds > 0 && wish->seconds <= 3600 ? 0 : -EINVAL;
        case 'O':
                return sl_lower_options_parse(&wish->lowering, value, error);
        default:
                return -EINVAL;
        }
}

/* -EINVAL without a text: wrong usage. */
static int parse(int argc, char **argv, struct wish *wish, struct sl_error *error)
{
        for (int option; (option = getopt_long(argc, argv, "O:", options, NULL)) != -1;) {
                if (take(wish, option, optarg, error) < 0)
                        return -EINVAL;
        }
        if (argc - optind != 1)
                return -EINVAL;
        wish->model = argv[optind];
        return 0;
}

static int write_trace(const struct wish *wish, const struct sl_node_profile *profile, struct sl_error *error)
{
        FILE *stream = fopen(wish->trace, "we");
        int r;

        if (!stream)
                return sl_error_set(error, errno, "\"%s\": %s", wish->trace, strerror(errno));
        r = profile_print_trace(profile, stream);
        if (fclose(stream) != 0 && r == 0)
                r = -EIO;
        return r < 0 ? sl_error_set(error, -r, "\"%s\": %s", wish->trace, strerror(-r)) : 0;
}

static int show(const struct wish *wish, const struct sl_node_profile *profile, struct sl_error *error)
{
        int r = wish->trace ? write_trace(wish, profile, error) : 0;

        if (r == 0 && wish->json)
                return profile_print_json(profile, stdout);
        if (r == 0)
                profile_print_text(profile, wish->nodes, stdout);
        return r;
}

static int profile(const struct wish *wish, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_node_profile_free) struct sl_node_profile *measured = NULL;
        SL_CLEANUP(sl_cleanup_sl_plan_free) struct sl_plan *plan = NULL;
        SL_CLEANUP(sl_cleanup_fd) int fd = memfd_create("plan", MFD_CLOEXEC);
        const struct sl_plan_info *info;
        int r = fd < 0 ? sl_error_set(error, errno, "memory for the plan: %s", strerror(errno))
                       : sl_compile_here(wish->model, &wish->lowering, -1, fd, error);

        if (r == 0)
                r = sl_plan_open(fd, &plan, error);
        if (r < 0)
                return r;
        info = sl_plan_info(plan);
        r = sl_node_profile_new(
                plan, wish->batch ? wish->batch : info->batches[info->n_batches - 1], wish->seconds, &measured, error);
        return r < 0 ? r : show(wish, measured, error);
}

int command_profile(int argc, char **argv)
{
        struct wish wish = {.seconds = 2};
        struct sl_error error = {""};
        int r;

        sl_lower_options_init(&wish.lowering);
        wish.lowering.batch_max = 1;
        if (parse(argc, argv, &wish, &error) < 0)
                return error.text[0] ? complain(STATUS_USAGE, "profile", "%s", error.text) : complain_usage("profile");
        r = profile(&wish, &error);
        if (r == 0)
                return STATUS_OK;
        return complain(STATUS_FAILED, "profile", "%s: %s", wish.model, error.text[0] ? error.text : strerrordesc_np(-r));
}
