/* SPDX-License-Identifier: Apache-2.0 */
#include "costs_file.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/utf8.h"
#include "base/value.h"
#include "costs.h"
#include "schema.h"
#include "yaml_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define KEY_BYTES 96
#define LONGEST   (SL_COST_NAME_BYTES - 1) /* bytes of a name */
#define COUNTED   (LONGEST - 10)           /* of one that a number follows */

struct class_texts {
        char *name, *kind, *units, *copy_engines, *beside;
        char **sizes, **interference;
        uint32_t sizes_count, interference_count;
};

struct device_texts {
        char *name, *class, *memory, *memory_of, *count;
};

struct model_texts {
        char *name, *weights;
};

struct cost_texts {
        char *model, *class, *size, *source;
        char **latency_ns, **transfer_ns, **workspace;
        uint32_t latency_ns_count, transfer_ns_count, workspace_count;
};

struct use_texts {
        char *model, *class;
        char **l2, **memory;
        uint32_t l2_count, memory_count;
};

struct pair_texts {
        char *model, *beside, *class, *slowdown;
};

struct texts {
        char **batches;
        struct class_texts *classes;
        struct device_texts *devices;
        struct model_texts *models;
        struct cost_texts *costs;
        struct use_texts *uses;
        struct pair_texts *pairs;
        uint32_t batches_count, classes_count, devices_count, models_count, costs_count, uses_count, pairs_count;
};

/* clang-format off */
static const cyaml_schema_field_t class_fields[] = {SL_TEXT_FIELD(struct class_texts, name), SL_TEXT_FIELD(struct class_texts, kind),
        SL_TEXT_FIELD(struct class_texts, units), SL_TEXT_FIELD(struct class_texts, copy_engines),
        SL_TEXT_FIELD(struct class_texts, beside), SL_LIST_FIELD(struct class_texts, sizes),
        SL_LIST_FIELD(struct class_texts, interference), CYAML_FIELD_END};
static const cyaml_schema_field_t device_fields[] = {SL_TEXT_FIELD(struct device_texts, name),
        SL_TEXT_FIELD(struct device_texts, class), SL_TEXT_FIELD(struct device_texts, memory),
        SL_TEXT_FIELD(struct device_texts, memory_of), SL_TEXT_FIELD(struct device_texts, count), CYAML_FIELD_END};
static const cyaml_schema_field_t model_fields[] = {
        SL_TEXT_FIELD(struct model_texts, name), SL_TEXT_FIELD(struct model_texts, weights), CYAML_FIELD_END};
static const cyaml_schema_field_t cost_fields[] = {SL_TEXT_FIELD(struct cost_texts, model), SL_TEXT_FIELD(struct cost_texts, class),
        SL_TEXT_FIELD(struct cost_texts, size), SL_TEXT_FIELD(struct cost_texts, source), SL_LIST_FIELD(struct cost_texts, latency_ns),
        SL_LIST_FIELD(struct cost_texts, transfer_ns), SL_LIST_FIELD(struct cost_texts, workspace), CYAML_FIELD_END};
static const cyaml_schema_field_t use_fields[] = {SL_TEXT_FIELD(struct use_texts, model), SL_TEXT_FIELD(struct use_texts, class),
        SL_LIST_FIELD(struct use_texts, l2), SL_LIST_FIELD(struct use_texts, memory), CYAML_FIELD_END};
static const cyaml_schema_field_t pair_fields[] = {SL_TEXT_FIELD(struct pair_texts, model), SL_TEXT_FIELD(struct pair_texts, beside),
        SL_TEXT_FIELD(struct pair_texts, class), SL_TEXT_FIELD(struct pair_texts, slowdown), CYAML_FIELD_END};
/* clang-format on */

static const cyaml_schema_value_t class_entry = {CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct class_texts, class_fields)};
static const cyaml_schema_value_t device_entry = {CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct device_texts, device_fields)};
static const cyaml_schema_value_t model_entry = {CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct model_texts, model_fields)};
static const cyaml_schema_value_t cost_entry = {CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct cost_texts, cost_fields)};
static const cyaml_schema_value_t use_entry = {CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct use_texts, use_fields)};
static const cyaml_schema_value_t pair_entry = {CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct pair_texts, pair_fields)};

#define ENTRIES(member, entry)                                                                                                     \
        CYAML_FIELD_SEQUENCE(#member, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct texts, member, &entry, 0, CYAML_UNLIMITED)

static const cyaml_schema_field_t fields[] = {
        SL_LIST_FIELD(struct texts, batches),
        ENTRIES(classes, class_entry),
        ENTRIES(devices, device_entry),
        ENTRIES(models, model_entry),
        ENTRIES(costs, cost_entry),
        ENTRIES(uses, use_entry),
        ENTRIES(pairs, pair_entry),
        CYAML_FIELD_END,
};
static const cyaml_schema_value_t schema = {CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct texts, fields)};

struct reading {
        struct sl_yaml_file *file;
        const struct texts *texts;
        struct sl_costs *costs;
        struct sl_error *error;
};

__attribute__((format(printf, 3, 4))) static int key_error(const struct reading *reading, const char *key, const char *format, ...)
{
        struct sl_error text;
        va_list args;

        va_start(args, format);
        sl_error_print(&text, format, args);
        va_end(args);
        return sl_yaml_file_error(reading->file, reading->error, key, "%s", text.text);
}

/* A number, of bytes where @bytes; NULL leaves *@ret_value as it is. */
static int take_number(const struct reading *reading, const char *key, const char *text, bool bytes, uint64_t min, uint64_t max,
        uint64_t *ret_value)
{
        char wish[SL_WISH_BYTES];
        int r = 0;

        if (text)
                r = bytes ? sl_value_bytes(text, min, max, ret_value, wish) : sl_value_number(text, min, max, ret_value, wish);
        return r < 0 ? key_error(reading, key, "\"%s\" is %s", text, wish) : 0;
}

static int take_u32(
        const struct reading *reading, const char *key, const char *text, uint32_t min, uint32_t max, uint32_t *ret_value)
{
        uint64_t value = *ret_value;
        int r = take_number(reading, key, text, false, min, max, &value);

        *ret_value = (uint32_t)value;
        return r;
}

static int take_real(const struct reading *reading, const char *key, const char *text, double min, double max, double *ret_value)
{
        char wish[SL_WISH_BYTES];

        if (!text || sl_value_real(text, min, max, ret_value, wish) == 0)
                return 0;
        return key_error(reading, key, "\"%s\" is %s", text, wish);
}

static int take_choice(
        const struct reading *reading, const char *key, const char *text, const char *const *names, uint32_t n, uint64_t *ret_index)
{
        char wish[SL_WISH_BYTES];

        if (!text)
                return key_error(reading, key, "is missing");
        return sl_value_choice(text, names, n, ret_index, wish) < 0 ? key_error(reading, key, "\"%s\" is %s", text, wish) : 0;
}

static int take_name(const struct reading *reading, const char *key, const char *text, char *ret_name)
{
        if (!text || !*text || strlen(text) > LONGEST)
                return key_error(reading, key, "a name of 1 to %d bytes", LONGEST);
        strcpy(ret_name, text);
        return 0;
}

typedef uint32_t find_function(const struct sl_costs *costs, const char *name);

static int take_reference(
        const struct reading *reading, const char *key, const char *text, find_function *find, uint32_t *ret_index)
{
        if (!text)
                return key_error(reading, key, "is missing");
        *ret_index = find(reading->costs, text);
        return *ret_index == SL_COST_NONE ? key_error(reading, key, "nothing of this file is called \"%s\"", text) : 0;
}

static const char *key_at(char *key, const char *list, uint32_t i, const char *member)
{
        snprintf(key, KEY_BYTES, "%s.%u.%s", list, i, member);
        return key;
}

static int batches_take(const struct reading *reading)
{
        char key[KEY_BYTES];
        int r = 0;

        for (uint32_t i = 0; i < reading->texts->batches_count && r == 0; i++) {
                snprintf(key, sizeof(key), "batches.%u", i);
                r = take_u32(reading, key, reading->texts->batches[i], 1, SL_COST_BATCH_MAX, &reading->costs->batches[i]);
        }
        return r;
}

/* Sizes ascend, and are smaller than the device: sl_costs_check(). */
static int sizes_take(const struct reading *reading, uint32_t i, struct sl_cost_class *class)
{
        const struct class_texts *texts = &reading->texts->classes[i];
        char key[KEY_BYTES];
        int r = 0;

        class->n_sizes = texts->sizes_count;
        for (uint32_t k = 0; k < texts->sizes_count && r == 0; k++)
                r = take_u32(reading, key_at(key, "classes", i, "sizes"), texts->sizes[k], 1, 1u << 20, &class->sizes[k]);
        if (r == 0 && texts->interference_count && texts->interference_count != 5)
                r = key_error(reading, key_at(key, "classes", i, "interference"), "%u coefficients, 5 are wanted",
                        texts->interference_count);
        for (uint32_t k = 0; k < texts->interference_count && r == 0; k++)
                r = take_real(reading, key_at(key, "classes", i, "interference"), texts->interference[k], -SL_COST_PAIR_MAX,
                        SL_COST_PAIR_MAX, &class->interference[k]);
        return r;
}

static int class_take(const struct reading *reading, uint32_t i)
{
        static const char *const kinds[] = {[SL_DEVICE_CPU] = "cpu", [SL_DEVICE_GPU] = "gpu"};
        const struct class_texts *texts = &reading->texts->classes[i];
        struct sl_cost_class *class = &reading->costs->classes[i];
        char key[KEY_BYTES];
        uint64_t kind = 0;
        int r = take_name(reading, key_at(key, "classes", i, "name"), texts->name, class->name);

        r = r < 0 ? r : take_choice(reading, key_at(key, "classes", i, "kind"), texts->kind, kinds, 2, &kind);
        r = r < 0 ? r : take_u32(reading, key_at(key, "classes", i, "units"), texts->units, 0, 1u << 20, &class->units);
        r = r < 0 ? r
                  : take_u32(reading, key_at(key, "classes", i, "copy_engines"), texts->copy_engines, 0, 64, &class->copy_engines);
        r = r < 0 ? r
                  : take_real(
                            reading, key_at(key, "classes", i, "beside"), texts->beside, 1, SL_COST_PAIR_MAX, &class->pair_default);
        r = r < 0 ? r : sizes_take(reading, i, class);
        class->kind = (enum sl_device_kind)kind;
        return r;
}

static int count_of(const struct reading *reading, uint32_t i, uint32_t *ret_count)
{
        char key[KEY_BYTES];

        *ret_count = 1;
        return take_u32(
                reading, key_at(key, "devices", i, "count"), reading->texts->devices[i].count, 1, SL_COST_DEVICES_MAX, ret_count);
}

/* Rows from @row on. */
static int device_take(const struct reading *reading, uint32_t i, uint32_t *row)
{
        const struct device_texts *texts = &reading->texts->devices[i];
        struct sl_cost_device first = {.memory_bytes = 0};
        uint32_t count = 1;
        char key[KEY_BYTES];
        int r = take_name(reading, key_at(key, "devices", i, "name"), texts->name, first.name);

        r = r < 0 ? r : count_of(reading, i, &count);
        r = r < 0 ? r
                  : take_reference(
                            reading, key_at(key, "devices", i, "class"), texts->class, sl_costs_find_class, &first.class_index);
        r = r < 0 ? r
                  : take_number(reading, key_at(key, "devices", i, "memory"), texts->memory, true, 0, SL_COST_BYTES_MAX,
                            &first.memory_bytes);
        if (r == 0 && !texts->memory == !texts->memory_of)
                r = key_error(reading, key_at(key, "devices", i, "memory"), "one of memory and memory_of is wanted");
        if (r == 0 && texts->count && strlen(first.name) > COUNTED)
                r = key_error(reading, key_at(key, "devices", i, "name"), "a name of 1 to %d bytes, as a number follows", COUNTED);
        for (uint32_t n = 0; n < count && r == 0; n++, ++*row) {
                struct sl_cost_device *device = &reading->costs->devices[*row];

                first.memory_of = *row;
                *device = first;
                if (texts->count)
                        snprintf(device->name, sizeof(device->name), "%.*s%u", (int)sl_utf8_head(first.name, COUNTED), first.name,
                                n + 1);
        }
        return r;
}

/* Devices that draw on others, when all have names. */
static int memory_of_take(const struct reading *reading)
{
        char key[KEY_BYTES];
        int r = 0;

        for (uint32_t i = 0, row = 0, count; i < reading->texts->devices_count && r == 0; i++, row += count) {
                const char *text = reading->texts->devices[i].memory_of;

                r = count_of(reading, i, &count);
                for (uint32_t n = 0; n < count && text && r == 0; n++)
                        r = take_reference(reading, key_at(key, "devices", i, "memory_of"), text, sl_costs_find_device,
                                &reading->costs->devices[row + n].memory_of);
        }
        return r;
}

static int model_take(const struct reading *reading, uint32_t i)
{
        const struct model_texts *texts = &reading->texts->models[i];
        struct sl_cost_model *model = &reading->costs->models[i];
        char key[KEY_BYTES];
        int r = take_name(reading, key_at(key, "models", i, "name"), texts->name, model->name);

        return r < 0 ? r
                     : take_number(reading, key_at(key, "models", i, "weights"), texts->weights, true, 0, SL_COST_BYTES_MAX,
                               &model->weights_bytes);
}

static int required_check(const struct reading *reading, const char *list, uint32_t i, const char *member, const void *text)
{
        char key[KEY_BYTES];

        return text ? 0 : key_error(reading, key_at(key, list, i, member), "is missing");
}

/* One list of a row of costs: an entry for each batch size, or none. */
static int list_check(const struct reading *reading, const char *list, uint32_t i, const char *member, uint32_t n)
{
        char key[KEY_BYTES];

        if (n == 0 || n == reading->costs->n_batches)
                return 0;
        return key_error(reading, key_at(key, list, i, member), "%u entries for %u batch sizes", n, reading->costs->n_batches);
}

static int cell_take(const struct reading *reading, uint32_t i, uint32_t b, struct sl_cost_cell *cell)
{
        const struct cost_texts *texts = &reading->texts->costs[i];
        const char *transfer = texts->transfer_ns_count ? texts->transfer_ns[b] : NULL;
        const char *workspace = texts->workspace_count ? texts->workspace[b] : NULL;
        char key[KEY_BYTES];
        int r = take_number(
                reading, key_at(key, "costs", i, "latency_ns"), texts->latency_ns[b], false, 0, SL_COST_NS_MAX, &cell->latency_ns);

        r = r < 0 ? r
                  : take_number(reading, key_at(key, "costs", i, "transfer_ns"), transfer, false, 0, SL_COST_NS_MAX,
                            &cell->transfer_ns);
        return r < 0 ? r
                     : take_number(reading, key_at(key, "costs", i, "workspace"), workspace, true, 0, SL_COST_BYTES_MAX,
                               &cell->workspace_bytes);
}

/* The index of a row's size among its class's; without one that of the whole device. */
static int size_take(const struct reading *reading, uint32_t i, uint32_t class_index, uint32_t *ret_size)
{
        const struct sl_cost_class *class = &reading->costs->classes[class_index];
        const char *text = reading->texts->costs[i].size;
        uint32_t units = 0;
        char key[KEY_BYTES];
        int r = take_u32(reading, key_at(key, "costs", i, "size"), text, 1, 1u << 20, &units);

        *ret_size = class->n_sizes;
        if (r < 0 || !text || units == class->units)
                return r;
        for (*ret_size = 0; *ret_size < class->n_sizes; ++*ret_size)
                if (class->sizes[*ret_size] == units)
                        return 0;
        return key_error(reading, key, "%u is no size of class \"%s\"", units, class->name);
}

static int cost_take(const struct reading *reading, uint32_t i)
{
        static const char *const sources[] = {"measured", "published", "derived"};
        const struct cost_texts *texts = &reading->texts->costs[i];
        uint32_t class_index = 0, model = 0, size = 0;
        uint64_t source = 0;
        char key[KEY_BYTES];
        int r = take_reference(reading, key_at(key, "costs", i, "model"), texts->model, sl_costs_find_model, &model);

        r = r < 0 ? r : take_reference(reading, key_at(key, "costs", i, "class"), texts->class, sl_costs_find_class, &class_index);
        r = r < 0 ? r : size_take(reading, i, class_index, &size);
        r = r < 0 ? r : take_choice(reading, key_at(key, "costs", i, "source"), texts->source, sources, 3, &source);
        r = r < 0 ? r : required_check(reading, "costs", i, "latency_ns", texts->latency_ns_count ? texts->latency_ns : NULL);
        r = r < 0 ? r : list_check(reading, "costs", i, "latency_ns", texts->latency_ns_count);
        r = r < 0 ? r : list_check(reading, "costs", i, "transfer_ns", texts->transfer_ns_count);
        r = r < 0 ? r : list_check(reading, "costs", i, "workspace", texts->workspace_count);
        for (uint32_t b = 0; b < texts->latency_ns_count && r == 0; b++) {
                struct sl_cost_cell *cell = sl_costs_size_cell(reading->costs, class_index, size, model, b);

                r = cell->source ? key_error(reading, key_at(key, "costs", i, "model"), "\"%s\" on \"%s\" is given twice",
                                           texts->model, texts->class)
                                 : cell_take(reading, i, b, cell);
                cell->source = (enum sl_cost_source)(SL_COST_MEASURED + source);
        }
        return r;
}

static int use_take(const struct reading *reading, uint32_t i)
{
        const struct use_texts *texts = &reading->texts->uses[i];
        uint32_t class_index = 0, model = 0;
        char key[KEY_BYTES];
        int r = take_reference(reading, key_at(key, "uses", i, "model"), texts->model, sl_costs_find_model, &model);

        r = r < 0 ? r : take_reference(reading, key_at(key, "uses", i, "class"), texts->class, sl_costs_find_class, &class_index);
        r = r < 0 ? r : list_check(reading, "uses", i, "l2", texts->l2_count);
        r = r < 0 ? r : list_check(reading, "uses", i, "memory", texts->memory_count);
        for (uint32_t b = 0; b < texts->l2_count && r == 0; b++)
                r = take_real(reading, key_at(key, "uses", i, "l2"), texts->l2[b], 0, 1,
                        &sl_costs_cell(reading->costs, class_index, model, b)->l2_use);
        for (uint32_t b = 0; b < texts->memory_count && r == 0; b++)
                r = take_real(reading, key_at(key, "uses", i, "memory"), texts->memory[b], 0, 1,
                        &sl_costs_cell(reading->costs, class_index, model, b)->memory_use);
        return r;
}

static int pair_take(const struct reading *reading, uint32_t i)
{
        const struct pair_texts *texts = &reading->texts->pairs[i];
        uint32_t class_index = 0, model = 0, beside = 0;
        char key[KEY_BYTES];
        int r = take_reference(reading, key_at(key, "pairs", i, "model"), texts->model, sl_costs_find_model, &model);

        r = r < 0 ? r : take_reference(reading, key_at(key, "pairs", i, "beside"), texts->beside, sl_costs_find_model, &beside);
        r = r < 0 ? r : take_reference(reading, key_at(key, "pairs", i, "class"), texts->class, sl_costs_find_class, &class_index);
        r = r < 0 ? r : required_check(reading, "pairs", i, "slowdown", texts->slowdown);
        return r < 0 ? r
                     : take_real(reading, key_at(key, "pairs", i, "slowdown"), texts->slowdown, 0, SL_COST_PAIR_MAX,
                               sl_costs_pair(reading->costs, class_index, model, beside));
}

static int rows_count(const struct reading *reading, uint32_t *ret_rows)
{
        uint64_t rows = 0;
        uint32_t count;
        int r = 0;

        for (uint32_t i = 0; i < reading->texts->devices_count && r == 0; i++) {
                r = count_of(reading, i, &count);
                rows += count;
        }
        *ret_rows = rows < UINT32_MAX ? (uint32_t)rows : UINT32_MAX;
        return r;
}

static int parts_take(struct reading *reading)
{
        const struct texts *texts = reading->texts;
        uint32_t row = 0;
        int r = batches_take(reading);

        for (uint32_t i = 0; i < texts->classes_count && r == 0; i++)
                r = class_take(reading, i);
        for (uint32_t i = 0; i < texts->devices_count && r == 0; i++)
                r = device_take(reading, i, &row);
        r = r < 0 ? r : memory_of_take(reading);
        for (uint32_t i = 0; i < texts->models_count && r == 0; i++)
                r = model_take(reading, i);
        for (uint32_t i = 0; i < texts->costs_count && r == 0; i++)
                r = cost_take(reading, i);
        for (uint32_t i = 0; i < texts->uses_count && r == 0; i++)
                r = use_take(reading, i);
        for (uint32_t i = 0; i < texts->pairs_count && r == 0; i++)
                r = pair_take(reading, i);
        return r;
}

/* The most that a class has. */
static uint32_t sizes_count(const struct texts *texts)
{
        uint32_t most = 0;

        for (uint32_t i = 0; i < texts->classes_count; i++)
                most = texts->classes[i].sizes_count > most ? texts->classes[i].sizes_count : most;
        return most;
}

static int costs_take(struct reading *reading, const char *path)
{
        static const struct texts none = {.batches = NULL};
        uint32_t rows;

        reading->texts = sl_yaml_file_data(reading->file);
        if (!reading->texts)
                reading->texts = &none;
        int r = rows_count(reading, &rows);
        if (r < 0)
                return r;
        r = sl_costs_new_sized(reading->texts->classes_count, rows, reading->texts->models_count, reading->texts->batches_count,
                sizes_count(reading->texts), &reading->costs, reading->error);
        if (r < 0)
                return sl_error_prefix(reading->error, r, "%s", path);
        r = parts_take(reading);
        if (r < 0)
                return r;
        r = sl_costs_check(reading->costs, reading->error);
        return r < 0 ? sl_error_prefix(reading->error, r, "%s", path) : 0;
}

int sl_costs_file_read(const char *path, struct sl_costs **ret_costs, struct sl_error *error)
{
        struct reading reading = {.error = error};
        int r = sl_yaml_file_open(path, &schema, &reading.file, error);

        if (r == 0)
                r = costs_take(&reading, path);
        sl_yaml_file_free(reading.file);
        if (r < 0) {
                sl_costs_free(reading.costs);
                return r;
        }
        *ret_costs = reading.costs;
        return 0;
}
