/* SPDX-License-Identifier: Apache-2.0 */
#include "allocation_file.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/value.h"
#include "costs.h"
#include "schema.h"
#include "yaml_file.h"
#include "yaml_text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

SL_DEFINE_CLEANUP(struct sl_costs *, sl_costs_free)

#define KEY_BYTES  96
#define CELL_BYTES (7 * (int)SL_ALLOCATION_CELL_WORKERS_MAX) /* "65536+" each, terminated */

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

/* "8", "1+1+2+4"; "0" is nobody. */
static int cell_take(struct sl_allocation *allocation, uint32_t device, uint32_t model, char *text, char *ret_wish)
{
        char *rest = text, *item;
        uint64_t batch;

        for (uint32_t n = 0; (item = strsep(&rest, "+")); n++) {
                if (sl_value_number(item, n || rest ? 1 : 0, SL_COST_BATCH_MAX, &batch, ret_wish) < 0)
                        return -EINVAL;
                if (n == SL_ALLOCATION_CELL_WORKERS_MAX || allocation->n_workers == SL_ALLOCATION_WORKERS_MAX) {
                        snprintf(ret_wish, SL_WISH_BYTES, "more than %u workers in a cell, or %u in all",
                                SL_ALLOCATION_CELL_WORKERS_MAX, SL_ALLOCATION_WORKERS_MAX);
                        return -EINVAL;
                }
                if (batch)
                        allocation->workers[allocation->n_workers++] =
                                (struct sl_allocation_worker){device, model, (uint32_t)batch};
        }
        return 0;
}

static int row_take(const struct sl_yaml_file *yaml, const struct texts *texts, uint32_t i, struct sl_allocation *allocation,
        struct sl_error *error)
{
        const struct row_texts *row = &texts->rows[i];
        char key[KEY_BYTES], wish[SL_WISH_BYTES], cell[CELL_BYTES];

        snprintf(key, sizeof(key), "rows.%u", i);
        if (!row->device)
                return sl_yaml_file_error(yaml, error, key, "device is missing");
        if (row->batches_count != texts->models_count)
                return sl_yaml_file_error(yaml, error, key, "%u batches for %u models", row->batches_count, texts->models_count);
        if (name_find(allocation->devices, i, row->device) < i)
                return sl_yaml_file_error(yaml, error, key, "\"%s\" is given twice", row->device);
        for (uint32_t m = 0; m < texts->models_count; m++) {
                if (snprintf(cell, sizeof(cell), "%s", row->batches[m]) >= (int)sizeof(cell))
                        return sl_yaml_file_error(
                                yaml, error, key, "\"%s\": a cell of more than %d bytes", texts->models[m], CELL_BYTES - 1);
                if (cell_take(allocation, i, m, cell, wish) < 0)
                        return sl_yaml_file_error(yaml, error, key, "\"%s\" on \"%s\": \"%s\" is %s", texts->models[m], row->device,
                                row->batches[m], wish);
        }
        allocation->devices[i] = strdup(row->device);
        return allocation->devices[i] ? 0 : sl_error_set(error, ENOMEM, "allocation: out of memory");
}

static int models_take(
        const struct sl_yaml_file *yaml, const struct texts *texts, struct sl_allocation *allocation, struct sl_error *error)
{
        for (uint32_t m = 0; m < texts->models_count; m++) {
                if (name_find(allocation->models, m, texts->models[m]) < m)
                        return sl_yaml_file_error(yaml, error, "models", "\"%s\" is given twice", texts->models[m]);
                allocation->models[m] = strdup(texts->models[m]);
                if (!allocation->models[m])
                        return sl_error_set(error, ENOMEM, "allocation: out of memory");
        }
        return 0;
}

/* Nothing in it yet; room for @n_workers. */
static struct sl_allocation *allocation_new(uint32_t n_devices, uint32_t n_models, uint32_t n_workers)
{
        struct sl_allocation *allocation = calloc(1, sizeof(*allocation));

        if (!allocation)
                return NULL;
        allocation->n_devices = n_devices;
        allocation->n_models = n_models;
        allocation->devices = calloc(n_devices, sizeof(*allocation->devices));
        allocation->models = calloc(n_models, sizeof(*allocation->models));
        allocation->workers = calloc(n_workers, sizeof(*allocation->workers));
        if (allocation->devices && allocation->models && allocation->workers)
                return allocation;
        return sl_allocation_free(allocation);
}

static int file_take(const struct sl_yaml_file *yaml, struct sl_allocation **ret_allocation, struct sl_error *error)
{
        const struct texts *texts = sl_yaml_file_data(yaml);
        struct sl_allocation *allocation;
        int r;

        if (!texts || !texts->models_count || !texts->rows_count)
                return sl_yaml_file_error(yaml, error, texts && texts->models_count ? "rows" : "models", "there are none");
        allocation = allocation_new(texts->rows_count, texts->models_count, SL_ALLOCATION_WORKERS_MAX);
        if (!allocation)
                return sl_error_set(error, ENOMEM, "allocation: out of memory");
        r = models_take(yaml, texts, allocation, error);
        for (uint32_t i = 0; i < texts->rows_count && r == 0; i++)
                r = row_take(yaml, texts, i, allocation, error);
        if (r < 0)
                sl_allocation_free(allocation);
        else
                *ret_allocation = allocation;
        return r;
}

int sl_allocation_read(const char *path, struct sl_allocation **ret_allocation, struct sl_error *error)
{
        struct sl_yaml_file *yaml;
        int r = sl_yaml_file_open(path, &schema, &yaml, error);

        if (r < 0)
                return r;
        r = file_take(yaml, ret_allocation, error);
        sl_yaml_file_free(yaml);
        return r;
}

struct sl_allocation *sl_allocation_free(struct sl_allocation *allocation)
{
        if (!allocation)
                return NULL;
        for (uint32_t d = 0; allocation->devices && d < allocation->n_devices; d++)
                free(allocation->devices[d]);
        for (uint32_t m = 0; allocation->models && m < allocation->n_models; m++)
                free(allocation->models[m]);
        free(allocation->devices);
        free(allocation->models);
        free(allocation->workers);
        free(allocation);
        return NULL;
}

static bool names_copy(const struct sl_costs *costs, struct sl_allocation *allocation)
{
        bool there = true;

        for (uint32_t d = 0; d < costs->n_devices; d++)
                there &= (allocation->devices[d] = strdup(costs->devices[d].name)) != NULL;
        for (uint32_t m = 0; m < costs->n_models; m++)
                there &= (allocation->models[m] = strdup(costs->models[m].name)) != NULL;
        return there;
}

int sl_allocation_of(const struct sl_costs *costs, const struct sl_matrix *matrix, struct sl_allocation **ret_allocation)
{
        struct sl_allocation *allocation = allocation_new(costs->n_devices, costs->n_models, costs->n_devices * costs->n_models);

        if (!allocation || !names_copy(costs, allocation)) {
                sl_allocation_free(allocation);
                return -ENOMEM;
        }
        for (uint32_t d = 0; d < matrix->n_devices; d++)
                for (uint32_t m = 0; m < matrix->n_models; m++)
                        if (sl_matrix_batch(matrix, d, m))
                                allocation->workers[allocation->n_workers++] =
                                        (struct sl_allocation_worker){d, m, sl_matrix_batch(matrix, d, m)};
        *ret_allocation = allocation;
        return 0;
}

/* How many workers of its cell go before worker @at. */
static uint32_t place_in_cell(const struct sl_allocation *allocation, uint32_t at)
{
        const struct sl_allocation_worker *worker = &allocation->workers[at];
        uint32_t n = 0;

        while (at > n && allocation->workers[at - n - 1].device == worker->device &&
                allocation->workers[at - n - 1].model == worker->model)
                n++;
        return n;
}

uint32_t sl_allocation_depth(const struct sl_allocation *allocation)
{
        uint32_t depth = 0;

        for (uint32_t i = 0; i < allocation->n_workers; i++) {
                uint32_t place = place_in_cell(allocation, i) + 1;

                depth = place > depth ? place : depth;
        }
        return depth;
}

/* "NAME.2" is the second device like NAME, where there is none of that name. 1: the one of the costs; 0: there is no NAME. */
static uint32_t device_find(const struct sl_costs *costs, const char *name, uint32_t *ret_row)
{
        const char *dot = strrchr(name, '.');
        char wish[SL_WISH_BYTES], like[SL_COST_NAME_BYTES];
        uint64_t number = 1;

        *ret_row = sl_costs_find_device(costs, name);
        if (*ret_row != SL_COST_NONE || !dot || sl_value_number(dot + 1, 2, SL_COST_DEVICES_MAX, &number, wish) < 0)
                return *ret_row != SL_COST_NONE;
        snprintf(like, sizeof(like), "%.*s", (int)(dot - name), name);
        *ret_row = sl_costs_find_device(costs, like);
        return *ret_row != SL_COST_NONE ? (uint32_t)number : 0;
}

static int device_error(const char *name, struct sl_error *error)
{
        return sl_error_set(error, ENOENT, "allocation: no device \"%s\" among the costs", name);
}

/* The costs' rows, and behind them as many more of each as the allocation has names for. @ret_rows: SL_COST_DEVICES_MAX. */
static int rows_find(const struct sl_allocation *allocation, const struct sl_costs *costs, uint32_t *ret_rows, uint32_t *ret_n,
        struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) uint32_t *times = calloc(costs->n_devices, sizeof(*times));
        uint32_t row, n = 0;

        if (!times)
                return sl_error_set(error, ENOMEM, "allocation: out of memory");
        for (uint32_t d = 0; d < allocation->n_devices; d++) {
                uint32_t number = device_find(costs, allocation->devices[d], &row);

                if (!number)
                        return device_error(allocation->devices[d], error);
                times[row] = number > times[row] ? number : times[row];
        }
        for (uint32_t d = 0; d < costs->n_devices; d++)
                ret_rows[n++] = d;
        for (uint32_t d = 0; d < costs->n_devices; d++)
                for (uint32_t i = 1; i < times[d]; i++) {
                        if (n == SL_COST_DEVICES_MAX)
                                return sl_error_set(error, E2BIG, "allocation: more than %u devices", SL_COST_DEVICES_MAX);
                        ret_rows[n++] = d;
                }
        *ret_n = n;
        return 0;
}

/* The costs of the devices and models that the allocation names. */
static int costs_find(
        const struct sl_allocation *allocation, const struct sl_costs *costs, struct sl_costs **ret_costs, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) uint32_t *rows = calloc(SL_COST_DEVICES_MAX, sizeof(*rows));
        SL_CLEANUP(sl_cleanup_free) uint32_t *columns = calloc(allocation->n_models, sizeof(*columns));
        uint32_t n = 0;
        int r = rows && columns ? 0 : sl_error_set(error, ENOMEM, "allocation: out of memory");

        for (uint32_t m = 0; m < allocation->n_models && r == 0; m++) {
                columns[m] = sl_costs_find_model(costs, allocation->models[m]);
                if (columns[m] == SL_COST_NONE)
                        r = sl_error_set(error, ENOENT, "allocation: no model \"%s\" among the costs", allocation->models[m]);
        }
        r = r < 0 ? r : rows_find(allocation, costs, rows, &n, error);
        return r < 0 ? r : sl_costs_select(costs, rows, n, columns, allocation->n_models, ret_costs, error);
}

/* The costs' rows, and behind them those once more that the @depth-th workers of cells need. */
static int rows_repeat(const struct sl_costs *costs, uint32_t depth, struct sl_costs **ret_costs, struct sl_error *error)
{
        uint32_t n = costs->n_devices * depth;
        SL_CLEANUP(sl_cleanup_free) uint32_t *rows = calloc(n, sizeof(*rows));
        SL_CLEANUP(sl_cleanup_free) uint32_t *columns = calloc(costs->n_models, sizeof(*columns));
        int r;

        if (!rows || !columns)
                return sl_error_set(error, ENOMEM, "allocation: out of memory");
        for (uint32_t i = 0; i < n; i++)
                rows[i] = i % costs->n_devices;
        for (uint32_t m = 0; m < costs->n_models; m++)
                columns[m] = m;
        r = sl_costs_select(costs, rows, n, columns, costs->n_models, ret_costs, error);
        for (uint32_t i = costs->n_devices; r == 0 && i < n; i++)
                (*ret_costs)->devices[i].memory_of = costs->devices[rows[i]].memory_of;
        return r;
}

int sl_allocation_bind(const struct sl_allocation *allocation, const struct sl_costs *costs, struct sl_costs **ret_costs,
        struct sl_matrix **ret_matrix, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_costs_free) struct sl_costs *named = NULL;
        SL_CLEANUP(sl_cleanup_sl_costs_free) struct sl_costs *made = NULL;
        uint32_t depth = sl_allocation_depth(allocation);
        struct sl_matrix *matrix;
        int r = costs_find(allocation, costs, &named, error);

        r = r < 0 ? r : rows_repeat(named, depth ? depth : 1, &made, error);
        if (r < 0)
                return r;
        matrix = sl_matrix_new(made->n_devices, made->n_models);
        if (!matrix)
                return sl_error_set(error, ENOMEM, "allocation: out of memory");
        for (uint32_t i = 0; i < allocation->n_workers; i++) {
                const struct sl_allocation_worker *worker = &allocation->workers[i];
                uint32_t row = sl_costs_find_device(named, allocation->devices[worker->device]);

                if (row == SL_COST_NONE) {
                        sl_matrix_free(matrix);
                        return device_error(allocation->devices[worker->device], error);
                }
                *sl_matrix_entry(matrix, row + place_in_cell(allocation, i) * named->n_devices, worker->model) = worker->batch;
        }
        *ret_matrix = matrix;
        *ret_costs = sl_take(made);
        return 0;
}

static bool is_in_cell(const struct sl_allocation *allocation, uint32_t at, uint32_t device, uint32_t model)
{
        return at < allocation->n_workers && allocation->workers[at].device == device && allocation->workers[at].model == model;
}

/* Its workers are next to each other, from *@at on, which goes behind them. Returns "" where there is none, "8", or "1+1+2". */
static const char *cell_text(const struct sl_allocation *allocation, uint32_t device, uint32_t model, uint32_t *at, char *ret_text)
{
        int used = 0;

        ret_text[0] = 0;
        for (; is_in_cell(allocation, *at, device, model) && used < CELL_BYTES; ++*at)
                used += snprintf(ret_text + used, (size_t)(CELL_BYTES - used), used ? "+%u" : "%u", allocation->workers[*at].batch);
        return ret_text;
}

int sl_allocation_write(FILE *stream, const struct sl_allocation *allocation)
{
        char cell[CELL_BYTES];
        uint32_t at = 0;

        for (uint32_t m = 0; m < allocation->n_models; m++) {
                fputs(m ? ", " : "models: [", stream);
                sl_yaml_put_text(stream, allocation->models[m]);
        }
        fputs("]\nrows:\n", stream);
        while (at < allocation->n_workers) {
                uint32_t d = allocation->workers[at].device;

                fputs("  - {device: ", stream);
                sl_yaml_put_text(stream, allocation->devices[d]);
                for (uint32_t m = 0; m < allocation->n_models; m++) {
                        fputs(m ? ", " : ", batches: [", stream);
                        fputs(*cell_text(allocation, d, m, &at, cell) ? cell : "0", stream);
                }
                fputs("]}\n", stream);
        }
        return fflush(stream) == 0 && !ferror(stream) ? 0 : -EIO;
}

static int longest(char *const *names, uint32_t n)
{
        int width = 0;

        for (uint32_t i = 0; i < n; i++)
                width = (int)strlen(names[i]) > width ? (int)strlen(names[i]) : width;
        return width;
}

void sl_allocation_print(FILE *stream, const struct sl_allocation *allocation)
{
        int width = longest(allocation->devices, allocation->n_devices);
        char cell[CELL_BYTES];
        uint32_t at = 0;

        fprintf(stream, "%*s", width, "");
        for (uint32_t m = 0; m < allocation->n_models; m++)
                fprintf(stream, "  %6s", allocation->models[m]);
        putc('\n', stream);
        for (uint32_t d = 0; d < allocation->n_devices; d++) {
                fprintf(stream, "%-*s", width, allocation->devices[d]);
                for (uint32_t m = 0; m < allocation->n_models; m++) {
                        int column = (int)strlen(allocation->models[m]) > 6 ? (int)strlen(allocation->models[m]) : 6;

                        fprintf(stream, "  %*s", column, *cell_text(allocation, d, m, &at, cell) ? cell : "-");
                }
                putc('\n', stream);
        }
}
