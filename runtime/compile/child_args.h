/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the two sides of a compilation agree on: the arguments of the child, of which the first is the name of the command; the
 * lines that it reports; and how it asks for external data. Private to runtime/compile.
 *
 * A line is "NUMBER TEXT\n". With 0 it is a warning, written before the child looks at the model; with an errno it says why the
 * child failed, and is the last one. With SL_CHILD_NOTE it says something about models that it merges, or why it does not.
 *
 * A request for external data is one packet: a byte with the number of the model (0, 1, ... in the order of the arguments), and
 * the location as that gives it, without a terminator. The answer is one packet
 * too: struct sl_child_answer, and with it a descriptor to read from when the code is 0.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

#define SL_CHILD_COMMAND     "compiler"
#define SL_CHILD_NAME        "sl-compiler" /* of the process, as tools show it */
#define SL_ZYGOTE_NAME       "sl-zygote"
#define SL_ZYGOTE_COMMAND    "zygote" /* and the process id of who starts it */
#define SL_CHILD_PLAN_FD     3
#define SL_CHILD_REPORT_FD   4
#define SL_CHILD_EXTERNAL_FD 5 /* a socket of packets */
#define SL_CHILD_BASE_FD     6
#define SL_CHILD_MEMORY_FD   96 /* /proc/self/statm, opened by the child itself behind the model file */

#define SL_CHILD_LOCATION_BYTES_MAX 4096
#define SL_CHILD_NOTE               4096 /* no errno */

struct sl_child_answer {
        int32_t code; /* 0, or an errno and a text */
        char text[SL_ERROR_TEXT_BYTES];
};

/* id, long option: each takes one value */
#define SL_CHILD_ARGS(X)                                                                                                           \
        X(MODEL, "model")               /* path of model.onnx */                                                                   \
        X(MEMORY_BYTES, "memory-bytes") /* address space */                                                                        \
        X(SECONDS, "seconds")           /* processor time */                                                                       \
        X(PARENT, "parent")             /* process id of who starts the child */                                                   \
        X(PLAN_FD, "plan-fd")           /* where the plan file goes */                                                             \
        X(REPORT_FD, "report-fd")       /* where the line goes */                                                                  \
        X(BASE, "base")                 /* 1: a base plan is open under its number; 0 */                                           \
        X(BASE_SUM, "base-sum")         /* its checksum; 0: the child reads all of it for that */                                  \
        X(EXTERNAL, "external")         /* 1: external data are asked for under its number; 0: there are none */

enum sl_child_arg {
#define X(id, name) SL_CHILD_ARG_##id,
        SL_CHILD_ARGS(X)
#undef X
                SL_CHILD_ARG_COUNT,
};

/* Of each further model that is merged with the first: its path. */
#define SL_CHILD_MEMBER "member"

/* Of each combination that a model with open dimensions is tried at besides (tried_sizes.h): "sequence=77,width=5". */
#define SL_CHILD_TRIED "tried"

/* And of each row of lower_options.h: KEY=VALUE. */
#define SL_CHILD_OPTION "option"
