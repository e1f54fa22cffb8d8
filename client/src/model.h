/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models as a client opened them. A handle's ports never change, so the request path reads it without a lock; @index, @generation
 * and @state are rewritten by a reconnect only, while nobody else is in a call.
 */
#pragma once

#include "catalogue.h"
#include "client.h"

struct starling_model {
        struct starling_client *client;
        uint32_t index, generation; /* in the catalogue of now */
        int state;                  /* 0; -ESTALE or -ENOENT since the last reconnect */
        struct starling_model_info info;
        struct sl_catalogue_part part; /* a copy, which has the names */
        struct starling_port *ports;   /* inputs, then outputs */
        struct starling_model *next, *previous;
};

/* Looks every open model up again in the catalogue of now. */
void sl_models_renew(struct starling_client *client);

void sl_models_free(struct starling_client *client);
