/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling doctor`: what of this host keeps a runtime from its work, and what could be better (runtime/doctor).
 */
#include "doctor.h"
#include "base/error.h"
#include "command.h"
#include "command_options.h"
#include "config.h"
#include "describe.h"
#include "probes.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPTIONS = OPTIONS_BEGIN, DOCTOR_OPTIONS(OPTION_ID) };

struct wish {
        const char *config, *root;
        bool json, quick;
        bool *only; /* [sl_doctor_checks()]; NULL: all */
};

/* "huge-pages,smt", in addition to what was asked for before. */
static int choose(struct wish *wish, const char *names)
{
        if (!wish->only)
                wish->only = calloc(sl_doctor_checks(), sizeof(*wish->only));
        if (!wish->only)
                return complain(-ENOMEM, "doctor", "out of memory");
        for (;;) {
                size_t bytes = strcspn(names, ",");
                int check = sl_doctor_find(names, bytes);

                if (check < 0)
                        return complain(-EINVAL, "doctor", "--only: no check \"%.*s\"; `starling help doctor` lists them",
                                (int)bytes, names);
                wish->only[check] = true;
                if (!names[bytes])
                        return 0;
                names += bytes + 1;
        }
}

/* Return: 0; -EINVAL, after a complaint or the usage. */
static int parse(int argc, char **argv, struct wish *wish)
{
        static const struct option options[] = {DOCTOR_OPTIONS(OPTION_GETOPT){0}};

        for (int option; (option = next_option(argc, argv, options)) != -1;) {
                if (option == OPTION_CONFIG)
                        wish->config = optarg;
                else if (option == OPTION_ROOT)
                        wish->root = optarg;
                else if (option == OPTION_JSON)
                        wish->json = true;
                else if (option == OPTION_QUICK)
                        wish->quick = true;
                else if (option != OPTION_ONLY)
                        return complain_usage("doctor"), -EINVAL;
                else if (choose(wish, optarg) < 0)
                        return -EINVAL;
        }
        if (optind != argc)
                return complain_usage("doctor"), -EINVAL;
        if (wish->root && access(wish->root, X_OK) < 0)
                return complain(-EINVAL, "doctor", "--root: \"%s\": %s", wish->root, strerrordesc_np(errno));
        return 0;
}

/* Columns of the verdict and of the check's name. */
#define VERDICT_COLUMNS 17
#define CHECK_COLUMNS   16

static void print_more(const char *what, const char *text)
{
        if (!*text)
                return;
        printf("%*s%s:", VERDICT_COLUMNS + CHECK_COLUMNS, "", what);
        describe_words(text, VERDICT_COLUMNS + CHECK_COLUMNS + strlen(what) + 1, VERDICT_COLUMNS + CHECK_COLUMNS + 2, stdout);
}

struct sum {
        uint32_t n[SL_VERDICT_WRONG + 1];
        json_t *checks; /* NULL: text */
};

static void print_finding(const struct sl_finding *finding)
{
        printf("%-*s%-*s", VERDICT_COLUMNS, sl_verdict_text(finding->verdict), CHECK_COLUMNS, finding->check);
        describe_words(finding->found, VERDICT_COLUMNS + CHECK_COLUMNS, VERDICT_COLUMNS + CHECK_COLUMNS, stdout);
        print_more("change", finding->change);
        print_more("gain", finding->gain);
}

static json_t *json_of(const struct sl_finding *finding)
{
        json_t *figures = json_object();

        for (uint32_t i = 0; i < finding->n_figures; i++)
                json_object_set_new(figures, finding->figures[i].name, json_real(finding->figures[i].value));
        return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "check", finding->check, "verdict", sl_verdict_word(finding->verdict),
                "found", finding->found, "change", finding->change, "gain", finding->gain, "figures", figures);
}

static void hear(void *context, const struct sl_finding *finding)
{
        struct sum *sum = context;

        sum->n[finding->verdict]++;
        if (sum->checks)
                json_array_append_new(sum->checks, json_of(finding));
        else
                print_finding(finding);
}

static void finish(const struct sum *sum, enum sl_verdict worst)
{
        if (!sum->checks) {
                printf("\n%u ok, %u could be better, %u wrong, %u cannot tell\n", sum->n[SL_VERDICT_OK], sum->n[SL_VERDICT_BETTER],
                        sum->n[SL_VERDICT_WRONG], sum->n[SL_VERDICT_UNKNOWN]);
                return;
        }
        json_t *all = json_pack(
                "{s:s, s:s, s:o}", "version", STARLING_TOOL_VERSION, "verdict", sl_verdict_word(worst), "checks", sum->checks);
        json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(4));
        putchar('\n');
        json_decref(all);
}

static int examine(const struct wish *wish, const struct sl_config *config)
{
        static const int statuses[] = {[SL_VERDICT_OK] = STATUS_OK,
                [SL_VERDICT_UNKNOWN] = STATUS_OK,
                [SL_VERDICT_BETTER] = STATUS_COULD_BE_BETTER,
                [SL_VERDICT_WRONG] = STATUS_WRONG};
        const struct sl_doctor_options options = {
                .root = wish->root ? wish->root : "",
                .probes = wish->root    ? &sl_probes_none
                          : wish->quick ? &sl_probes_quick
                                        : &sl_probes_live,
                .config = config,
                .configured = wish->config,
                .only = wish->only,
        };
        struct sum sum = {.checks = wish->json ? json_array() : NULL};
        enum sl_verdict worst = sl_doctor_run(&options, hear, &sum);

        finish(&sum, worst);
        return statuses[worst];
}

int command_doctor(int argc, char **argv)
{
        struct sl_error error = {""};
        struct sl_config *config;
        struct wish wish = {0};
        int status = STATUS_USAGE;

        if (parse(argc, argv, &wish) == 0) {
                if (sl_config_read(wish.config, &config, &error) < 0) {
                        complain(status, "doctor", "%s", error.text);
                } else {
                        status = examine(&wish, config);
                        sl_config_free(config);
                }
        }
        free(wish.only);
        return status;
}

void print_checks(void)
{
        printf("\nChecks:\n");
        for (uint32_t i = 0; i < sl_doctor_checks(); i++)
                printf("  %-*s%s\n", CHECK_COLUMNS, sl_doctor_check(i).name, sl_doctor_check(i).text);
}
