/*
 * What the two sides of a compilation agree on: the arguments of the child, of which the first is the name of the command, and the
 * one line that it reports. Private to
 * runtime/compile. The line is "ERRNO TEXT\n"; it is written only when the child fails.
 */
#pragma once

#define SL_CHILD_COMMAND   "compiler"
#define SL_CHILD_PLAN_FD   3
#define SL_CHILD_REPORT_FD 4
#define SL_CHILD_BASE_FD   5

/* id, long option: each takes one value */
#define SL_CHILD_ARGS(X)                                                                                                           \
        X(MODEL, "model")               /* path of model.onnx */                                                                   \
        X(MEMORY_BYTES, "memory-bytes") /* address space */                                                                        \
        X(SECONDS, "seconds")           /* processor time */                                                                       \
        X(PARENT, "parent")             /* process id of who starts the child */                                                   \
        X(PLAN_FD, "plan-fd")           /* where the plan file goes */                                                             \
        X(REPORT_FD, "report-fd")       /* where the line goes */                                                                  \
        X(BASE, "base")                 /* 1: a base plan is open under its number; 0 */

enum sl_child_arg {
#define X(id, name) SL_CHILD_ARG_##id,
        SL_CHILD_ARGS(X)
#undef X
                SL_CHILD_ARG_COUNT,
};

#define SL_CHILD_MEMORY_BYTES_DEFAULT (8ull << 30)

/* And of each row of lower_options.h: KEY=VALUE. */
#define SL_CHILD_OPTION "option"
