/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse_print.h"

#include "base/processor.h"
#include "plan.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* ---- sums ---- */

static uint64_t single_weights(const struct fuse_group *group, const struct fuse_trial *trial)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < trial->n_lanes; i++) {
                const struct sl_plan_info *info = sl_plan_info(group->members[trial->first + i]->plan);

                bytes += info->weights_bytes + info->shared_bytes;
        }
        return bytes;
}

static const struct fuse_trial *trial_of(const struct fuse_group *group, uint32_t first, uint32_t n_lanes)
{
        for (uint32_t i = 0; i < group->n_trials; i++)
                if (group->trials[i].first == first && group->trials[i].n_lanes == n_lanes)
                        return &group->trials[i];
        return NULL;
}

/* ---- text ---- */

static void print_names(const struct fuse_group *group, uint32_t first, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                printf("%s%s", i ? ", " : "", group->members[first + i]->name);
}

static void print_table(const struct sl_fuse_table *table)
{
        printf("      %5s %5s  %12s %12s %12s\n", "batch", "lanes", "separate us", "one job us", "merged us");
        for (uint32_t r = 0; r < table->n_rows; r++)
                for (uint32_t i = 0; i < table->n_occupancies; i++)
                        printf("      %5u %5u  %12.2f %12.2f %12.2f\n", table->rows[r].batch, table->occupied[i],
                                1e6 * table->rows[r].separate[i], 1e6 * table->rows[r].one_job[i], 1e6 * table->rows[r].merged[i]);
        for (uint32_t r = 0; r < table->n_rows; r++) {
                uint32_t least = sl_fuse_least_lanes(table, table->rows[r].batch);

                if (least == SL_FUSE_NEVER)
                        printf("      batch %u: never merged\n", table->rows[r].batch);
                else
                        printf("      batch %u: merged from %u occupied lanes on\n", table->rows[r].batch, least);
        }
        printf("      outputs differ by %.1e of their largest value at most\n", table->difference);
}

static void print_notes(const char *notes)
{
        for (const char *line = notes; *line;) {
                size_t bytes = strcspn(line, "\n");

                printf("      %.*s\n", (int)bytes, line);
                line += bytes + (line[bytes] == '\n');
        }
}

static void print_trial(const struct fuse_group *group, const struct fuse_trial *trial, bool explain)
{
        printf("  %u lanes (", trial->n_lanes);
        print_names(group, trial->first, trial->n_lanes < 4 ? trial->n_lanes : 3);
        printf("%s): ", trial->n_lanes < 4 ? "" : ", ...");
        if (trial->status < 0)
                printf("%s\n", trial->cause);
        else
                printf("%u of %u common nodes merged, %.2f x one job with all lanes at batch %u\n", trial->n_merged,
                        trial->n_common, sl_fuse_gain(&trial->table), trial->table.rows[0].batch);
        if (!explain)
                return;
        print_notes(trial->notes);
        if (trial->status == 0)
                print_table(&trial->table);
}

static void print_block(const struct fuse_group *group, uint32_t first, uint32_t n_lanes)
{
        const struct fuse_trial *trial = trial_of(group, first, n_lanes);

        printf("  merged: ");
        print_names(group, first, n_lanes);
        printf("\n");
        if (trial)
                printf("    costs %" PRIu64 " bytes of weights beside %" PRIu64 " of the single plans, of which it uses %" PRIu64
                       ", and a workspace of %" PRIu64 "\n",
                        trial->weights_bytes, single_weights(group, trial), trial->member_bytes, trial->workspace_bytes);
}

static void print_group(const struct fuse_group *group, uint32_t number, bool explain)
{
        uint32_t n_merged = 0;

        printf("group %u: %u models of one architecture: ", number, group->n_members);
        print_names(group, 0, group->n_members);
        printf("\n");
        if (group->n_left_out)
                printf("  %u more are left out: at most %d are one bundle\n", group->n_left_out, SL_FUSE_LANES_MAX);
        for (uint32_t i = 0; i < group->n_trials; i++)
                print_trial(group, &group->trials[i], explain);
        for (uint32_t i = 0; i < group->n_blocks; i++)
                print_block(group, group->blocks[i].first, group->blocks[i].n_lanes);
        for (uint32_t i = 0; i < group->n_blocks; i++)
                n_merged += group->blocks[i].n_lanes;
        if (!group->n_blocks)
                printf("  nothing is merged%s%s\n", group->text[0] ? ": " : "", group->text);
        else if (group->text[0] && n_merged < group->n_members)
                printf("  not merged: %s\n", group->text);
}

static bool is_alone(const struct fuse_models *models, uint32_t number)
{
        for (uint32_t i = 0; i < models->n; i++)
                if (i != number && models->all[i].group == models->all[number].group)
                        return false;
        return true;
}

void fuse_print_text(const struct fuse_models *models, const struct fuse_group *groups, uint32_t n_groups, bool explain)
{
        char processor[SL_PROCESSOR_BYTES];

        sl_processor_name(processor);
        printf("%u models on %s\n", models->n, processor);
        for (uint32_t i = 0; i < n_groups; i++)
                print_group(&groups[i], i + 1, explain);
        for (uint32_t i = 0; i < models->n; i++)
                if (models->all[i].reason[0])
                        printf("alone: %s: %s\n", models->all[i].name, models->all[i].reason);
                else if (is_alone(models, i))
                        printf("alone: %s: no other model has its architecture and its options\n", models->all[i].name);
}

/* ---- JSON ---- */

static json_t *numbers(const double *values, uint32_t n)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < n; i++)
                json_array_append_new(array, json_real(values[i]));
        return array;
}

static json_t *table_json(const struct sl_fuse_table *table)
{
        json_t *rows = json_array(), *occupied = json_array();

        for (uint32_t i = 0; i < table->n_occupancies; i++)
                json_array_append_new(occupied, json_integer(table->occupied[i]));
        for (uint32_t r = 0; r < table->n_rows; r++) {
                const struct sl_fuse_row *row = &table->rows[r];
                uint32_t least = sl_fuse_least_lanes(table, row->batch);

                json_array_append_new(rows, json_pack("{s:i, s:i, s:o, s:o, s:o, s:o}", "batch", (int)row->batch, "turns",
                                                    (int)row->n_turns, "merged_seconds", numbers(row->merged, table->n_occupancies),
                                                    "separate_seconds", numbers(row->separate, table->n_occupancies),
                                                    "one_job_seconds", numbers(row->one_job, table->n_occupancies), "least_lanes",
                                                    least == SL_FUSE_NEVER ? json_null() : json_integer(least)));
        }
        return json_pack("{s:i, s:o, s:o, s:f}", "lanes", (int)table->n_lanes, "occupied", occupied, "rows", rows, "difference",
                table->difference);
}

static json_t *lines_json(const char *text)
{
        json_t *array = json_array();

        for (const char *line = text; *line;) {
                size_t bytes = strcspn(line, "\n");

                json_array_append_new(array, json_stringn(line, bytes));
                line += bytes + (line[bytes] == '\n');
        }
        return array;
}

static json_t *trial_json(const struct fuse_group *group, const struct fuse_trial *trial)
{
        json_t *object = json_pack("{s:i, s:i, s:b, s:b, s:o}", "first", (int)trial->first, "lanes", (int)trial->n_lanes, "merged",
                trial->status == 0, "compiled", trial->compiled, "notes", lines_json(trial->notes));

        if (trial->status < 0) {
                json_object_set_new(object, "cause", json_string(trial->cause));
                return object;
        }
        json_object_set_new(object, "gain", json_real(sl_fuse_gain(&trial->table)));
        json_object_set_new(object, "common_nodes", json_integer(trial->n_common));
        json_object_set_new(object, "merged_nodes", json_integer(trial->n_merged));
        json_object_set_new(object, "weights_bytes", json_integer((json_int_t)trial->weights_bytes));
        json_object_set_new(object, "member_bytes", json_integer((json_int_t)trial->member_bytes));
        json_object_set_new(object, "stacked_bytes", json_integer((json_int_t)trial->stacked_bytes));
        json_object_set_new(object, "workspace_bytes", json_integer((json_int_t)trial->workspace_bytes));
        json_object_set_new(object, "single_weights_bytes", json_integer((json_int_t)single_weights(group, trial)));
        json_object_set_new(object, "table", table_json(&trial->table));
        return object;
}

static json_t *group_json(const struct fuse_group *group)
{
        json_t *models = json_array(), *trials = json_array(), *blocks = json_array();

        for (uint32_t i = 0; i < group->n_members; i++)
                json_array_append_new(models, json_string(group->members[i]->name));
        for (uint32_t i = 0; i < group->n_trials; i++)
                json_array_append_new(trials, trial_json(group, &group->trials[i]));
        for (uint32_t i = 0; i < group->n_blocks; i++)
                json_array_append_new(blocks,
                        json_pack("{s:i, s:i}", "first", (int)group->blocks[i].first, "lanes", (int)group->blocks[i].n_lanes));
        return json_pack("{s:o, s:o, s:o, s:o}", "models", models, "trials", trials, "blocks", blocks, "cause",
                group->text[0] ? json_string(group->text) : json_null());
}

static json_t *alone_json(const struct fuse_models *models)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < models->n; i++)
                if (models->all[i].reason[0] || is_alone(models, i))
                        json_array_append_new(
                                array, json_pack("{s:s, s:s}", "model", models->all[i].name, "cause",
                                               models->all[i].reason[0] ? models->all[i].reason
                                                                        : "no other model has its architecture and its options"));
        return array;
}

void fuse_print_json(const struct fuse_models *models, const struct fuse_group *groups, uint32_t n_groups)
{
        char processor[SL_PROCESSOR_BYTES];
        json_t *array = json_array(), *object;

        sl_processor_name(processor);
        for (uint32_t i = 0; i < n_groups; i++)
                json_array_append_new(array, group_json(&groups[i]));
        object = json_pack("{s:s, s:o, s:o}", "processor", processor, "groups", array, "alone", alone_json(models));
        json_dumpf(object, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(object);
}
