/* SPDX-License-Identifier: Apache-2.0 */
#include "demands_file.h"
#include "base/error.h"
#include "base/value.h"
#include "costs.h"
#include "partition.h"
#include "schema.h"
#include "yaml_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define KEY_BYTES     96
#define MILLISECOND   1e6
#define OBJECTIVE_MAX ((double)SL_COST_NS_MAX / MILLISECOND)

struct model_texts {
        char *name, *rate, *objective_ms;
};

struct texts {
        struct model_texts *models;
        uint32_t models_count;
};

static const cyaml_schema_field_t model_fields[] = {
        SL_TEXT_FIELD(struct model_texts, name),
        SL_TEXT_FIELD(struct model_texts, rate),
        SL_TEXT_FIELD(struct model_texts, objective_ms),
        CYAML_FIELD_END,
};
static const cyaml_schema_value_t model_entry = {CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct model_texts, model_fields)};
static const cyaml_schema_field_t fields[] = {
        CYAML_FIELD_SEQUENCE(
                "models", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct texts, models, &model_entry, 0, SL_COST_MODELS_MAX),
        CYAML_FIELD_END,
};
static const cyaml_schema_value_t schema = {CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct texts, fields)};

static int take_real(const struct sl_yaml_file *file, uint32_t i, const char *member, const char *text, double min, double max,
        double *ret_value, struct sl_error *error)
{
        char key[KEY_BYTES], wish[SL_WISH_BYTES];

        snprintf(key, sizeof(key), "models.%u.%s", i, member);
        if (!text)
                return sl_yaml_file_error(file, error, key, "is missing");
        if (sl_value_real(text, min, max, ret_value, wish) == 0)
                return 0;
        return sl_yaml_file_error(file, error, key, "\"%s\" is %s", text, wish);
}

static int model_take(const struct sl_yaml_file *file, const struct sl_costs *costs, const struct model_texts *texts, uint32_t i,
        struct sl_partition_demand *demands, struct sl_error *error)
{
        uint32_t model = texts->name ? sl_costs_find_model(costs, texts->name) : SL_COST_NONE;
        char key[KEY_BYTES];
        double objective_ms = 0, rate = 0;

        snprintf(key, sizeof(key), "models.%u.name", i);
        if (model == SL_COST_NONE)
                return sl_yaml_file_error(
                        file, error, key, "no model of the costs is called \"%s\"", texts->name ? texts->name : "");
        if (demands[model].objective_ns)
                return sl_yaml_file_error(file, error, key, "\"%s\" is given twice", texts->name);
        int r = take_real(file, i, "rate", texts->rate, 0, SL_PARTITION_RATE_MAX, &rate, error);
        r = r < 0 ? r : take_real(file, i, "objective_ms", texts->objective_ms, 0.001, OBJECTIVE_MAX, &objective_ms, error);
        demands[model] = (struct sl_partition_demand){rate, (uint64_t)(objective_ms * MILLISECOND)};
        return r;
}

int sl_demands_file_read(
        const char *path, const struct sl_costs *costs, struct sl_partition_demand *ret_demands, struct sl_error *error)
{
        struct sl_yaml_file *file = NULL;
        int r = sl_yaml_file_open(path, &schema, &file, error);
        const struct texts *texts = r == 0 ? sl_yaml_file_data(file) : NULL;

        memset(ret_demands, 0, costs->n_models * sizeof(*ret_demands));
        for (uint32_t i = 0; texts && i < texts->models_count && r == 0; i++)
                r = model_take(file, costs, &texts->models[i], i, ret_demands, error);
        sl_yaml_file_free(file);
        return r;
}
