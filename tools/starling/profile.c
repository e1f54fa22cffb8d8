/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling profile`: compiles a model in this process, runs it on the calling thread and says where the time goes. What is said of
 * workers is another program's (tools/profile).
 */
#include "backend.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/value.h"
#include "command.h"
#include "command_options.h"
#include "compile.h"
#include "data_folders.h"
#include "device_let.h"
#include "lower_options.h"
#include "model_argument.h"
#include "node_profile.h"
#include "plan.h"
#include "profile_print.h"
#include "team_measure.h"
#include "team_model.h"
#include "team_print.h"
#include "thread_list.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

SL_DEFINE_CLEANUP(struct sl_plan *, sl_plan_free)
SL_DEFINE_CLEANUP(struct sl_node_profile *, sl_node_profile_free)
SL_DEFINE_CLEANUP(struct sl_team_model *, sl_team_model_free)

enum { OPTIONS = OPTIONS_BEGIN, PROFILE_OPTIONS(OPTION_ID) };

static const struct option options[] = {PROFILE_OPTIONS(OPTION_GETOPT){0}};

#define BATCH_MAX   1024u
#define SECONDS_MIN 0.001
#define SECONDS_MAX 3600.0

struct wish {
        const char *path, *trace;
        struct model_argument model;
        struct data_folders folders;
        struct sl_data_folders given; /* them; of this struct, which is not copied */
        struct sl_lower_options lowering;
        uint32_t batch; /* 0: the largest of the ladder */
        double seconds;
        const char *threads;
        struct thread_list teams; /* of nodes; none: no word of teams */
        bool nodes, json, workers;
};

static int take(struct wish *wish, int option, const char *value, struct sl_error *error)
{
        char text[SL_WISH_BYTES];
        uint64_t batch;

        switch (option) {
        case OPTION_NODES:
                wish->nodes = true;
                return 0;
        case OPTION_BATCH:
                if (sl_value_number(value, 1, BATCH_MAX, &batch, text) < 0)
                        return sl_error_set(error, EINVAL, "--batch: \"%s\" is %s", value, text);
                wish->lowering.batch_max = wish->batch = (uint32_t)batch;
                return 0;
        case OPTION_THREADS:
                wish->threads = value;
                return 0;
        case OPTION_JSON:
                wish->json = true;
                return 0;
        case OPTION_TRACE:
                wish->trace = value;
                return 0;
        case OPTION_SECONDS:
                if (sl_value_real(value, SECONDS_MIN, SECONDS_MAX, &wish->seconds, text) < 0)
                        return sl_error_set(error, EINVAL, "--seconds: \"%s\" is %s", value, text);
                return 0;
        case OPTION_DEVICES:
        case OPTION_BATCHES:
        case OPTION_PRECISIONS:
        case OPTION_CORUN:
        case OPTION_BESIDE:
        case OPTION_MIXED:
        case OPTION_WIDTH:
        case OPTION_ELASTIC:
        case OPTION_AGAIN:
        case OPTION_DISTURBED:
        case OPTION_STORE:
        case 'o':
                wish->workers = true;
                return 0;
        case OPTION_DATA_FOLDER:
                return data_folders_add(&wish->folders, value, error);
        case 'O':
                wish->lowering.shapes_known = true;
                return sl_lower_options_parse(&wish->lowering, value, error);
        default:
                return -EINVAL;
        }
}

/* -EINVAL without a text: wrong usage. */
static int parse(int argc, char **argv, struct wish *wish, struct sl_error *error)
{
        wish->folders.n = 0;
        for (int option; (option = next_option(argc, argv, options)) != -1;) {
                if (take(wish, option, optarg, error) < 0)
                        return -EINVAL;
        }
        wish->given = data_folders_given(&wish->folders);
        wish->workers = wish->workers || (wish->threads && !wish->nodes);
        if (wish->workers)
                return 0;
        if (wish->threads && thread_list_parse(&wish->teams, wish->threads, error) < 0)
                return -EINVAL;
        if (argc - optind != 1)
                return -EINVAL;
        wish->path = argv[optind];
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

/* The largest team that is asked for, and can be timed here, if it is; 0: all CPUs, which are measured as a team in any case. */
static uint32_t largest_team(const struct wish *wish)
{
        uint32_t most = wish->teams.items[wish->teams.n - 1];
        cpu_set_t set;

        if (wish->lowering.tune == SL_TUNE_OFF && most > 1)
                return most;
        return sched_getaffinity(0, sizeof(set), &set) == 0 && most > 1 && most <= (uint32_t)CPU_COUNT(&set) ? most : 0;
}

/* What the command line says goes before the model's configuration; so do its teams. */
static int find_model(int argc, char **argv, struct wish *wish, struct sl_error *error)
{
        int r = model_argument_find(wish->path, &wish->lowering, &wish->model, error);

        optind = 0;
        if (r == 0 && wish->model.configured) {
                wish->lowering.batch_max = 1;
                if (wish->teams.n) {
                        wish->lowering.teams = true;
                        wish->lowering.team_size = 0;
                }
                r = parse(argc, argv, wish, error);
        }
        if (r == 0 && wish->teams.n)
                sl_lower_options_use_threads(&wish->lowering, largest_team(wish));
        if (r < 0)
                return r;
        wish->path = wish->model.path;
        return model_argument_settle("profile", &wish->model, &wish->given, wish->batch ? wish->batch : 1, &wish->lowering, error);
}

static int compile(
        const struct wish *wish, const struct sl_lower_options *lowering, struct sl_plan **ret_plan, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        int r = sl_compile(
                &(struct sl_compile_options){.model_path = wish->path, .lowering = lowering, .data_folders = &wish->given}, &fd,
                error);

        return r < 0 ? r : sl_plan_open(fd, ret_plan, error);
}

/* What leads and is no batch has a size like any other open dimension: that of the samples that are asked for. */
static int compile_for(const struct wish *wish, struct sl_plan **ret_plan, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_plan_free) struct sl_plan *plan = NULL;
        struct sl_lower_options lowering = wish->lowering;
        int r = compile(wish, &lowering, &plan, error);

        if (r < 0)
                return r;
        const struct sl_plan_info *info = sl_plan_info(plan);
        if (wish->batch <= 1 || !info->n_symbols) {
                *ret_plan = sl_take(plan);
                return 0;
        }
        for (uint32_t i = 0; i < info->n_symbols; i++)
                sl_dim_sizes_add(&lowering.shapes, info->symbols[i], strlen(info->symbols[i]), wish->batch);
        return compile(wish, &lowering, ret_plan, error);
}

/* ---- teams ---- */

/* The plan is that of `serve` on this machine: where steps are cut follows from what a core reaches. */
static void measure_core(struct sl_lower_options *lowering)
{
        const struct sl_backend *backend = sl_backend_find(sl_lower_options_backend(lowering));
        struct sl_target target;

        if (lowering->core_measured && !sl_lower_options_have_core(lowering) && backend && backend->planner->measure &&
                backend->planner->measure(&target) == 0)
                lowering->core = target.core;
}

static int model_teams(const struct wish *wish, const struct sl_plan *plan, const struct sl_node_profile *profile,
        struct sl_team_model **ret_model, struct team_report *report, struct sl_error *error)
{
        const struct sl_target target = sl_lower_options_target(&wish->lowering);
        struct thread_list sizes = wish->teams;

        report->profile = profile;
        report->barrier_ns = target.core.barrier * 1e9;
        report->shared = target.core.shared;
        thread_list_add(&sizes, 1);
        thread_list_add(&sizes, report->n_cores);
        return sl_team_model_new(plan, profile, &target.core, sizes.items, sizes.n, ret_model, error);
}

static int measure_teams(const struct wish *wish, const struct sl_device_let *cores, const struct sl_plan *plan,
        struct team_report *report, struct sl_error *error)
{
        const struct sl_team_setting setting = {
                .plan = plan, .batch = report->profile->batch, .threads = report->n_cores, .let = cores, .seconds = wish->seconds};
        struct sl_team_times times;
        int r = sl_team_measure(&setting, &times, error);

        if (r < 0)
                return r;
        report->alone_ns = times.alone_ns;
        report->team_ns = times.team_ns;
        report->singles_ns = times.singles_ns;
        report->n_singles = times.n_singles;
        return 0;
}

static int show_teams(
        const struct wish *wish, const struct sl_plan *plan, const struct sl_node_profile *profile, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_team_model_free) struct sl_team_model *model = NULL;
        SL_CLEANUP(sl_cleanup_sl_node_profile_free) struct sl_node_profile *together = NULL;
        struct team_report report = {.profile = profile};
        struct sl_device_let cores;
        int r = sl_device_let_parse("cpu", NULL, &cores, error);

        if (r < 0)
                return r;
        report.n_cores = cores.n_cores < SL_TEAM_MEMBERS_MAX ? cores.n_cores : SL_TEAM_MEMBERS_MAX;
        r = model_teams(wish, plan, profile, &model, &report, error);
        report.model = model;
        if (r == 0)
                r = sl_node_profile_by_team(plan, profile->batch, &cores, report.n_cores, wish->seconds, &together, error);
        report.together = together;
        if (r == 0)
                r = measure_teams(wish, &cores, plan, &report, error);
        if (r < 0)
                return r;
        if (wish->json)
                return team_print_json(&report, stdout);
        team_print_text(&report, stdout);
        return 0;
}

static int profile(const struct wish *wish, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_node_profile_free) struct sl_node_profile *measured = NULL;
        SL_CLEANUP(sl_cleanup_sl_plan_free) struct sl_plan *plan = NULL;
        int r = compile_for(wish, &plan, error);

        if (r < 0)
                return r;
        const struct sl_plan_info *info = sl_plan_info(plan);
        if (!info->batchable && wish->batch > 1 && info->inputs[0].shape.dims[0] == 1)
                fprintf(stderr, "starling profile: the model fixes the batch: a run is one sample\n");
        r = sl_node_profile_new(plan, wish->batch && info->batchable ? wish->batch : info->batches[info->n_batches - 1],
                wish->seconds, &measured, error);
        if (r == 0 && wish->teams.n && !wish->trace)
                return show_teams(wish, plan, measured, error);
        return r < 0 ? r : show(wish, measured, error);
}

static bool is_action(const char *word)
{
        static const char *const actions[] = {"list", "show", "export", "import", "diff"};

        for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++)
                if (strcmp(actions[i], word) == 0)
                        return true;
        return false;
}

int command_profile(int argc, char **argv)
{
        struct wish wish = {.seconds = 2};
        struct sl_error error = {""};
        int r;

        sl_lower_options_init(&wish.lowering);
        wish.lowering.batch_max = 1;
        if (argc > 1 && is_action(argv[1]))
                return become("starling-profile", argv);
        if (parse(argc, argv, &wish, &error) < 0)
                return error.text[0] ? complain(STATUS_USAGE, "profile", "%s", error.text) : complain_usage("profile");
        if (wish.workers)
                return become("starling-profile", argv);
        r = find_model(argc, argv, &wish, &error);
        if (r == 0) {
                if (wish.teams.n)
                        measure_core(&wish.lowering);
                r = profile(&wish, &error);
        }
        if (r == 0)
                return STATUS_OK;
        return complain_of("profile", wish.path, error.text[0] ? error.text : strerrordesc_np(-r));
}
