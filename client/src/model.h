/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models as a client opened them. A handle's ports never change, so the request path reads it without a lock; @index, @generation
 * and @state are rewritten by a reconnect only, while nobody else is in a call. Any thread may note which changes it has looked at.
 */
#pragma once

#include "catalogue.h"
#include "client.h"

struct sl_error;
struct sl_query;

/* A handle's state, if it is none of an error. */
enum { SL_HANDLE_MODEL, SL_HANDLE_QUERY };

struct starling_model {
        struct starling_client *client;
        uint32_t index, generation; /* in the catalogue of now */
        _Atomic uint32_t changes;   /* of the catalogue, of which none up to here was one of this model's generation; of a query the
                                       page's, likewise */
        int state;                  /* SL_HANDLE_*; -ESTALE or -ENOENT since the last reconnect */
        struct sl_query *query;     /* of a task: @index and @generation are of no use; NULL: of a model */
        struct starling_model_info info;
        bool leaves_out;               /* outputs that a request does not want: all have known sizes, and there are several */
        uint32_t n_required;           /* inputs of a request that gives no optional one, on the wire */
        struct sl_catalogue_part part; /* a copy, which has the names */
        struct starling_port *ports;   /* inputs, then outputs */
        const char **labels;           /* of all of them */
        struct starling_model *next, *previous;
};

/*
 * A handle of what the catalogue said, linked to its client. Takes @part in any case. @changes: of the catalogue, read before.
 * Return: 0; -ENOMEM with text.
 */
int sl_model_new(struct starling_client *client, uint32_t index, const struct sl_catalogue_model *from,
        struct sl_catalogue_part *part, struct starling_model **ret_model, struct sl_error *error);

/* Has a model that is loaded on request loaded, and waits. Return: 0: it is as the catalogue says; -errno with text. */
int sl_model_request_load(struct starling_client *client, const char *name, struct sl_error *error);

/* Looks every open model up again in the catalogue of now. */
void sl_models_renew(struct starling_client *client);

void sl_models_free(struct starling_client *client);
