/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling fuse`: which models are of one architecture, and what running them as one merged plan would gain, compiled and measured
 * as serve does it.
 */
#include "fuse.h"
#include "fuse_order.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/value.h"
#include "command.h"
#include "command_options.h"
#include "fuse_models.h"
#include "fuse_print.h"
#include "plan.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS = OPTIONS_BEGIN, FUSE_OPTIONS(OPTION_ID) };

static const struct option options[] = {FUSE_OPTIONS(OPTION_GETOPT){0}};

#define OPTIONS_MAX 64

struct wish {
        const char *config;
        const char *options[OPTIONS_MAX];
        uint32_t n_options, lanes, batch;
        double seconds;
        bool json, explain;
};

static int read_number(
        const char *name, const char *text, uint64_t least, uint64_t most, uint32_t *ret_number, struct sl_error *error)
{
        char wanted[SL_WISH_BYTES];
        uint64_t number;

        if (sl_value_number(text, least, most, &number, wanted) < 0)
                return sl_error_set(error, EINVAL, "--%s: \"%s\" is %s", name, text, wanted);
        *ret_number = (uint32_t)number;
        return 0;
}

static int read_seconds(const char *text, double *ret_seconds, struct sl_error *error)
{
        char wanted[SL_WISH_BYTES];

        if (sl_value_real(text, 0.001, 3600, ret_seconds, wanted) == 0)
                return 0;
        return sl_error_set(error, EINVAL, "--seconds: \"%s\" is %s", text, wanted);
}

static int keep_option(struct wish *wish, const char *text, struct sl_error *error)
{
        struct sl_lower_options tried;

        if (wish->n_options == OPTIONS_MAX)
                return sl_error_set(error, E2BIG, "more than %d options", OPTIONS_MAX);
        sl_lower_options_init(&tried);
        wish->options[wish->n_options++] = text;
        return sl_lower_options_parse(&tried, text, error);
}

/* -EINVAL without a text: wrong usage. */
static int parse(int argc, char **argv, struct wish *wish, struct sl_error *error)
{
        int r = 0;

        for (int option; r == 0 && (option = next_option(argc, argv, options)) != -1;) {
                if (option == OPTION_EXPLAIN)
                        wish->explain = true;
                else if (option == OPTION_JSON)
                        wish->json = true;
                else if (option == OPTION_CONFIG)
                        wish->config = optarg;
                else if (option == OPTION_LANES)
                        r = read_number("lanes", optarg, 2, SL_FUSE_LANES_MAX, &wish->lanes, error);
                else if (option == OPTION_BATCH)
                        r = read_number("batch", optarg, 1, 1024, &wish->batch, error);
                else if (option == OPTION_SECONDS)
                        r = read_seconds(optarg, &wish->seconds, error);
                else if (option == 'O')
                        r = keep_option(wish, optarg, error);
                else
                        return -EINVAL;
        }
        return r < 0 ? r : argc > optind ? 0 : -EINVAL;
}

/* What does not fit is not told of. */
static void note_trial(void *context, const struct sl_fuse_trial *told)
{
        struct fuse_group *group = context;
        struct fuse_trial *trial = &group->trials[group->n_trials];

        if (group->n_trials == FUSE_TRIALS_MAX)
                return;
        *trial = (struct fuse_trial){.first = told->first,
                .n_lanes = told->n_lanes,
                .status = told->status,
                .compiled = told->compiled,
                .cause = strdup(told->cause),
                .notes = strdup(told->notes)};
        if (!trial->cause || !trial->notes) {
                free(trial->cause);
                free(trial->notes);
                return;
        }
        if (told->status == 0) {
                trial->table = *told->table;
                trial->n_common = told->info->n_common;
                trial->n_merged = told->info->n_merged;
                trial->weights_bytes = told->info->weights_bytes;
                trial->member_bytes = told->info->member_bytes;
                trial->stacked_bytes = told->info->stacked_bytes;
                trial->workspace_bytes = told->info->workspace_bytes[0];
        }
        group->n_trials++;
}

static void take_result(struct sl_fuse *fuse, struct fuse_group *group)
{
        struct sl_fuse_result result;

        sl_fuse_take(fuse, &result);
        group->n_blocks = result.n_blocks;
        for (uint32_t i = 0; i < result.n_blocks; i++) {
                group->blocks[i].first = result.blocks[i].first;
                group->blocks[i].n_lanes = result.blocks[i].n_lanes;
        }
        memcpy(group->text, result.error.text, sizeof(group->text));
        sl_fuse_result_deinit(&result);
}

static int fuse_group_run(
        struct fuse_group *group, const struct wish *wish, const struct fuse_search *search, struct sl_error *error)
{
        struct sl_fuse_member members[SL_FUSE_LANES_MAX];
        const struct sl_fuse_options fuse_options = {
                .members = members,
                .n_members = group->n_members,
                .lowering = &group->members[0]->lowering,
                .cache = search->cache,
                .batch_max = wish->batch,
                .lanes = wish->lanes < group->n_members ? wish->lanes : group->n_members,
                .measure_ns = (uint64_t)(wish->seconds * (double)SL_NS_PER_SECOND),
                .tried = note_trial,
                .context = group,
        };
        struct sl_fuse *fuse;
        int r;

        for (uint32_t i = 0; i < group->n_members; i++)
                members[i] = (struct sl_fuse_member){.path = group->members[i]->path, .plan = group->members[i]->plan};
        r = sl_fuse_begin(&fuse_options, &fuse, error);
        if (r < 0)
                return r;
        do {
                struct pollfd one = {.fd = sl_fuse_fd(fuse), .events = POLLIN};

                (void)poll(&one, 1, -1);
        } while (!sl_fuse_advance(fuse));
        take_result(fuse, group);
        sl_fuse_free(fuse);
        return 0;
}

static void put_in_order(struct fuse_group *group)
{
        const struct fuse_model *members[SL_FUSE_LANES_MAX];
        const struct sl_plan_info *infos[SL_FUSE_LANES_MAX] = {NULL};
        uint32_t order[SL_FUSE_LANES_MAX];

        for (uint32_t i = 0; i < group->n_members; i++) {
                members[i] = group->members[i];
                infos[i] = sl_plan_info(members[i]->plan);
        }
        sl_fuse_order(infos, group->n_members, order);
        for (uint32_t i = 0; i < group->n_members; i++)
                group->members[i] = members[order[i]];
}

static void gather(const struct fuse_models *models, uint32_t number, struct fuse_group *group)
{
        for (uint32_t i = 0; i < models->n; i++) {
                if (models->all[i].group != number)
                        continue;
                if (group->n_members < SL_FUSE_LANES_MAX)
                        group->members[group->n_members++] = &models->all[i];
                else
                        group->n_left_out++;
        }
        put_in_order(group);
}

static void groups_free(struct fuse_group *groups, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                for (uint32_t k = 0; k < groups[i].n_trials; k++) {
                        free(groups[i].trials[k].cause);
                        free(groups[i].trials[k].notes);
                }
        free(groups);
}

/* Of each group with two members and more. */
static int run_groups(
        const struct fuse_models *models, const struct wish *wish, const struct fuse_search *search, struct sl_error *error)
{
        struct fuse_group *groups = calloc(models->n_groups + 1u, sizeof(*groups));
        uint32_t n = 0;
        int r = groups ? 0 : sl_error_set(error, ENOMEM, "out of memory");

        for (uint32_t i = 0; i < models->n_groups && r == 0; i++) {
                gather(models, i, &groups[n]);
                if (groups[n].n_members > 1)
                        r = fuse_group_run(&groups[n++], wish, search, error);
                else
                        groups[n] = (struct fuse_group){0};
        }
        if (r == 0 && wish->json)
                fuse_print_json(models, groups, n);
        else if (r == 0)
                fuse_print_text(models, groups, n, wish->explain);
        groups_free(groups, groups ? n : 0);
        return r;
}

static int run(int argc, char **argv, const struct wish *wish, const struct fuse_search *search, struct sl_error *error)
{
        struct fuse_models models = {0};
        int r = 0;

        for (int i = optind; i < argc && r == 0; i++)
                r = fuse_models_add(&models, search, argv[i], error);
        if (r == 0)
                fuse_models_compile(&models, search);
        if (r == 0)
                r = run_groups(&models, wish, search, error);
        fuse_models_deinit(&models);
        return r;
}

int command_fuse(int argc, char **argv)
{
        struct wish wish = {.seconds = 3};
        struct sl_error error = {""};
        struct fuse_search search;

        if (parse(argc, argv, &wish, &error) < 0)
                return error.text[0] ? complain(STATUS_USAGE, "fuse", "%s", error.text) : complain_usage("fuse");
        if (fuse_search_init(&search, wish.config, &error) < 0)
                return complain(STATUS_USAGE, "fuse", "%s", error.text);
        search.options = wish.options;
        search.n_options = wish.n_options;
        int r = run(argc, argv, &wish, &search, &error);
        fuse_search_deinit(&search);
        return r == 0 ? STATUS_OK : complain(STATUS_FAILED, "fuse", "%s", error.text);
}
