/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What travels through the mailboxes between the control thread and the dispatcher.
 */
#pragma once

#include "base/dim_sizes.h"
#include "fault.h"

#include <stdint.h>

struct sl_carrier;
struct sl_executor;

enum sl_command_kind {
        SL_COMMAND_ADD_CHANNEL,    /* pointer: struct sl_channel */
        SL_COMMAND_REMOVE_CHANNEL, /* ends its requests; answered by CHANNEL_GONE */
        SL_COMMAND_RELEASE_REGION, /* of the channel, @index; answered by REGION_RELEASED */
        SL_COMMAND_SERVE,          /* pointer: struct sl_ensemble, in the place of its index; the old one retires */
        SL_COMMAND_ATTACH,         /* pointer: struct sl_ensemble, which serves: whoever waits for its sizes gets it */
        SL_COMMAND_WITHDRAW,       /* index: what is served there retires */
        SL_COMMAND_ADD_MODEL,      /* pointer: struct sl_model, whose workers are ready */
        SL_COMMAND_REMOVE_MODEL,   /* no ensemble uses it; answered by MODEL_GONE */
        SL_COMMAND_ADD_WORKER,     /* pointer: struct sl_model, worker: is ready; fewer than SL_WORKERS_MAX are not gone */
        SL_COMMAND_REMOVE_WORKER,  /* the same: it is given no more; answered by WORKER_GONE, unless it is gone or going already */
        SL_COMMAND_PUT_BLOCKS,     /* carrier, pointer: struct sl_block, of which it has none; NULL: puts those that it has away */
        SL_COMMAND_MODEL_DOWN,     /* pointer: struct sl_model, why: until a worker joins, what waits for it fails */
        SL_COMMAND_SHAPE_FAILED,   /* index: of an ensemble that is open or rests; these sizes, or its model, cannot be served, as
                                      status says */
        SL_COMMAND_CLOSE,          /* refuse all new requests; answered by DRAINED when none is in flight */
        SL_COMMAND_CANCEL_ALL,     /* end what is in flight as cancelled */
        SL_COMMAND_PROBE,          /* answered by ALIVE */
        SL_COMMAND_MARK,           /* answered by MARKED: what was commanded before holds for all entries taken from now on */
        SL_COMMAND_WATCH,          /* index, pointer: struct sl_variant_line of what is served there; NULL: none any more */
        SL_COMMAND_SAMPLE,         /* index: of 2^32 - 1 requests, how many are traced from now on */
        SL_COMMAND_QUIT,           /* the dispatcher thread returns */
};

struct sl_command {
        uint32_t kind; /* enum sl_command_kind */
        uint32_t index;
        void *pointer;
        struct sl_executor *worker;
        struct sl_carrier *carrier;
        int32_t status;
        uint32_t keep; /* of SHAPE_FAILED: the next request for these sizes ends so too */
        int64_t sizes[SL_SYMBOLS_MAX];
        char why[SL_FAULT_BYTES]; /* of SHAPE_FAILED, MODEL_DOWN */
};

enum sl_event_kind {
        SL_EVENT_CHANNEL_GONE,     /* nothing of it is in use any more */
        SL_EVENT_REGION_RELEASED,  /* status 0: no request names it, now or later; -EBUSY: one in flight does */
        SL_EVENT_CHANNEL_BROKEN,   /* it broke the protocol: status and text say how; remove it */
        SL_EVENT_ENSEMBLE_RETIRED, /* nothing of it is in flight any more */
        SL_EVENT_MODEL_GONE,       /* and with it all its workers, those that were leaving too */
        SL_EVENT_WORKER_GONE,  /* pointer: struct sl_model, worker: was removed, or has died; nothing given to it is unanswered */
        SL_EVENT_BLOCKS_GONE,  /* pointer: struct sl_block, put away, or a lane of it is gone; none comes behind that of its carrier
                                */
        SL_EVENT_SHAPE_WANTED, /* pointer: struct sl_ensemble, open or at rest; answered by SERVE, ATTACH or SHAPE_FAILED */
        SL_EVENT_SHAPE_UNWANTED, /* pointer: struct sl_ensemble, of these sizes, which made room for others */
        SL_EVENT_OVERLOADED,     /* a worker of a variant has become overloaded (conditions.h), or several have */
        SL_EVENT_SLOWED,         /* a worker of a variant is interfered with (conditions.h), or several are */
        SL_EVENT_DRAINED,
        SL_EVENT_ALIVE,  /* the dispatcher has seen a PROBE */
        SL_EVENT_MARKED, /* it has obeyed all that came before the MARK */
};

struct sl_event {
        uint32_t kind;
        int32_t status;
        void *pointer;
        struct sl_executor *worker;
        uint32_t uid; /* of SHAPE_WANTED: whose request it was */
        char text[112];
        int64_t sizes[SL_SYMBOLS_MAX];
};
