/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * starling.h: inference through shared memory. This header is the manual of libstarling; starling(7) is the tour.
 *
 * A *client* is one connection to one *runtime* (`starling serve`). It owns an *arena*: memory that both processes map, in which
 * every tensor of a request lies. Requests are submitted to *queue pairs* and come back as *completions*:
 *
 *     struct starling_client *client;
 *     struct starling_model *model;
 *     struct starling_queue *queue;
 *
 *     starling_connect(NULL, &client, NULL);
 *     starling_model_open(client, "digits", &model, NULL);
 *     starling_queue_open(client, &queue, NULL);
 *
 *     const uint32_t input_dims[] = {300, 1, 8, 8}, output_dims[] = {300, 10};
 *     struct starling_tensor input, output;
 *     starling_tensor_alloc(client, STARLING_F32, 4, input_dims, &input);
 *     starling_tensor_alloc(client, STARLING_F32, 2, output_dims, &output);
 *     ... write the samples to input.data ...
 *     struct starling_request request = {
 *             .model = model, .inputs = &input, .outputs = &output, .n_inputs = 1, .n_outputs = 1};
 *     starling_infer(queue, &request, NULL);
 *     ... read the predictions from output.data ...
 *     starling_close(client);
 *
 * Ownership of buffers. From a successful submit until the completion of that request the tensors' bytes are the runtime's:
 * leave them alone, cancelled or not. A submit that fails leaves them yours. The structs that describe a request are read during
 * the call only. An output is defined only when its completion's status is 0.
 *
 * Exactly one completion comes back for every accepted request: done, failed, expired, cancelled, or runtime gone.
 *
 * Threads. A queue pair has one owner thread: its calls (those that take a struct starling_queue) come from one thread at a time.
 * All other calls may come from any thread at once, unless they say otherwise. No call uses signals, and no thread is started.
 *
 * Errors. Calls return 0 or a count, or a negative errno value; each call lists its own. Out-parameters (ret_x) are written on
 * success only. Where a call takes a struct starling_error, it may be NULL; on failure it gets one line that names the thing, the
 * value and the limit. These values mean the same everywhere, as results and as the status of a completion:
 *
 *     -EINVAL     an argument is wrong, or a shape or type differs from the model's
 *     -EAGAIN     no room in the queue pair: reap completions and try again
 *     -EDOM       no variant of a task does what is needed: the text names the need, its value, and the best that there is
 *     -EBUSY      the model's queue in the runtime is full, or what goes before takes longer than the deadline is away, which
 *                 queued_ns then says: try again later, with a later deadline, or elsewhere
 *     -ETIME      the deadline passed before the result was there
 *     -ECANCELED  cancelled by starling_cancel() or because the runtime ends
 *     -EMSGSIZE   an output's buffer is too small: see bytes_needed
 *     -ESTALE     the model's inputs or outputs have changed since it was opened: close it and open it again
 *     -EIO        the model failed while it computed, or cannot be compiled for these sizes, whatever the request says
 *     -ERANGE     an index in an input is out of the range that the model has
 *     -E2BIG      more than there may be: tensors of a request, or what the data make the model do in one run
 *     -ENOMEM     memory ran out
 *     -EDQUOT     a quota of this client or user is used up, or its share of what is full and others want too
 *     -EPIPE      the runtime is gone, or has ended this connection: starling_reconnect() or starling_close()
 *     -EPROTO     the other side broke the protocol; the connection is over
 *     -EPERM      the role of this client does not allow it
 *     -ECHILD     the handle was inherited through fork(): a child process connects for itself
 *
 * Fork. A child's copy of a handle answers -ECHILD and never touches what it shares with its parent; only starling_close() may
 * be called on it, which frees the child's copies. Times are in nanoseconds; points in time are CLOCK_MONOTONIC; sizes are in
 * bytes.
 */
#ifndef STARLING_H
#define STARLING_H

#include <stddef.h>
#include <stdint.h>

#define STARLING_VERSION_MAJOR 0
#define STARLING_VERSION_MINOR 1
#define STARLING_VERSION_PATCH 0

#if defined(__GNUC__)
#define STARLING_API __attribute__((visibility("default")))
#else
#define STARLING_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define STARLING_RANK_MAX   8    /* dimensions of a tensor */
#define STARLING_NAME_MAX   1024 /* bytes of a model's name as it is configured */
#define STARLING_NAME_BYTES 1152 /* of one as it is served: with ":VERSION" or "[SIZES]" behind it, and the final NUL */
#define STARLING_TEXT_BYTES 480
#define STARLING_ALIGNMENT  64         /* of every tensor's first byte */
#define STARLING_PRIORITIES 4          /* 0 is served first */
#define STARLING_BACKGROUND 4          /* as a priority: behind all of them, and pauses for them (docs/offline.md) */
#define STARLING_FOREVER    UINT64_MAX /* as a time-out */

struct starling_client; /* a connection and its arena */
struct starling_model;  /* one model as this client opened it */
struct starling_queue;  /* a queue pair */

/* Why a call failed: one line, NUL-terminated. */
struct starling_error {
        char text[STARLING_TEXT_BYTES];
};

/* "the runtime is gone" for -EPIPE and so on; any errno value of either sign. Never NULL, never freed. Any thread. */
STARLING_API const char *starling_strerror(int status);

/* "0.1.0": of the library that runs, which may be newer than this header. */
STARLING_API const char *starling_version(void);

/* Now, on the clock of deadlines: CLOCK_MONOTONIC. */
STARLING_API uint64_t starling_clock_ns(void);

/* ---- element types ---------------------------------------------------------------------------------------------------- */

/*
 * The numbers are ONNX's. bfloat16 is the upper half of a float; bool is one byte, 0 or 1. An element of 4 or 2 bits takes a byte
 * of its own, whose low bits count; what the runtime writes of int4 and int2 has the sign in the bits above them.
 */
enum starling_dtype {
        STARLING_F32 = 1,
        STARLING_U8 = 2,
        STARLING_I8 = 3,
        STARLING_U16 = 4,
        STARLING_I16 = 5,
        STARLING_I32 = 6,
        STARLING_I64 = 7,
        STARLING_BOOL = 9,
        STARLING_F16 = 10,
        STARLING_F64 = 11,
        STARLING_U32 = 12,
        STARLING_U64 = 13,
        STARLING_BF16 = 16,
        STARLING_F8E4M3FN = 17,
        STARLING_F8E4M3FNUZ = 18,
        STARLING_F8E5M2 = 19,
        STARLING_F8E5M2FNUZ = 20,
        STARLING_U4 = 21,
        STARLING_I4 = 22,
        STARLING_F4E2M1 = 23,
        STARLING_F8E8M0 = 24,
        STARLING_U2 = 25,
        STARLING_I2 = 26
};

/* Bytes of one element; 0 for a number that is no type. */
STARLING_API size_t starling_dtype_bytes(uint32_t dtype);

/* "float32"; "unknown" for a number that is no type. */
STARLING_API const char *starling_dtype_name(uint32_t dtype);

/* ---- connecting -------------------------------------------------------------------------------------------------------- */

enum starling_role {
        STARLING_ROLE_CLIENT = 0, /* submits requests */
        STARLING_ROLE_READER = 1, /* lists models only: no queue pairs, no arena */
        STARLING_ROLE_ADMIN = 2   /* loads and unloads models: no queue pairs, no arena */
};

/* 0 or NULL means the default, and so does a NULL for the whole struct. */
struct starling_options {
        const char *runtime;          /* its name, or with a slash in it the path of its socket (default: "starling") */
        const char *label;            /* name of this client in the runtime's log, cut to 31 bytes (default: the program's) */
        enum starling_role role;      /* (default: STARLING_ROLE_CLIENT) */
        uint32_t queue_pairs;         /* queue pairs that may be open at once, 1 to 64 (default: 4) */
        uint32_t queue_depth;         /* requests in flight per queue pair, a power of two, 2 to 1024 (default: 64) */
        uint32_t tensors_per_request; /* inputs and outputs of one request, 1 to 1024 (default: 8); a queue pair has two
                                         requests with more, up to 1024, in flight at a time */
        uint64_t arena_bytes;         /* bytes of the arena's first region, and the least that it grows by (default: 16 MiB);
                                         where there is room it grows by as much as it has */
        uint64_t timeout_ns;          /* nanoseconds to wait for a runtime that is starting (default: 0, it is tried once) */
        uint64_t reserved[8];         /* 0 */
};

/* What was granted. */
struct starling_client_info {
        uint64_t client_id; /* as in the runtime's log */
        uint32_t queue_pairs, queue_depth, tensors_per_request;
        uint32_t regions;           /* of the arena */
        uint64_t arena_bytes;       /* of all regions */
        uint64_t arena_used_bytes;  /* in blocks that are handed out; a snapshot */
        uint64_t arena_limit_bytes; /* the quota */
};

/**
 * starling_connect() - attach to a runtime
 * @options:    NULL for the defaults
 * @ret_client: closed with starling_close()
 *
 * Waits up to options->timeout_ns for a runtime that does not listen yet, and at least 5 s for the answer of one that does. Rings
 * of all queue pairs, without room for requests with more tensors, must fit 256 KiB: about (tensors_per_request + 1) * queue_depth
 * * queue_pairs * 64 bytes.
 *
 * Return: 0, or
 *   -EINVAL        an option is out of its range
 *   -E2BIG         the rings do not fit
 *   -ENAMETOOLONG  the path of the socket is too long
 *   -ENOENT, -ECONNREFUSED  no runtime listens there
 *   -ETIMEDOUT     a runtime listens, but does not answer
 *   -EACCES, -EPERM         this user, or this role for this user, is refused
 *   -EDQUOT        too many clients, or of this user, or an arena over the quota
 *   -EPROTO        no wire version in common, or a malformed answer
 *   -ENOMEM, -EMFILE, other system errors
 */
STARLING_API int starling_connect(
        const struct starling_options *options, struct starling_client **ret_client, struct starling_error *error);

/**
 * starling_reconnect() - attach again after the runtime has gone
 * @timeout_ns: how long to wait for a runtime that is starting; 0 tries once
 *
 * The arena stays at its addresses with its contents, and is handed to the new runtime. Requests that were in flight complete as
 * -EPIPE, if they had not completed before; they still come out of starling_poll() and starling_wait() of their queue pairs, which
 * stay open with empty rings. Models are looked up again by name; one whose inputs or outputs differ now answers -ESTALE, one that
 * is missing answers -ENOENT, until it is closed and opened again. When it fails, all stays as it was and it may be called again.
 *
 * One thread, while no other thread is in a call of this client but starling_free(). Calling it while the runtime lives ends the
 * old connection first, and waits until workers have ended what they compute for that. So nothing is written into the arena for
 * requests that have completed as -EPIPE. A runtime that does not answer within @timeout_ns, or five seconds if that is longer, is
 * -ETIMEDOUT.
 *
 * Return: as starling_connect(); -EPROTO also when the runtime grants other limits than before; -ECHILD
 */
STARLING_API int starling_reconnect(struct starling_client *client, uint64_t timeout_ns, struct starling_error *error);

/**
 * starling_disconnect() - end the connection, and keep the arena
 *
 * From here on it is as if the runtime had gone: what is in flight completes as -EPIPE. Memory stays mapped until
 * starling_close(). The runtime needs a moment to notice: until then it may still write to outputs that were in flight. A runtime
 * that goes on keeps the arena for a reconnect, until it needs the memory for others: then its contents become zeros.
 * One thread, while no other thread is in a call of this client.
 */
STARLING_API void starling_disconnect(struct starling_client *client);

/**
 * starling_close() - end the connection and free everything
 *
 * All handles, tensors and completions of this client are invalid afterwards; none needs to be closed before. Nothing waits: what
 * is in flight is abandoned. NULL is fine. One thread, while no other thread is in a call of this client. Return: NULL.
 */
STARLING_API struct starling_client *starling_close(struct starling_client *client);

/* Return: 0, -ECHILD. Any thread. */
STARLING_API int starling_client_describe(const struct starling_client *client, struct starling_client_info *ret_info);

/* ---- models ------------------------------------------------------------------------------------------------------------- */

enum starling_model_state {
        STARLING_MODEL_LOADING = 1,
        STARLING_MODEL_READY = 2,
        STARLING_MODEL_DRAINING = 3,  /* takes no new requests */
        STARLING_MODEL_FAILED = 4,    /* cannot be served: starling_model_open() says why */
        STARLING_MODEL_AVAILABLE = 5, /* is loaded on request: when somebody opens it, or when a request for it comes */
        STARLING_MODEL_STANDBY = 6    /* its plan is loaded, and its workers start when a request comes */
};

/* One line of a listing. */
struct starling_model_entry {
        char name[STARLING_NAME_BYTES];
        int64_t version; /* 0 for an ensemble */
        enum starling_model_state state;
        int ensemble; /* 1: several models whose predictions the runtime combines */
};

/* An input or an output of a model. Of rank 0 with -1 in dims[0]: how many dimensions it has is known when a request has sizes. */
struct starling_port {
        const char *name; /* UTF-8, at most 1,024 bytes; the model's */
        enum starling_dtype dtype;
        uint32_t rank;
        int32_t dims[STARLING_RANK_MAX]; /* -1 where the size is free: the batch, or what only the model knows */
        int32_t batch_axis;              /* which of them counts samples; -1: none, and every request is one sample */
        int32_t optional;                /* 1: an input that a request may leave out: the model has a default for it */
        uint32_t n_labels;               /* 0 of most: see starling_label() */
        const char *const *labels;       /* UTF-8; the model's */
};

/**
 * starling_label() - the word that a number stands for
 * @port: of a model that is open. Integers of it are places in its labels: the class that a classifier says, the word of an input.
 *        Where its elements are floats, the labels name its columns: of which class a probability is
 *
 * Return: the text, which is the model's; NULL: there is no such label. Any thread.
 */
STARLING_API const char *starling_label(const struct starling_port *port, int64_t place);

/* A model as it was when it was opened. */
struct starling_model_info {
        char name[STARLING_NAME_BYTES];
        int64_t version; /* 0 for an ensemble */
        int ensemble;
        uint32_t samples_max;     /* of one request */
        uint32_t segment_samples; /* a request is worked on in pieces of at most so many samples */
        uint32_t n_inputs, n_outputs;
        const struct starling_port *inputs, *outputs; /* in the order in which requests list them */
};

/**
 * starling_model_list() - what the runtime serves
 * @ret_entries: the first @max models, in no particular order
 *
 * Return: the number of models, which may exceed @max; -ECHILD. After the runtime's death: the last known state.
 */
STARLING_API int starling_model_list(const struct starling_client *client, struct starling_model_entry *ret_entries, uint32_t max);

/**
 * starling_model_open() - look a model up by its name
 * @ret_model: valid until starling_model_close() or starling_close(); any thread may use it at once
 *
 * A model that is loaded on request (`load: on_request`) and has not been loaded before is loaded now: the call waits for that as
 * long as limits.load_wait_s of the runtime says. The handle outlives an unload for idleness: the next request waits instead.
 *
 * Return: 0, or
 *   -ENOENT  no model of this name; the text lists those that there are
 *   -EAGAIN  it is still loading; of one on request: it could not be loaded now, and the text says why
 *   -EDQUOT  this user waits for as many loads as its share is
 *   -EINTR   a signal came while it was being loaded, which goes on: open it again
 *   -EIO     it failed to load, or is being unloaded
 *   -EPIPE, -ENOMEM, -ECHILD
 */
STARLING_API int starling_model_open(
        struct starling_client *client, const char *name, struct starling_model **ret_model, struct starling_error *error);

/* What was found. Valid as long as @model, and never changes. Any thread. */
STARLING_API const struct starling_model_info *starling_model_describe(const struct starling_model *model);

/*
 * Whether its inputs or outputs are others by now, as after a reload, or the model is gone: its requests would end with -ESTALE or
 * -ENOENT. It is to be opened again by its name then. Reads the catalogue of models, not the runtime's answer: nanoseconds, and
 * what changes later a request still finds. Any thread. Return: 1, 0; 0 also without a runtime, and in a child after a fork.
 */
STARLING_API int starling_model_changed(struct starling_model *model);

/* Forgets the handle; requests in flight are not disturbed. NULL is fine. Return: NULL. */
STARLING_API struct starling_model *starling_model_close(struct starling_model *model);

/* ---- tensors ------------------------------------------------------------------------------------------------------------ */

/*
 * A dense tensor, C order. @data is 64-byte aligned and lies in the arena of the client that submits it: any such place, so a part
 * of an allocation will do. @bytes is the room at @data, at least what the shape takes; for outputs it is the capacity. An output's
 * @rank and @dims are not read: its completion says what the shape was.
 */
struct starling_tensor {
        void *data;
        uint64_t bytes;
        enum starling_dtype dtype;
        uint32_t rank;
        uint32_t dims[STARLING_RANK_MAX];
};

/**
 * starling_alloc() - memory in the arena, as malloc()
 * @bytes: more than 0
 *
 * Lock-free. The contents are undefined. Two things take a system call:
 *   - Pages that are handed out for the first time are faulted in here, so that they are charged to this process and its control
 *     group.
 *   - When no region has room, those in which nothing is allocated are given back to the runtime. It is then asked for one that is
 *     large enough.
 *
 * Return: 64-byte aligned memory, or NULL with errno:
 *   ENOMEM, EDQUOT, EINVAL, ECHILD
 *   EPERM      the client is a reader or administrator
 *   EPIPE      the arena must grow, and the runtime is gone
 *   ETIMEDOUT  the arena must grow, and the runtime lives but has not answered for 5 s; what it grants later counts next time
 */
STARLING_API void *starling_alloc(struct starling_client *client, uint64_t bytes);

/**
 * starling_alloc_error() - why there is no memory, in one line
 * @bytes: that starling_alloc() or starling_tensor_alloc() wanted
 * @status: what the latter returned, or -errno after the former
 *
 * With the bytes in use, the largest free run, the regions, the limit with its key, and the runtime's words where it refused more;
 * all of it as of now. Any thread.
 */
STARLING_API void starling_alloc_error(
        struct starling_client *client, uint64_t bytes, int status, struct starling_error *ret_error);

/* Gives memory back. @data: what starling_alloc() returned; NULL is fine. Return: 0; -EINVAL: no such block is in use; -ECHILD. */
STARLING_API int starling_free(struct starling_client *client, void *data);

/**
 * starling_trim() - give back what the arena does not need now
 *
 * For a client that goes idle. Regions in which nothing is allocated go back to the runtime, where they count against the limits of
 * the client, its user and memory_max. The library starts no thread that would do so by itself; without this call they go when an
 * allocation finds no room. The next block may have to ask for a region again, and its pages are faulted in anew.
 *
 * Return: 0, also where a request in flight keeps a region; -EPIPE the runtime is gone; -ETIMEDOUT it lives but has not answered
 * for 5 s; -ECHILD. Any thread.
 */
STARLING_API int starling_trim(struct starling_client *client);

/**
 * starling_tensor_alloc() - memory for a tensor of this type and shape
 * @dims:       @rank of them, 0 or more: a tensor without elements has a place as well
 * @ret_tensor: all fields; give its data back with starling_free()
 *
 * Return: 0; -EINVAL no such type, rank or size; -EOVERFLOW the bytes do not fit 64 bits; otherwise as starling_alloc(), negative
 */
STARLING_API int starling_tensor_alloc(struct starling_client *client, enum starling_dtype dtype, uint32_t rank,
        const uint32_t *dims, struct starling_tensor *ret_tensor);

/* ---- requests ------------------------------------------------------------------------------------------------------------ */

enum {
        STARLING_NOOP = 1 << 0 /* answered at once by the runtime's dispatcher: model and tensors are not read */
};

struct starling_request {
        struct starling_model *model;
        const struct starling_tensor *inputs;  /* all of the model's, in its order; the same number of samples in each. Optional
                                                  ones, the last, may be zeroed or left out: the model's default */
        const struct starling_tensor *outputs; /* all of the model's, in its order; they may not lie over inputs. Where the model
                                                  says the sizes of all, those that are not wanted may be zeroed, but one */
        uint32_t n_inputs, n_outputs;
        uint32_t flags;       /* STARLING_NOOP or 0 */
        uint32_t priority;    /* below STARLING_PRIORITIES; 0 goes first. Or STARLING_BACKGROUND */
        uint64_t deadline_ns; /* absolute, see starling_clock_ns(); 0: none. A request that is late completes with -ETIME */
        uint64_t user_data;   /* comes back in the completion */
        uint64_t session;     /* 0; sequences of a model that keeps state are not served */
};

/* The actual shape of an output. */
struct starling_shape {
        uint64_t bytes;
        uint32_t dims[STARLING_RANK_MAX];
        uint32_t rank;
        enum starling_dtype dtype;
};

/* What was refused or failed: the thing, the value and the limit. */
struct starling_reason {
        uint16_t code;   /* what it is about; 0: the status says it all, and the other fields mean nothing */
        uint16_t tensor; /* the number of an input; of an output with the highest bit set */
        uint16_t axis;
        uint64_t got, limit;
        const char *text; /* what the model says of its failure, else NULL; valid as long as the completion's outputs */
};

struct starling_completion {
        uint64_t id; /* as starling_submit() returned it */
        uint64_t user_data;
        int32_t status;                       /* 0 or a negative errno value, see the top */
        uint32_t n_outputs;                   /* 0 unless status is 0 */
        const struct starling_shape *outputs; /* valid until the next poll, wait, infer or reconnect of this queue pair */
        uint64_t queued_ns;  /* from the runtime's taking the request to a worker's being given its first samples. With -EBUSY: how
                                long that is expected to take now, which is too long for the deadline; 0: the queue is full */
        uint64_t batched_ns; /* from there until a batch with it starts to compute */
        uint64_t computing_ns;         /* from there until the last model's last prediction is there */
        uint64_t combining_ns;         /* from there until the combined result is stored */
        uint64_t bytes_needed;         /* with -EMSGSIZE: what the first output that is too small wants; else 0 */
        struct starling_reason reason; /* why status is not 0, in numbers: starling_reason_text() has the words */
};

/**
 * starling_reason_text() - why a request was refused or failed
 * @completion: as it was reaped, before the next poll, wait, infer or reconnect of its queue pair
 * @bytes: of @ret_text; STARLING_TEXT_BYTES hold any
 *
 * One line that names the thing, the value and the limit; where the runtime said no more than the status, starling_strerror() of
 * that. Words are made here and not when completions are reaped, so that counting refusals costs nothing.
 *
 * Return: @ret_text, terminated. Any thread.
 */
STARLING_API const char *starling_reason_text(const struct starling_completion *completion, char *ret_text, size_t bytes);

/* Which members of an ensemble a result is made of: a bit for each, the lowest for the first in its configuration. */
struct starling_members {
        uint64_t any;         /* in the result of at least one sample */
        uint64_t all;         /* in that of every sample */
        uint64_t reserved[6]; /* 0 */
};

/**
 * starling_completion_members() - which members took part
 * @completion: as it was reaped, with status 0, before the next submit or infer of its queue pair
 *
 * Members are missing where an ensemble asks them until they agree, or has a quorum (docs/ensembles.md); else it is all of them. A
 * model by itself is one member.
 *
 * Return: 0; -ENODATA the status is not 0, or it has no outputs; -ENOTSUP the runtime is older and does not say. The queue pair's
 * owner thread.
 */
STARLING_API int starling_completion_members(
        const struct starling_queue *queue, const struct starling_completion *completion, struct starling_members *ret_members);

/**
 * starling_queue_open() - take a queue pair
 * @ret_queue: owned by one thread at a time; closed with starling_queue_close() or with the client
 *
 * Return: 0; -EMFILE all queue pairs are open; -EPERM a reader or administrator; -EPIPE; -ENOMEM; -ECHILD. Any thread.
 */
STARLING_API int starling_queue_open(
        struct starling_client *client, struct starling_queue **ret_queue, struct starling_error *error);

/**
 * starling_queue_close() - give a queue pair back
 *
 * Cancels what is in flight and waits for it, so that its buffers are the caller's again; completions that were not reaped are
 * dropped. A runtime that lives but does not answer is waited for 5 s; the queue pair then stays taken, and what was in flight may
 * still be written to by that runtime until the client is closed. NULL is fine. Return: NULL.
 */
STARLING_API struct starling_queue *starling_queue_close(struct starling_queue *queue);

/**
 * starling_submit() - queue one request; never blocks
 * @ret_id: for starling_cancel(), never 0; unique among the requests in flight of the queue pair. NULL is fine
 *
 * Makes no system call, unless the runtime sleeps and must be woken. At most queue_depth requests of a queue pair are accepted and
 * not yet reaped. What the runtime refuses later (-EBUSY, -ETIME, -ESTALE, -EDQUOT ...) comes as status and reason of the
 * completion.
 *
 * Return: 0, or (starling_queue_error() has the text)
 *   -EINVAL  a tensor does not suit the model, or does not lie in the arena; a flag or priority out of range
 *   -ENOTSUP a session other than 0; STARLING_BACKGROUND, of a runtime that is older
 *   -EDOM    of a task: no variant does what is needed
 *   -EBUSY   of a task: none can do it just now
 *   -EAGAIN  queue_depth requests are in flight or not reaped, or two that have more tensors than tensors_per_request and this is a
 *            third: nothing was queued
 *   -ESTALE  the model changed, seen at a reconnect;  -ENOENT  it is gone, seen at a reconnect
 *   -ENOMEM  for the shapes of the first request with more tensors than tensors_per_request
 *   -EPIPE   the runtime is known to be gone
 *   -ECHILD
 */
STARLING_API int starling_submit(struct starling_queue *queue, const struct starling_request *request, uint64_t *ret_id);

/**
 * starling_submit_many() - queue several requests as one; never blocks
 * @ret_ids: as many as are accepted; NULL is fine
 *
 * As starling_submit() for one after the other until one is refused, but published together: the runtime is looked at (and, when
 * it sleeps, woken) once.
 *
 * Return: how many were accepted, the first ones; what was wrong with the next one is its error when it is submitted again. When
 * the very first is refused, its error. 0 only for @n 0.
 */
STARLING_API int starling_submit_many(
        struct starling_queue *queue, const struct starling_request *requests, uint32_t n, uint64_t *ret_ids);

/**
 * starling_poll() - reap what has completed; does not wait for it
 * @ret_completions: at most @max, in the order of completion
 *
 * A thread that polls again and again for nothing, and does nothing in between, spins. One poll in 64 of such a row sleeps until
 * something completes, a millisecond at most, while the runtime says that more threads want to run than there are cores. With one
 * request alone in flight they have to be more than twice as many.
 *
 * Return: how many, 0 for none; -EPIPE the runtime is gone and nothing is left to reap; -EINVAL @max is 0; -ECHILD
 */
STARLING_API int starling_poll(struct starling_queue *queue, struct starling_completion *ret_completions, uint32_t max);

/**
 * starling_wait() - reap what has completed, and wait for the first
 * @timeout_ns: relative; 0 polls, STARLING_FOREVER waits until something completes
 *
 * Spins for a few microseconds, then sleeps. It sleeps at once when this thread may run on one CPU only, or the runtime says that
 * spinning does not help. That is so when more clients wait and workers compute than there are cores, or the runtime itself waits
 * longer than that for a core. While there are more than cores, time-outs below a millisecond count as one: short sleeps one after
 * the other take the cores that the answers need. The death of the runtime ends it.
 *
 * Return: how many, at least 1; or
 *   -ETIMEDOUT  nothing completed in time
 *   -ENODATA    nothing is in flight, so nothing will complete
 *   -EINTR      a signal came
 *   -EPIPE      the runtime is gone and nothing is left to reap
 *   -EINVAL     @max is 0
 *   -ECHILD
 */
STARLING_API int starling_wait(
        struct starling_queue *queue, struct starling_completion *ret_completions, uint32_t max, uint64_t timeout_ns);

/**
 * starling_infer() - submit one request and wait for it
 * @ret_completion: written whenever the request was accepted, whatever its status; NULL is fine
 *
 * Other requests of the queue pair may be in flight; those that complete meanwhile are kept for starling_poll(). To limit the
 * time, set deadline_ns. The runtime watches it: while that is stopped, there is no answer. A caller that must not wait for it
 * submits and calls starling_wait(). Signals do not end the wait.
 *
 * Return: the status of the request, or why it was not accepted, as starling_submit()
 */
STARLING_API int starling_infer(
        struct starling_queue *queue, const struct starling_request *request, struct starling_completion *ret_completion);

/**
 * starling_cancel() - ask for an early end of a request
 *
 * Its completion still comes, as -ECANCELED, or with its result if that was faster. Until then the buffers are the runtime's.
 *
 * Return: 0 it was asked for; -ENOENT no such request is in flight; -EPIPE; -ECHILD
 */
STARLING_API int starling_cancel(struct starling_queue *queue, uint64_t id);

/* Requests of this queue pair that are accepted and not yet reaped. */
STARLING_API uint32_t starling_queue_in_flight(const struct starling_queue *queue);

/*
 * Why the last submit, submit_many or infer of this queue pair that was refused or failed was so, whatever came after it; "" when
 * none was. Valid until its next call.
 */
STARLING_API const char *starling_queue_error(const struct starling_queue *queue);

/* ---- tasks: say what is needed, not which model ------------------------------------------------------------------------------ */

/*
 * A *task* is a name for a need that several models answer, its *variants*: the same inputs and outputs, and each with an accuracy
 * that the repository's configuration says. Whoever opens a task says how accurate, fast and cheap an answer must be; the library
 * chooses a variant for each request, by what the variants take and how long their queues are just then. The choice is a look at
 * memory that the runtime shares, and no message. Man page: starling_query_open(3); rules: docs/model-less.md.
 */
enum starling_variant_state {
        STARLING_VARIANT_ABSENT = 0,    /* no such model is known */
        STARLING_VARIANT_SERVES = 1,    /* it takes requests */
        STARLING_VARIANT_AVAILABLE = 2, /* it is loaded on request, and has been before: a request waits for its load */
        STARLING_VARIANT_UNLOADED =
                3, /* it is loaded on request, and has never been: starling_query_open() loads it if none else will do */
        STARLING_VARIANT_LOADING = 4,
        STARLING_VARIANT_FAILED = 5, /* reason says why */
        STARLING_VARIANT_DIFFERS = 6 /* its inputs or outputs are not the task's, or its file is not the one whose accuracy that
                                        says, as reason says: it is left out */
};

struct starling_task_entry {
        char name[STARLING_NAME_BYTES];
        uint32_t variants, serving; /* serving: of these, that take requests */
};

/* How the workers of a variant do, as the ends of their jobs say. */
enum starling_condition {
        STARLING_CONDITION_INACTIVE,   /* it has none, or nothing is known of them */
        STARLING_CONDITION_ACTIVE,     /* below their peak, as fast as usual */
        STARLING_CONDITION_OVERLOADED, /* all are busy without a break, and more waits */
        STARLING_CONDITION_INTERFERED  /* half or more take longer than usual, as if a neighbour cost them that */
};

/* A variant as it is just now. */
struct starling_variant {
        char name[STARLING_NAME_BYTES]; /* of its model */
        enum starling_variant_state state;
        uint32_t workers;      /* 0: the dispatcher alone computes it, or nobody does */
        double accuracy;       /* 0 to 1 */
        double cost;           /* as the configuration says; without costs there: nanoseconds that one sample computes */
        uint64_t latency_ns;   /* that one sample takes when nothing waits, as learned from its jobs; 0: not known */
        uint64_t batch_ns;     /* that a job of batch_samples takes */
        uint64_t wait_ns;      /* that a request which comes now is expected to wait */
        uint64_t memory_bytes; /* of its compiled plan; 0: it is not loaded */
        uint64_t load_ns;      /* that its last load took; 0: not known */
        uint32_t batch_samples;
        char reason[STARLING_TEXT_BYTES]; /* why it does not serve, or "" */
        uint32_t condition;               /* enum starling_condition */
        uint32_t choice;                  /* the rule of its task: 0 starling, 1 infaas, 2 cheapest, 3 accurate */
        uint32_t doubt;                   /* of latency_ns: queries take it to be as little as latency_ns / 2^doubt */
        uint64_t reserved[7];
};

/* As starling_model_list(), for tasks. Return: the number of tasks; -ENOTSUP the runtime is older and has none; -ECHILD. */
STARLING_API int starling_task_list(const struct starling_client *client, struct starling_task_entry *ret_entries, uint32_t max);

/**
 * starling_task_variants() - the variants of a task, and how they stand
 * @ret_variants: the first @max, in the order of the configuration
 *
 * Return: their number, which may exceed @max; -ENOENT no such task; -ENOTSUP the runtime is older and has none; -EAGAIN the list
 * is changing; -ENOMEM; -ECHILD. Any thread, any role.
 */
STARLING_API int starling_task_variants(
        const struct starling_client *client, const char *task, struct starling_variant *ret_variants, uint32_t max);

enum {
        STARLING_QUERY_CLOSEST = 1 << 0, /* where no variant will do, the closest one answers; else the request is refused */
        STARLING_QUERY_DEADLINE = 1 << 1 /* the latency is the deadline of each request, too: late ones complete with -ETIME */
};

/* What is needed. 0: anything. */
struct starling_query {
        double accuracy;       /* at least, 0 to 1; 0: the most accurate that keeps the rest */
        double accuracy_least; /* where no variant of `accuracy` will do just now, the most accurate from here on answers; 0: none
                                */
        double cost;           /* at most, in the task's own units */
        uint64_t latency_ns;   /* from submit to completion, at most, as expected. A deadline that is nearer counts in its place */
        uint32_t flags;        /* STARLING_QUERY_* */
        uint32_t reserved0;    /* 0 */
        uint64_t reserved[8];  /* 0 */
};

/**
 * starling_query_open() - open a task, with needs
 * @query:     what each request of this handle needs; NULL: the most accurate variant
 * @ret_model: a handle for requests as starling_model_open() gives one: its inputs and outputs are those that all variants have.
 * Open several for several needs. starling_model_close() forgets it
 *
 * A variant is chosen by each submit, from what stands in shared memory then. What no variant can ever meet is refused here; what
 * none can meet just now is refused by submit. The text names the need, its value, and the best that there is. A request whose
 * variant is gone, full or would be late when it arrives is submitted once more, to another one, when the refusal is reaped; a
 * starling_wait() that does so begins its time anew.
 *
 * Return: 0, or
 *   -EINVAL   a need is out of its range
 *   -ENOENT   no task of this name
 *   -EDOM     no variant is so accurate, so fast even when nothing waits, or so cheap
 *   -ENOTSUP  the runtime is older and has no tasks
 *   -EBUSY    variants that would do are still loading
 *   -EIO      no variant can be served
 *   -EAGAIN, -EDQUOT, -EINTR, -EPIPE, -ENOMEM, -ECHILD  as starling_model_open()
 */
STARLING_API int starling_query_open(struct starling_client *client, const char *task, const struct starling_query *query,
        struct starling_model **ret_model, struct starling_error *error);

enum starling_met {
        STARLING_MET_ALL = 0,    /* by what was known at the submit */
        STARLING_MET_LEAST = 1,  /* less accurate than `accuracy`, and at least as `accuracy_least` says */
        STARLING_MET_CLOSEST = 2 /* it misses some need: STARLING_QUERY_CLOSEST */
};

/* Which variant had a request. */
struct starling_answer {
        const char *variant; /* the name of its model; valid until the next submit, infer or close of the queue pair */
        double accuracy;
        enum starling_met met;
        uint32_t tries;       /* 2: another variant was chosen first, and refused it */
        uint64_t expected_ns; /* from submit to completion, as it was expected then; 0: not known */
        uint64_t reserved[4];
};

/**
 * starling_completion_variant() - which variant a request of a query went to
 * @completion: as it was reaped, before the next submit, infer or close of its queue pair
 *
 * Return: 0; -ENOENT its model was opened by its own name. The queue pair's owner thread.
 */
STARLING_API int starling_completion_variant(
        const struct starling_queue *queue, const struct starling_completion *completion, struct starling_answer *ret_answer);

/* ---- event loops --------------------------------------------------------------------------------------------------------- */

/**
 * starling_queue_fd() - a file descriptor for poll(), epoll and their like
 *
 * It is readable when an armed queue pair has something to reap, and when the runtime has gone. It is to be watched, never to be
 * read or closed; it stays the same across a reconnect, and it is made at the first call. A turn of the loop:
 *
 *     while (starling_poll(queue, completions, max) > 0)
 *             handle them;
 *     if (starling_queue_arm(queue) == 0)
 *             wait until the descriptor is readable;
 *
 * Return: the descriptor; -EMFILE, -ENOMEM, -ENOSPC from the system; -ENOTSUP the runtime offers none; -ECHILD
 */
STARLING_API int starling_queue_fd(struct starling_queue *queue);

/**
 * starling_queue_arm() - make the descriptor tell of the next completion
 *
 * Lasts until the next poll, wait or infer of this queue pair. With nothing in flight it is armed for what is submitted afterwards:
 * a loop that waits for nothing else looks at starling_queue_in_flight() first, or waits until something is submitted.
 *
 * Return: 0 armed; 1 there is something to reap already; -EPIPE the runtime is gone and nothing is left to reap; -EINVAL
 * starling_queue_fd() was not called; -ECHILD
 */
STARLING_API int starling_queue_arm(struct starling_queue *queue);

/* ---- administration ------------------------------------------------------------------------------------------------------ */

/*
 * For clients of STARLING_ROLE_ADMIN; each waits until the runtime has done it: what is submitted after it has returned, by any
 * client, meets the new version (or none), also as a member of ensembles. Any thread; they run one after the other.
 *
 * Return: 0, or the runtime's refusal with its text: -EPERM another role; -ENOENT no such model in the repository, or it is not
 * loaded; -EINVAL its configuration or what it needs is wrong; -EEXIST it is loaded already; -EBUSY it is a member of
 * an ensemble that is loaded, or 64 wait for it already; -EIO it does not load; -ECANCELED something else was asked for meanwhile:
 * it was unloaded, loaded again, or has left the repository; -ENOSPC the catalogue is full; -EPIPE; -ECHILD
 *
 * Who asks for what is under way waits for the same. Who asks for something else changes what is wanted at once: a load that
 * nobody wants any more is cancelled.
 */
STARLING_API int starling_admin_load(struct starling_client *client, const char *model, struct starling_error *error);
STARLING_API int starling_admin_unload(struct starling_client *client, const char *model, struct starling_error *error);

/*
 * Puts the newest version in the place of the one that serves; that one serves until then. Requests in flight end normally, but for
 * those of an open model that wait for their sizes to be compiled: -ECANCELED.
 */
STARLING_API int starling_admin_reload(struct starling_client *client, const char *model, struct starling_error *error);

/*
 * A worker of a model. @device: "cpu" (all cores of workers), "cpu:2", a let "cpu:0-1+4"; for a model on a GPU, "gpu:1" or
 * "gpu:1/50%". @batch: samples of its largest batch, a power of two or the model's batch_max.
 */
struct starling_allotment {
        const char *model, *device;
        uint32_t batch;
};

/*
 * The workers of all models that @allotments name become these, while they serve; other models keep theirs. New workers are ready
 * before old ones leave, and the memory of all of them is promised first. It holds for each until another one names it or the
 * runtime ends; @n 0: as the configuration says, of all. Returns when the old workers have left. One that comes while another is
 * being applied joins it: it has the last word on models that both name, and all or nothing is then both together.
 *
 * Return: 0; otherwise nothing has changed (with @n 0: the workers of one model have not), with the runtime's text: -EINVAL a
 * model, a device or a batch size that there is none; -E2BIG more than 64 workers of a model, those that are there until the new
 * ones come among them, or 4096 in all; -ENOMEM what they need and what there is; -EBUSY models are being loaded, or, with @n 0, an
 * allocation is being applied; -ECANCELED, with @n 0, an allocation came meanwhile; -EIO a worker does not start; -EPERM; -EPIPE;
 * -ECHILD
 */
STARLING_API int starling_admin_apply(
        struct starling_client *client, const struct starling_allotment *allotments, uint32_t n, struct starling_error *error);

#ifdef __cplusplus
}
#endif

#endif
