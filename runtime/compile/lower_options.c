/* SPDX-License-Identifier: Apache-2.0 */
#include "lower_options.h"

#include "base/error.h"
#include "base/value.h"
#include "pass.h"
#include "team.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { NUMBER, BYTES, REAL, FLAG, BACKEND, TUNE, PRECISION, WEIGHTS, OPTIONALS, ANY_SIZE, PASSES, SHAPES, CORE, GPU, N_KINDS };

struct row {
        const char *name;
        enum kind kind;
        size_t offset;
        const char *text; /* of the default */
        uint64_t least, most;
};

static const struct row rows[SL_LOWER_OPTION_COUNT] = {
#define X(name, kind, text, least, most) {#name, kind, offsetof(struct sl_lower_options, name), text, least, most},
        SL_LOWER_OPTIONS(X)
#undef X
};

static const char *const backends[] = {"cpu", "ref", "cuda"};
static const char *const tunes[] = {[SL_TUNE_OFF] = "off", [SL_TUNE_QUICK] = "quick", [SL_TUNE_FULL] = "full"};
static const char *const precisions[] = {[SL_PRECISION_FP32] = "fp32", [SL_PRECISION_BF16] = "bf16", [SL_PRECISION_INT8] = "int8"};
static const char *const weights[] = {[SL_WEIGHTS_FP32] = "fp32", [SL_WEIGHTS_F16] = "f16", [SL_WEIGHTS_BF16] = "bf16"};
static const char *const optionals[] = {[SL_OPTIONALS_AUTO] = "auto", [SL_OPTIONALS_GIVEN] = "true", [SL_OPTIONALS_OFF] = "false"};
static const char *const any_sizes[] = {[SL_ANY_SIZE_AUTO] = "auto", [SL_ANY_SIZE_ONLY] = "true", [SL_ANY_SIZE_OFF] = "false"};
static const char *const passes[] = {
#define X(phase, id, name, function) name,
        SL_PASSES(X)
#undef X
};

static_assert(SL_DIM_SIZES_TEXT_MAX <= SL_LOWER_OPTION_TEXT_BYTES, "all sizes of open dimensions fit into the text of an option");
static_assert(SL_CORE_FIGURES_TEXT_BYTES <= SL_LOWER_OPTION_TEXT_BYTES, "all figures fit into the text of an option");
static_assert(SL_CUDA_FIGURES_TEXT_BYTES <= SL_LOWER_OPTION_TEXT_BYTES, "the figures of a GPU fit into the text of an option");
static_assert(SL_PASS_COUNT <= 32, "the passes fit into the bits of one number");

struct names {
        const char *const *names;
        uint32_t n;
};

/* Of the kinds that are choices. */
static const struct names choices[N_KINDS] = {
        [BACKEND] = {backends, sizeof(backends) / sizeof(*backends)},
        [TUNE] = {tunes, sizeof(tunes) / sizeof(*tunes)},
        [PRECISION] = {precisions, sizeof(precisions) / sizeof(*precisions)},
        [OPTIONALS] = {optionals, sizeof(optionals) / sizeof(*optionals)},
        [ANY_SIZE] = {any_sizes, sizeof(any_sizes) / sizeof(*any_sizes)},
        [WEIGHTS] = {weights, sizeof(weights) / sizeof(*weights)},
};

const char *sl_lower_option_name(enum sl_lower_option option)
{
        return rows[option].name;
}

enum sl_lower_option sl_lower_option_find(const char *name)
{
        uint32_t option = 0;

        while (option < SL_LOWER_OPTION_COUNT && strcmp(rows[option].name, name))
                option++;
        return (enum sl_lower_option)option;
}

/* Names with commas between them; the last of two equal ones changes nothing. */
static int parse_passes(const char *text, uint32_t *ret_bits, char *ret_wish)
{
        uint32_t bits = 0;

        for (const char *at = text; *at;) {
                char name[64];
                size_t length = strcspn(at, ",");
                uint64_t pass;

                snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : sizeof(name) - 1), at);
                if (sl_value_choice(name, passes, SL_PASS_COUNT, &pass, ret_wish) < 0)
                        return -EINVAL;
                bits |= 1u << pass;
                at += length + (at[length] == ',');
        }
        *ret_bits = bits;
        return 0;
}

static int parse_shapes(const char *text, struct sl_dim_sizes *ret_sizes, char *ret_wish)
{
        if (sl_dim_sizes_parse(text, ret_sizes, NULL) == 0)
                return 0;
        snprintf(ret_wish, SL_WISH_BYTES, "not a list of at most %d sizes, such as sequence=128,height=224", SL_SYMBOLS_MAX);
        return -EINVAL;
}

static int parse_core(const char *text, struct sl_core_figures *ret_figures, char *ret_wish)
{
        if (sl_core_figures_parse(text, ret_figures))
                return 0;
        snprintf(ret_wish, SL_WISH_BYTES, "not a list of figures above 0, such as flops=1.2e11,far=3e10");
        return -EINVAL;
}

/* Zeros: nobody has said which. */
#define GPU_OF_THE_DEVICE "auto"

/* The figures themselves, as their text goes to the compiler's process, or a file that has them. */
static int parse_gpu(const char *text, struct sl_cuda_figures *ret_figures, char *ret_wish)
{
        char held[SL_LOWER_OPTION_TEXT_BYTES] = "";
        FILE *file;

        if (!strcmp(text, GPU_OF_THE_DEVICE)) {
                *ret_figures = (struct sl_cuda_figures){0};
                return 0;
        }
        file = strchr(text, '{') ? NULL : fopen(text, "re");
        if (file) {
                held[fread(held, 1, sizeof(held) - 1, file)] = 0;
                fclose(file);
        }
        if (sl_cuda_figures_parse(file ? held : text, ret_figures))
                return 0;
        snprintf(ret_wish, SL_WISH_BYTES, "not auto, h100, h200 or a file with all figures of a GPU, as JSON");
        return -EINVAL;
}

static int parse_small(const struct row *row, const char *text, uint32_t *ret_number, char *ret_wish)
{
        uint64_t number;
        int r = choices[row->kind].names ? sl_value_choice(text, choices[row->kind].names, choices[row->kind].n, &number, ret_wish)
                                         : sl_value_number(text, row->least, row->most, &number, ret_wish);

        if (r == 0)
                *ret_number = (uint32_t)number;
        return r;
}

int sl_lower_options_set(struct sl_lower_options *options, enum sl_lower_option option, const char *text, char *ret_wish)
{
        const struct row *row = &rows[option];
        void *field = (char *)options + row->offset;

        switch (row->kind) {
        case BYTES:
                return sl_value_bytes(text, row->least, row->most, field, ret_wish);
        case REAL:
                return sl_value_real(text, (double)row->least, (double)row->most, field, ret_wish);
        case FLAG:
                return sl_value_flag(text, field, ret_wish);
        case PASSES:
                return parse_passes(text, field, ret_wish);
        case SHAPES:
                return parse_shapes(text, field, ret_wish);
        case CORE:
                return parse_core(text, field, ret_wish);
        case GPU:
                return parse_gpu(text, field, ret_wish);
        default:
                return parse_small(row, text, field, ret_wish);
        }
}

void sl_lower_options_init(struct sl_lower_options *options)
{
        char wish[SL_WISH_BYTES];

        memset(options, 0, sizeof(*options));
        for (uint32_t i = 0; i < SL_LOWER_OPTION_COUNT; i++)
                sl_lower_options_set(options, (enum sl_lower_option)i, rows[i].text, wish);
}

int sl_lower_options_parse(struct sl_lower_options *options, const char *assignment, struct sl_error *error)
{
        size_t length = strcspn(assignment, "=");
        char name[64], wish[SL_WISH_BYTES];
        enum sl_lower_option option;

        snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : sizeof(name) - 1), assignment);
        option = sl_lower_option_find(name);
        if (option == SL_LOWER_OPTION_COUNT || assignment[length] != '=')
                return sl_error_set(error, EINVAL, "\"%s\" is not an option and its value, such as batch_max=8", assignment);
        if (sl_lower_options_set(options, option, assignment + length + 1, wish) < 0)
                return sl_error_set(error, EINVAL, "option %s: \"%s\" is %s", name, assignment + length + 1, wish);
        return 0;
}

static void print_passes(uint32_t bits, char *ret_text)
{
        size_t used = 0;

        ret_text[0] = 0;
        for (uint32_t pass = 0; pass < SL_PASS_COUNT; pass++) {
                if (bits >> pass & 1)
                        used += (size_t)snprintf(
                                ret_text + used, SL_LOWER_OPTION_TEXT_BYTES - used, "%s%s", used ? "," : "", passes[pass]);
        }
}

static void print_gpu(const struct sl_cuda_figures *figures, char *ret_text)
{
        static const char *const names[] = {"h100", "h200"};
        struct sl_cuda_figures known;

        if (!figures->capability) {
                snprintf(ret_text, SL_LOWER_OPTION_TEXT_BYTES, "%s", GPU_OF_THE_DEVICE);
                return;
        }
        for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (sl_cuda_figures_parse(names[i], &known) && !memcmp(&known, figures, sizeof(known))) {
                        snprintf(ret_text, SL_LOWER_OPTION_TEXT_BYTES, "%s", names[i]);
                        return;
                }
        (void)sl_cuda_figures_print(figures, ret_text);
}

/* In as few digits as are read back to the same number, of two tries. */
static void print_real(double value, char ret_text[SL_LOWER_OPTION_TEXT_BYTES])
{
        snprintf(ret_text, SL_LOWER_OPTION_TEXT_BYTES, "%.15g", value);
        if (strtod(ret_text, NULL) != value)
                snprintf(ret_text, SL_LOWER_OPTION_TEXT_BYTES, "%.17g", value);
}

void sl_lower_options_text(
        const struct sl_lower_options *options, enum sl_lower_option option, char ret_text[SL_LOWER_OPTION_TEXT_BYTES])
{
        const struct row *row = &rows[option];
        const void *field = (const char *)options + row->offset;

        switch (row->kind) {
        case BYTES:
                snprintf(ret_text, SL_LOWER_OPTION_TEXT_BYTES, "%llu", (unsigned long long)*(const uint64_t *)field);
                break;
        case REAL:
                print_real(*(const double *)field, ret_text);
                break;
        case FLAG:
                snprintf(ret_text, SL_LOWER_OPTION_TEXT_BYTES, "%s", *(const bool *)field ? "true" : "false");
                break;
        case PASSES:
                print_passes(*(const uint32_t *)field, ret_text);
                break;
        case SHAPES:
                sl_dim_sizes_print(field, ret_text);
                break;
        case CORE:
                sl_core_figures_print(field, ret_text);
                break;
        case GPU:
                print_gpu(field, ret_text);
                break;
        case NUMBER:
                snprintf(ret_text, SL_LOWER_OPTION_TEXT_BYTES, "%u", *(const uint32_t *)field);
                break;
        default:
                snprintf(ret_text, SL_LOWER_OPTION_TEXT_BYTES, "%s", choices[row->kind].names[*(const uint32_t *)field]);
                break;
        }
}

void sl_lower_options_use_threads(struct sl_lower_options *options, uint32_t threads)
{
        options->teams &= threads != 1;
        if (!options->team_size)
                options->team_size = threads;
}

uint32_t sl_lower_options_team(const struct sl_lower_options *options)
{
        cpu_set_t set;
        uint32_t n = options->team_size;

        CPU_ZERO(&set);
        if (!n && sched_getaffinity(0, sizeof(set), &set) == 0)
                n = (uint32_t)CPU_COUNT(&set);
        if (!options->teams || !n)
                return 1;
        return n < SL_TEAM_MEMBERS_MAX ? n : SL_TEAM_MEMBERS_MAX;
}

const char *sl_lower_options_backend(const struct sl_lower_options *options)
{
        return backends[options->backend];
}

bool sl_lower_options_have_core(const struct sl_lower_options *options)
{
        char text[SL_CORE_FIGURES_TEXT_BYTES];

        sl_core_figures_print(&options->core, text);
        return text[0];
}

bool sl_lower_options_have_gpu(const struct sl_lower_options *options)
{
        return options->gpu.capability != 0;
}

struct sl_target sl_lower_options_target(const struct sl_lower_options *options)
{
        struct sl_target target = {.core = sl_core_figures_complete(&options->core)};

        /* Plans for a core do not depend on a GPU. */
        if (!strcmp(sl_lower_options_backend(options), "cuda")) {
                target.gpu = options->gpu;
                target.tf32 = options->tf32;
        }
        return target;
}
