/* SPDX-License-Identifier: Apache-2.0 */
#include "target.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct sl_target sl_target_typical = {.core = {
#define X(name, typical, unit, text) .name = typical,
                                                    SL_CORE_FIGURES(X)
#undef X
                                            }};

struct sl_core_figure_info sl_core_figure_info(enum sl_core_figure figure)
{
        static const struct sl_core_figure_info infos[SL_CORE_FIGURE_COUNT] = {
#define X(name, typical, unit, text) {#name, unit, text},
                SL_CORE_FIGURES(X)
#undef X
        };

        return infos[figure];
}

double *sl_core_figure(struct sl_core_figures *figures, enum sl_core_figure figure)
{
        double *const all[SL_CORE_FIGURE_COUNT] = {
#define X(name, typical, unit, text) &figures->name,
                SL_CORE_FIGURES(X)
#undef X
        };

        return all[figure];
}

static double value_of(const struct sl_core_figures *figures, enum sl_core_figure figure)
{
        return *sl_core_figure((struct sl_core_figures *)figures, figure);
}

bool sl_core_figures_are_sound(const struct sl_core_figures *figures)
{
        for (uint32_t i = 0; i < SL_CORE_FIGURE_COUNT; i++)
                if (!isfinite(value_of(figures, i)) || value_of(figures, i) <= 0)
                        return false;
        return true;
}

void sl_core_figures_print(const struct sl_core_figures *figures, char ret_text[SL_CORE_FIGURES_TEXT_BYTES])
{
        size_t used = 0;

        ret_text[0] = 0;
        for (uint32_t i = 0; i < SL_CORE_FIGURE_COUNT; i++)
                if (value_of(figures, i) > 0)
                        used += (size_t)snprintf(ret_text + used, SL_CORE_FIGURES_TEXT_BYTES - used, "%s%s=%.9g", used ? "," : "",
                                sl_core_figure_info(i).name, value_of(figures, i));
}

/* The figure whose name is the first @length of @text; SL_CORE_FIGURE_COUNT: there is none. */
static enum sl_core_figure find_figure(const char *text, size_t length)
{
        uint32_t i = 0;

        while (i < SL_CORE_FIGURE_COUNT &&
                (strlen(sl_core_figure_info(i).name) != length || strncmp(sl_core_figure_info(i).name, text, length) != 0))
                i++;
        return (enum sl_core_figure)i;
}

bool sl_core_figures_parse(const char *text, struct sl_core_figures *ret_figures)
{
        struct sl_core_figures figures = {0};

        for (const char *at = text; *at;) {
                size_t length = strcspn(at, "=");
                enum sl_core_figure figure = find_figure(at, length);
                char *end;
                double value;

                if (figure == SL_CORE_FIGURE_COUNT || at[length] != '=')
                        return false;
                value = strtod(at + length + 1, &end);
                if (end == at + length + 1 || !(value > 0 && value < 1e18) || (*end && *end != ',') || (*end && !end[1]))
                        return false;
                *sl_core_figure(&figures, figure) = value;
                at = *end ? end + 1 : end;
        }
        *ret_figures = figures;
        return true;
}

struct sl_core_figures sl_core_figures_complete(const struct sl_core_figures *figures)
{
        struct sl_core_figures complete = *figures;

        for (uint32_t i = 0; i < SL_CORE_FIGURE_COUNT; i++)
                if (!(value_of(figures, i) > 0))
                        *sl_core_figure(&complete, i) = value_of(&sl_target_typical.core, i);
        return complete;
}
