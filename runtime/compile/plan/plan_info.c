/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_info.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int sl_plan_info_init(struct sl_plan_info *ret_info, uint32_t n_inputs, uint32_t n_optionals, uint32_t n_outputs)
{
        struct sl_port *ports = calloc((size_t)n_inputs + n_optionals + n_outputs + 1, sizeof(*ports));

        if (!ports)
                return -ENOMEM;
        *ret_info = (struct sl_plan_info){
                .n_inputs = n_inputs,
                .n_optionals = n_optionals,
                .n_outputs = n_outputs,
                .inputs = ports,
                .outputs = ports + n_inputs + n_optionals,
        };
        return 0;
}

int sl_plan_info_set(const char **text, const char *value)
{
        char *copy = strdup(value);

        if (!copy)
                return -ENOMEM;
        free((char *)*text);
        *text = copy;
        return 0;
}

int sl_plan_info_add_symbol(struct sl_plan_info *info, const char *name)
{
        int r = sl_plan_info_set(&info->symbols[info->n_symbols], name);

        info->n_symbols += r == 0;
        return r;
}

static int set_names(const struct sl_plan_info *from, struct sl_plan_info *info)
{
        int r = sl_plan_info_set(&info->name, from->name);

        uint32_t n_inputs = info->n_inputs + info->n_optionals;

        for (uint32_t i = 0; i < sl_plan_info_ports(info) && r == 0; i++) {
                const struct sl_port *port = i < n_inputs ? &from->inputs[i] : &from->outputs[i - n_inputs];

                info->inputs[i] = *port;
                info->inputs[i].name = info->inputs[i].labels = NULL;
                r = sl_plan_info_set(&info->inputs[i].name, port->name);
                if (r == 0)
                        r = sl_plan_info_set(&info->inputs[i].labels, port->labels ? port->labels : "");
        }
        for (uint32_t i = 0; i < from->n_symbols && r == 0; i++)
                r = sl_plan_info_add_symbol(info, from->symbols[i]);
        return r;
}

int sl_plan_info_copy(const struct sl_plan_info *from, struct sl_plan_info *ret_info)
{
        struct sl_plan_info own, info = *from;
        int r = sl_plan_info_init(&own, from->n_inputs, from->n_optionals, from->n_outputs);

        if (r < 0)
                return r;
        info.name = NULL;
        info.inputs = own.inputs;
        info.outputs = own.outputs;
        info.n_symbols = 0;
        memset(info.symbols, 0, sizeof(info.symbols));
        r = set_names(from, &info);
        if (r < 0)
                sl_plan_info_deinit(&info);
        else
                *ret_info = info;
        return r;
}

void sl_plan_info_drop_symbols(struct sl_plan_info *info)
{
        for (uint32_t i = 0; i < SL_SYMBOLS_MAX; i++)
                free((char *)info->symbols[i]);
        memset(info->symbols, 0, sizeof(info->symbols));
        info->n_symbols = 0;
}

void sl_plan_info_deinit(struct sl_plan_info *info)
{
        for (uint32_t i = 0; info->inputs && i < sl_plan_info_ports(info); i++) {
                free((char *)info->inputs[i].name);
                free((char *)info->inputs[i].labels);
        }
        sl_plan_info_drop_symbols(info);
        free((char *)info->name);
        free(info->inputs);
        *info = (struct sl_plan_info){0};
}
