/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiling a model in a child process with limits (nothing that parses a model runs in the serving process).
 *
 * The child is this program started again as `starling compiler` (exec, not bare fork: the caller has threads), or forked from a
 * zygote that was, which has one thread. It opens the model
 * and then gives up what it does not need (sandbox.h); external data are opened for it by a thread of the caller. It writes the
 * plan into a memfd that the parent made and reports one line of text on a pipe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sl_compile_zygote;
struct sl_error;
struct sl_lower_options;
struct sl_tried_sizes;

struct sl_data_folders;

struct sl_compile_options {
        const char *program;                     /* the executable to start; NULL: /proc/self/exe */
        const char *model_path;                  /* .../NAME/VERSION/model.onnx */
        const struct sl_lower_options *lowering; /* NULL: the defaults */
        const char *const *members; /* further models, which are merged with the first into one plan, lane by lane (graph/merge); */
        uint32_t n_members;         /* at most SL_COMPILE_MEMBERS_MAX */
        const struct sl_data_folders *data_folders; /* into which links of external data may lead (model_file.h); NULL: none */
        const struct sl_tried_sizes *tried;         /* of one model whose dimensions are open; NULL: none */
        uint64_t base_sum; /* checksum of its identity (sl_plan_identity()); 0: the child reads all of it for that */
        int base_fd;       /* of a plan of other sizes of the model, from which this one is derived; 0: it stands alone */
        struct sl_compile_zygote *zygote; /* forks the child (compile_zygote.h), of the same program; NULL: it is started */
        bool background;                  /* gives way to whoever serves (base/background.h) */
        uint64_t memory_bytes; /* limit of the child's private memory, of its address space beside the program's own code and
                                * libraries, and of three times its plan file; 0: the default */
        uint64_t seconds; /* limit of the child's processor time and (doubled) of its wall time; 0: only lowering->plan_seconds */
};

#define SL_COMPILE_MEMBERS_MAX 63
#define SL_COMPILE_NOTES_BYTES 8192

/* A plan file is at most so small a part of the child's memory. */
#define SL_COMPILE_PLAN_PART 3

#define SL_COMPILE_MEMORY_BYTES_DEFAULT (8ull << 30)
#define SL_COMPILE_MEMORY_BYTES_MIN     (16ull << 20) /* with less, not even the program starts */

/* What a child may take in all: its memory, and pages of the plan file that it no longer maps. */
static inline uint64_t sl_compile_takes(uint64_t memory_bytes)
{
        return memory_bytes + memory_bytes / SL_COMPILE_PLAN_PART;
}

/* The largest memory_bytes with which it takes no more than @bytes. */
static inline uint64_t sl_compile_fits(uint64_t bytes)
{
        return bytes / 4 * 3;
}

/* A compilation under way. One owner thread, with which the child dies; it also inherits that thread's processor affinity. */
struct sl_compilation;

/* Starts the child. Whoever gives a zygote owns it in this thread, until the compilation has ended. Return: 0; -errno of
 * posix_spawn, memfd_create, pipe2, socketpair, pthread_create. */
int sl_compile_start(const struct sl_compile_options *options, struct sl_compilation **ret_compilation, struct sl_error *error);

/* Readable (POLLIN or POLLHUP) when sl_compile_finish() will not wait. Owned by the compilation. */
int sl_compile_fd(const struct sl_compilation *compilation);

/*
 * Waits for the child, reaps it, checks and seals the plan file, frees the compilation.
 * Return: 0 and a read-only-sealed fd of the plan file, the text is empty or a warning: which part of the sandbox this host lacks;
 * or -errno with the child's own line, or one that says how it died
 * ("killed by signal 11", "over its memory limit of 8589934592 bytes", "over its time limit of 120 s").
 */
int sl_compile_finish(struct sl_compilation *compilation, int *ret_plan_fd, struct sl_error *error);

/* What a child that merges says beside its plan, or in place of it: lines for people, with an end each. */
struct sl_compile_notes {
        char text[SL_COMPILE_NOTES_BYTES];
};

/*
 * The same in two parts, for a thread that may not wait: the plan file is not sealed, and nobody maps it before sl_compile_seal().
 * @ret_notes: NULL is fine. -ENODATA: nothing of the models is merged, the text says why.
 */
int sl_compile_finish_unsealed(
        struct sl_compilation *compilation, int *ret_plan_fd, struct sl_compile_notes *ret_notes, struct sl_error *error);

/* The kernel may hold pages of the file for a moment longer: waits for tens of milliseconds then. Return: 0; -errno with text. */
int sl_compile_seal(int plan_fd, struct sl_error *error);

/* Kills the child, and waits for nothing: sl_compile_cancel() is to follow. Any thread, while the owner leaves it alone. */
void sl_compile_kill(const struct sl_compilation *compilation);

/* Kills and reaps the child, frees. NULL is fine. Returns NULL. Any thread, as the last one that has it. */
struct sl_compilation *sl_compile_cancel(struct sl_compilation *compilation);

/* Start and finish in one call, for tools and tests. */
int sl_compile(const struct sl_compile_options *options, int *ret_plan_fd, struct sl_error *error);

/*
 * The same in this process, without limits other than those of @lowering, for tools: writes the plan file to @fd. Whoever calls it
 * trusts the model file. @base_fd: a base plan's file, -1: none. Return: 0; -errno with text.
 */
int sl_compile_here(const char *model_path, const struct sl_lower_options *lowering, int base_fd, int fd, struct sl_error *error);

/* The child's side: main() of `starling compile` hands its arguments on. Exit status: 0, or 1 after writing the line. */
int sl_compile_child_main(int argc, char **argv);

/* A zygote's side, as main() gets it: sets up what compilers need, then forks those that it is asked for, each of which calls @run
 * with the arguments that main() would have. Exit status. */
bool sl_compile_zygote_is_meant(int argc, char **argv);
int sl_compile_zygote_main(int argc, char **argv, int (*run)(int argc, char **argv));
