/* SPDX-License-Identifier: Apache-2.0 */
#include "ensemble_config.h"

#include "base/error.h"
#include "base/value.h"
#include "model_config.h"
#include "schema.h"
#include "yaml_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CLASSES_MAX 65536u
#define ROW_BYTES   (1u << 20)

/* A row of weights may be long. */
static const cyaml_schema_value_t row_entry = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, ROW_BYTES)};

static const cyaml_schema_field_t detection_fields[] = {
        SL_TEXT_FIELD(struct sl_detection_texts, boxes),
        SL_TEXT_FIELD(struct sl_detection_texts, scores),
        SL_TEXT_FIELD(struct sl_detection_texts, labels),
        SL_TEXT_FIELD(struct sl_detection_texts, count),
        SL_TEXT_FIELD(struct sl_detection_texts, overlap),
        SL_TEXT_FIELD(struct sl_detection_texts, score_min),
        SL_TEXT_FIELD(struct sl_detection_texts, sigma),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t until_fields[] = {
        SL_TEXT_FIELD(struct sl_until_texts, agree),
        SL_TEXT_FIELD(struct sl_until_texts, margin),
        CYAML_FIELD_END,
};

const cyaml_schema_field_t sl_ensemble_fields[] = {
        SL_LIST_FIELD(struct sl_ensemble_texts, members),
        SL_TEXT_FIELD(struct sl_ensemble_texts, rule),
        SL_TEXT_FIELD(struct sl_ensemble_texts, combiner),
        CYAML_FIELD_SEQUENCE(
                "weights", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct sl_ensemble_texts, weights, &row_entry, 0, 1024),
        SL_MAPPING_FIELD(struct sl_ensemble_texts, detection, detection_fields),
        SL_MAPPING_FIELD(struct sl_ensemble_texts, until, until_fields),
        SL_TEXT_FIELD(struct sl_ensemble_texts, quorum),
        CYAML_FIELD_END,
};

/* What the functions below share. */
struct reading {
        const struct sl_yaml_file *file;
        const struct sl_ensemble_texts *texts;
        struct sl_model_config *config;
        struct sl_error *error;
};

#define bad(reading, key, ...) sl_yaml_file_error((reading)->file, (reading)->error, "ensemble." key, __VA_ARGS__)

static int apply_members(const struct reading *reading)
{
        const struct sl_ensemble_texts *texts = reading->texts;
        struct sl_model_config *config = reading->config;
        uint32_t n = texts->members_count + (texts->combiner != NULL);
        const char *names[SL_MEMBERS_MAX + 1];
        char wish[SL_WISH_BYTES];

        if (texts->combiner && sl_value_model_version(texts->combiner, wish) < 0)
                return bad(reading, "combiner", "\"%s\" is %s", texts->combiner, wish);
        if (texts->combiner && n > SL_MEMBERS_MAX)
                return bad(reading, "members", "%u members and a combiner, the limit is %u together", texts->members_count,
                        SL_MEMBERS_MAX);
        if (texts->members_count < 1 || texts->members_count > SL_MEMBERS_MAX)
                return bad(reading, "members", "%u members, an ensemble has 1 to %u", texts->members_count, SL_MEMBERS_MAX);
        for (uint32_t i = 0; i < texts->members_count; i++)
                if (sl_value_model_version(texts->members[i], wish) < 0)
                        return bad(reading, "members", "\"%s\" is %s", texts->members[i], wish);
        sl_name_list_release(config->members);
        config->members = NULL;
        for (uint32_t i = 0; i < texts->members_count; i++)
                names[i] = texts->members[i];
        names[texts->members_count] = texts->combiner;
        if (sl_name_list_new(names, n, &config->members) < 0)
                return sl_error_set(reading->error, ENOMEM, "ensemble.members: no memory for %u names", texts->members_count);
        config->n_members = texts->members_count;
        config->is_ensemble = true;
        return 0;
}

static int check_combiner(const struct reading *reading)
{
        bool stacks = reading->config->rule == SL_RULE_STACKING;

        if (stacks && !reading->texts->combiner)
                return bad(reading, "combiner", "is missing: rule stacking wants a model over the predictions");
        if (!stacks && reading->texts->combiner)
                return bad(reading, "combiner", "belongs to rule stacking, the rule is %s", sl_rule_name(reading->config->rule));
        return 0;
}

static int apply_rule(const struct reading *reading)
{
        const char *text = reading->texts->rule;
        int rule = text ? sl_rule_find(text) : SL_RULE_MEAN;
        char names[256];
        size_t used = 0;

        if (rule >= 0) {
                reading->config->rule = (uint32_t)rule;
                return check_combiner(reading);
        }
        for (uint32_t i = 0; i < SL_RULE_COUNT; i++)
                used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "", sl_rule_name(i));
        return bad(reading, "rule", "\"%s\" is not one of %s", text, names);
}

/* ---- weights ---- */

static bool is_row(const char *text)
{
        return strchr(text, ',') != NULL;
}

static uint32_t count_numbers(const char *row)
{
        uint32_t n = 1;

        for (; *row; row++)
                n += *row == ',';
        return n;
}

/* In the place of what the configuration has: with room for weights of so many classes as the first row has. */
static int make_combining(const struct reading *reading)
{
        const struct sl_ensemble_texts *texts = reading->texts;
        struct sl_model_config *config = reading->config;
        uint32_t n_classes = texts->weights_count && is_row(texts->weights[0]) ? count_numbers(texts->weights[0]) : 0;

        if (n_classes && config->rule != SL_RULE_WEIGHTED_MEAN)
                return bad(reading, "weights", "for each class belong to rule weighted_mean, the rule is %s",
                        sl_rule_name(config->rule));
        if (n_classes > CLASSES_MAX)
                return bad(reading, "weights", "of %u classes, the limit is %u", n_classes, CLASSES_MAX);
        config->combining = sl_combining_release(config->combining);
        config->combining = sl_combining_new(config->n_members, n_classes);
        return config->combining ? 0 : sl_error_set(reading->error, ENOMEM, "ensemble: no memory for its rule");
}

static int read_row(const struct reading *reading, uint32_t member, float *ret_weights)
{
        const char *at = reading->texts->weights[member];
        char wish[SL_WISH_BYTES], number[64];

        for (uint32_t i = 0; at; i++) {
                size_t bytes;

                at += strspn(at, " ");
                bytes = strcspn(at, ", ");
                snprintf(number, sizeof(number), "%.*s", (int)(bytes < sizeof(number) ? bytes : sizeof(number) - 1), at);
                if (sl_value_weight(number, &ret_weights[i], wish) < 0)
                        return bad(reading, "weights", "\"%s\", of member %u and class %u, is %s", number, member, i, wish);
                at += bytes + strspn(at + bytes, " ");
                if (*at && *at != ',')
                        return bad(reading, "weights", "\"%.20s\" behind the weight of member %u and class %u: a comma is wanted",
                                at, member, i);
                at = *at ? at + 1 : NULL;
        }
        return 0;
}

static int apply_rows(const struct reading *reading)
{
        const struct sl_ensemble_texts *texts = reading->texts;
        uint32_t n = reading->config->n_members, n_classes = count_numbers(texts->weights[0]);
        int result = 0;

        for (uint32_t m = 0; m < n; m++)
                if (count_numbers(texts->weights[m]) != n_classes)
                        return bad(reading, "weights", "of member %u are for %u classes, those of member 0 for %u", m,
                                count_numbers(texts->weights[m]), n_classes);
        for (uint32_t m = 0; m < n && result == 0; m++)
                result = read_row(reading, m, reading->config->combining->class_weights + m * n_classes);
        for (uint32_t class = 0; class < n_classes && result == 0; class ++) {
                float sum = 0;

                for (uint32_t m = 0; m < n; m++)
                        sum += reading->config->combining->class_weights[m * n_classes + class];
                if (!(sum > 0))
                        result = bad(reading, "weights", "all are 0 of class %u", class);
        }
        return result;
}

static int apply_weights(const struct reading *reading)
{
        const struct sl_ensemble_texts *texts = reading->texts;
        struct sl_model_config *config = reading->config;
        char wish[SL_WISH_BYTES];
        float sum = 0;

        if (config->rule != SL_RULE_WEIGHTED_MEAN && !sl_rule_is_of_boxes(config->rule))
                return texts->weights_count ? bad(reading, "weights", "belong to weighted_mean and rules of boxes, the rule is %s",
                                                      sl_rule_name(config->rule))
                                            : 0;
        config->has_weights = texts->weights_count > 0;
        if (!texts->weights_count && config->rule != SL_RULE_WEIGHTED_MEAN)
                return 0;
        if (texts->weights_count != config->n_members)
                return bad(reading, "weights", "%u weights for %u members", texts->weights_count, config->n_members);
        if (is_row(texts->weights[0]))
                return apply_rows(reading);
        for (uint32_t i = 0; i < texts->weights_count; i++) {
                if (sl_value_weight(texts->weights[i], &config->weights[i], wish) < 0)
                        return bad(reading, "weights", "\"%s\" is %s", texts->weights[i], wish);
                sum += config->weights[i];
        }
        return sum > 0 ? 0 : bad(reading, "weights", "all are 0");
}

/* ---- boxes ---- */

static int apply_output(const struct reading *reading, enum sl_box_output output, const char *name)
{
        if (name && (!*name || strlen(name) > SL_NAME_MAX))
                return bad(reading, "detection", "the name of the %s has %zu bytes, it has 1 to %d", sl_box_output_name(output),
                        strlen(name), SL_NAME_MAX);
        strcpy(reading->config->combining->outputs[output], name ? name : "");
        return 0;
}

#define apply_limit(reading, key, normal, least, most)                                                                             \
        ({                                                                                                                         \
                char sl_wish[SL_WISH_BYTES];                                                                                       \
                const char *sl_text = (reading)->texts->detection ? (reading)->texts->detection->key : NULL;                       \
                double sl_real = (normal);                                                                                         \
                int sl_r = sl_text ? sl_value_real(sl_text, least, most, &sl_real, sl_wish) : 0;                                   \
                (reading)->config->combining->key = (float)sl_real;                                                                \
                sl_r < 0 ? bad(reading, "detection." #key, "\"%s\" is %s", sl_text, sl_wish) : 0;                                  \
        })

static int apply_detection(const struct reading *reading)
{
        static const struct sl_detection_texts none;
        const struct sl_detection_texts *texts = reading->texts->detection ? reading->texts->detection : &none;
        uint32_t rule = reading->config->rule;
        int result;

        if (!sl_rule_is_of_boxes(rule))
                return reading->texts->detection
                               ? bad(reading, "detection", "belongs to rules of boxes, the rule is %s", sl_rule_name(rule))
                               : 0;
        if (texts->sigma && rule != SL_RULE_SOFT_NMS)
                return bad(reading, "detection.sigma", "belongs to rule soft_nms, the rule is %s", sl_rule_name(rule));
        if (texts->overlap && rule == SL_RULE_SOFT_NMS)
                return bad(reading, "detection.overlap", "is of no use to rule soft_nms, which has sigma");
        result = apply_output(reading, SL_BOX_BOXES, texts->boxes);
        if (result == 0)
                result = apply_output(reading, SL_BOX_SCORES, texts->scores);
        if (result == 0)
                result = apply_output(reading, SL_BOX_LABELS, texts->labels);
        if (result == 0)
                result = apply_output(reading, SL_BOX_COUNT, texts->count);
        if (result == 0)
                result = apply_limit(reading, overlap, rule == SL_RULE_NMS ? 0.5 : 0.55, 0, 1);
        if (result == 0)
                result = apply_limit(reading, score_min, rule == SL_RULE_SOFT_NMS ? 0.001 : 0, 0, 1);
        if (result == 0)
                result = apply_limit(reading, sigma, 0.5, 0.001, 100);
        return result;
}

/* ---- members that may be missing ---- */

static bool has_classes(enum sl_rule rule)
{
        return rule == SL_RULE_MEAN || rule == SL_RULE_WEIGHTED_MEAN || rule == SL_RULE_MAJORITY_VOTE ||
               rule == SL_RULE_GEOMETRIC_MEAN || rule == SL_RULE_MAXIMUM;
}

static int apply_until(const struct reading *reading)
{
        const struct sl_until_texts *until = reading->texts->until;
        const struct sl_model_config *config = reading->config;
        char wish[SL_WISH_BYTES];
        uint64_t agree = 0;
        double margin = 0;

        if (!until)
                return 0;
        if (!!until->agree + !!until->margin != 1)
                return bad(reading, "until", "wants exactly one of agree, margin");
        if (!has_classes(config->rule))
                return bad(reading, "until", "belongs to rules that combine classes, the rule is %s", sl_rule_name(config->rule));
        if (until->margin && config->rule == SL_RULE_MAJORITY_VOTE)
                return bad(reading, "until.margin", "is of no use to rule majority_vote, where one vote leads by 1: agree is");
        if (until->agree && sl_value_number(until->agree, 2, SL_MEMBERS_MAX, &agree, wish) < 0)
                return bad(reading, "until.agree", "\"%s\" is %s", until->agree, wish);
        if (agree > config->n_members)
                return bad(reading, "until.agree", "%u members have to agree, the ensemble has %u", (uint32_t)agree,
                        config->n_members);
        if (until->margin && (sl_value_real(until->margin, 0, 1, &margin, wish) < 0 || !((float)margin > 0)))
                return bad(reading, "until.margin", "\"%s\" is not a number above 0, up to 1", until->margin);
        config->combining->agree = (uint32_t)agree;
        config->combining->margin = (float)margin;
        return 0;
}

static int apply_quorum(const struct reading *reading)
{
        const struct sl_model_config *config = reading->config;
        char wish[SL_WISH_BYTES];
        uint64_t quorum;

        if (!reading->texts->quorum)
                return 0;
        if (config->rule == SL_RULE_NONE || config->rule == SL_RULE_STACKING)
                return bad(
                        reading, "quorum", "is of no use to rule %s, which takes the outputs of all", sl_rule_name(config->rule));
        if (sl_rule_is_of_boxes(config->rule)) /* the dispatcher ends what is late, and does not fuse boxes */
                return bad(reading, "quorum", "is not to be had with rule %s", sl_rule_name(config->rule));
        if (sl_value_number(reading->texts->quorum, 1, config->n_members, &quorum, wish) < 0)
                return bad(reading, "quorum", "\"%s\" is %s, which are the members", reading->texts->quorum, wish);
        config->combining->quorum = (uint32_t)quorum;
        return 0;
}

int sl_ensemble_config_apply(const struct sl_yaml_file *file, const struct sl_ensemble_texts *texts, struct sl_model_config *config,
        struct sl_error *error)
{
        const struct reading reading = {file, texts, config, error};
        int result = apply_members(&reading);

        if (result == 0)
                result = apply_rule(&reading);
        if (result == 0)
                result = make_combining(&reading);
        if (result == 0)
                result = apply_detection(&reading);
        if (result == 0)
                result = apply_weights(&reading);
        if (result == 0)
                result = apply_until(&reading);
        return result < 0 ? result : apply_quorum(&reading);
}
