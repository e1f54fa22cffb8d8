/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command does with a model file that nobody has checked, in a process of its own: forked from this one, without privileges,
 * files but those below the model's folder, network, other processes and descriptors, as far as the host's kernel has what that is
 * made of (sandbox.h). It writes to standard output and error, and what the caller wants to know beside that to shared memory.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sl_call_rule;
struct sl_data_folders;
struct sl_error;
struct sl_landlock_path;

struct confined {
        const char *path; /* of the model file */
        uint64_t seconds; /* of processor time; SL_SANDBOX_NO_LIMIT */

        const struct sl_data_folders *data_folders; /* into which links of the model's data may lead; NULL: none */

        /* That it may open beside the folder of the model, and calls that it makes beside those of reading one. */
        const struct sl_landlock_path *paths;
        size_t n_paths;
        const struct sl_call_rule *calls;
        size_t n_calls;
        int fd; /* that stays open there beside standard output and error; 0: none */

        /* In that process; what else @context leads to is a copy there. @ret_answer: @answer_bytes, zeros at first. Return: 0;
         * -errno with text. */
        int (*run)(void *context, void *ret_answer, struct sl_error *error);
        void *context;
        size_t answer_bytes;
};

/*
 * One thread. @ret_answer: what @run wrote there, of which nothing has been checked: whoever has taken the process over may have
 * written it. Return: what @run returned; -ECHILD the process was killed, -ETIME over its time; -errno of starting it; with text.
 */
int confined_run(const struct confined *confined, void *ret_answer, struct sl_error *error);
