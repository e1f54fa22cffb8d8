/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix_file.h"
#include "base/error.h"
#include "base/value.h"
#include "costs.h"
#include "schema.h"
#include "yaml_file.h"
#include "yaml_text.h"

#include <stdlib.h>
#include <string.h>

#define KEY_BYTES 96

struct row_texts {
        char *device;
        char **batches;
        uint32_t batches_count;
};

struct texts {
        char **models;
        struct row_texts *rows;
        uint32_t models_count, rows_count;
};

static const cyaml_schema_field_t row_fields[] = {
        SL_TEXT_FIELD(struct row_texts, device),
        SL_LIST_FIELD(struct row_texts, batches),
        CYAML_FIELD_END,
};
static const cyaml_schema_value_t row_entry = {CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct row_texts, row_fields)};
static const cyaml_schema_field_t fields[] = {
        SL_LIST_FIELD(struct texts, models),
        CYAML_FIELD_SEQUENCE(
                "rows", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct texts, rows, &row_entry, 0, SL_COST_DEVICES_MAX),
        CYAML_FIELD_END,
};
static const cyaml_schema_value_t schema = {CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct texts, fields)};

static uint32_t name_find(char *const *names, uint32_t n, const char *name)
{
        for (uint32_t i = 0; i < n; i++)
                if (strcmp(names[i], name) == 0)
                        return i;
        return n;
}

static int row_take(
        const struct sl_yaml_file *yaml, const struct texts *texts, uint32_t i, struct sl_matrix_file *file, struct sl_error *error)
{
        const struct row_texts *row = &texts->rows[i];
        char key[KEY_BYTES], wish[SL_WISH_BYTES];
        uint64_t batch = 0;

        snprintf(key, sizeof(key), "rows.%u", i);
        if (!row->device)
                return sl_yaml_file_error(yaml, error, key, "device is missing");
        if (row->batches_count != texts->models_count)
                return sl_yaml_file_error(yaml, error, key, "%u batches for %u models", row->batches_count, texts->models_count);
        if (name_find(file->devices, i, row->device) < i)
                return sl_yaml_file_error(yaml, error, key, "\"%s\" is given twice", row->device);
        for (uint32_t m = 0; m < texts->models_count; m++) {
                if (sl_value_number(row->batches[m], 0, SL_COST_BATCH_MAX, &batch, wish) < 0)
                        return sl_yaml_file_error(yaml, error, key, "\"%s\" on \"%s\": \"%s\" is %s", texts->models[m], row->device,
                                row->batches[m], wish);
                *sl_matrix_entry(file->matrix, i, m) = (uint32_t)batch;
        }
        file->devices[i] = strdup(row->device);
        return file->devices[i] ? 0 : sl_error_set(error, ENOMEM, "allocation: out of memory");
}

static int models_take(
        const struct sl_yaml_file *yaml, const struct texts *texts, struct sl_matrix_file *file, struct sl_error *error)
{
        for (uint32_t m = 0; m < texts->models_count; m++) {
                if (name_find(file->models, m, texts->models[m]) < m)
                        return sl_yaml_file_error(yaml, error, "models", "\"%s\" is given twice", texts->models[m]);
                file->models[m] = strdup(texts->models[m]);
                if (!file->models[m])
                        return sl_error_set(error, ENOMEM, "allocation: out of memory");
        }
        return 0;
}

static int file_take(const struct sl_yaml_file *yaml, struct sl_matrix_file *file, struct sl_error *error)
{
        const struct texts *texts = sl_yaml_file_data(yaml);
        int r;

        if (!texts || !texts->models_count || !texts->rows_count)
                return sl_yaml_file_error(yaml, error, texts && texts->models_count ? "rows" : "models", "there are none");
        file->matrix = sl_matrix_new(texts->rows_count, texts->models_count);
        file->devices = calloc(texts->rows_count, sizeof(*file->devices));
        file->models = calloc(texts->models_count, sizeof(*file->models));
        if (!file->matrix || !file->devices || !file->models)
                return sl_error_set(error, ENOMEM, "allocation: out of memory");
        r = models_take(yaml, texts, file, error);
        for (uint32_t i = 0; i < texts->rows_count && r == 0; i++)
                r = row_take(yaml, texts, i, file, error);
        return r;
}

int sl_matrix_file_read(const char *path, struct sl_matrix_file **ret_file, struct sl_error *error)
{
        struct sl_yaml_file *yaml = NULL;
        struct sl_matrix_file *file = calloc(1, sizeof(*file));
        int r = file ? sl_yaml_file_open(path, &schema, &yaml, error) : sl_error_set(error, ENOMEM, "allocation: out of memory");

        if (r == 0)
                r = file_take(yaml, file, error);
        sl_yaml_file_free(yaml);
        if (r < 0) {
                sl_matrix_file_free(file);
                return r;
        }
        *ret_file = file;
        return 0;
}

struct sl_matrix_file *sl_matrix_file_free(struct sl_matrix_file *file)
{
        if (!file)
                return NULL;
        for (uint32_t d = 0; file->matrix && file->devices && d < file->matrix->n_devices; d++)
                free(file->devices[d]);
        for (uint32_t m = 0; file->matrix && file->models && m < file->matrix->n_models; m++)
                free(file->models[m]);
        free(file->devices);
        free(file->models);
        sl_matrix_free(file->matrix);
        free(file);
        return NULL;
}

static int entries_bind(
        const struct sl_matrix_file *file, const struct sl_costs *costs, struct sl_matrix *matrix, struct sl_error *error)
{
        for (uint32_t d = 0; d < file->matrix->n_devices; d++) {
                uint32_t device = sl_costs_find_device(costs, file->devices[d]);

                if (device == SL_COST_NONE)
                        return sl_error_set(error, ENOENT, "allocation: no device \"%s\" among the costs", file->devices[d]);
                for (uint32_t m = 0; m < file->matrix->n_models; m++) {
                        uint32_t model = sl_costs_find_model(costs, file->models[m]);

                        if (model == SL_COST_NONE)
                                return sl_error_set(error, ENOENT, "allocation: no model \"%s\" among the costs", file->models[m]);
                        *sl_matrix_entry(matrix, device, model) = sl_matrix_batch(file->matrix, d, m);
                }
        }
        return 0;
}

int sl_matrix_file_bind(
        const struct sl_matrix_file *file, const struct sl_costs *costs, struct sl_matrix **ret_matrix, struct sl_error *error)
{
        struct sl_matrix *matrix = sl_matrix_new(costs->n_devices, costs->n_models);
        int r = matrix ? entries_bind(file, costs, matrix, error) : sl_error_set(error, ENOMEM, "allocation: out of memory");

        if (r < 0) {
                sl_matrix_free(matrix);
                return r;
        }
        *ret_matrix = matrix;
        return 0;
}

static void write_row(FILE *stream, const struct sl_costs *costs, const struct sl_matrix *matrix, uint32_t device)
{
        bool used = false;

        for (uint32_t m = 0; m < matrix->n_models; m++)
                used = used || sl_matrix_batch(matrix, device, m);
        if (!used)
                return;
        fputs("  - {device: ", stream);
        sl_yaml_put_text(stream, costs->devices[device].name);
        for (uint32_t m = 0; m < matrix->n_models; m++)
                fprintf(stream, "%s%u", m ? ", " : ", batches: [", sl_matrix_batch(matrix, device, m));
        fputs("]}\n", stream);
}

int sl_matrix_file_write(FILE *stream, const struct sl_costs *costs, const struct sl_matrix *matrix)
{
        for (uint32_t m = 0; m < matrix->n_models; m++) {
                fputs(m ? ", " : "models: [", stream);
                sl_yaml_put_text(stream, costs->models[m].name);
        }
        fputs("]\nrows:\n", stream);
        for (uint32_t d = 0; d < matrix->n_devices; d++)
                write_row(stream, costs, matrix, d);
        return fflush(stream) == 0 && !ferror(stream) ? 0 : -EIO;
}

void sl_matrix_print(FILE *stream, const struct sl_matrix *matrix, const char *const *devices, const char *const *models)
{
        int width = 0;

        for (uint32_t d = 0; d < matrix->n_devices; d++)
                width = (int)strlen(devices[d]) > width ? (int)strlen(devices[d]) : width;
        fprintf(stream, "%*s", width, "");
        for (uint32_t m = 0; m < matrix->n_models; m++)
                fprintf(stream, "  %6s", models[m]);
        putc('\n', stream);
        for (uint32_t d = 0; d < matrix->n_devices; d++) {
                fprintf(stream, "%-*s", width, devices[d]);
                for (uint32_t m = 0; m < matrix->n_models; m++) {
                        int column = (int)strlen(models[m]) > 6 ? (int)strlen(models[m]) : 6;

                        if (sl_matrix_batch(matrix, d, m))
                                fprintf(stream, "  %*u", column, sl_matrix_batch(matrix, d, m));
                        else
                                fprintf(stream, "  %*s", column, "-");
                }
                putc('\n', stream);
        }
}
