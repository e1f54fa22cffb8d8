/* SPDX-License-Identifier: Apache-2.0 */
#include "external_opener.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/thread.h"
#include "child_args.h"
#include "model_file.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define REQUESTS_MAX 65536u
#define NICENESS     10 /* the child's */

struct opened_folder {
        char *model_path;
        struct sl_model_folder opened;
};

struct opener {
        int socket_fd;
        char **others;
        uint32_t n_others, n_requests, n_folders;
        struct opened_folder folders[];
};

static struct opener *opener_free(struct opener *opener)
{
        sl_cleanup_fd(&opener->socket_fd);
        for (uint32_t i = 0; i < opener->n_folders; i++) {
                sl_model_folder_close(&opener->folders[i].opened);
                free(opener->folders[i].model_path);
        }
        for (uint32_t i = 0; i < opener->n_others; i++)
                free(opener->others[i]);
        free(opener->others);
        free(opener);
        return NULL;
}

/* @fd: passed on; -1: none. */
static int send_answer(const struct opener *opener, const struct sl_child_answer *answer, int fd)
{
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(fd))] = {0};
        struct iovec part = {.iov_base = (void *)answer, .iov_len = sizeof(*answer)};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

        if (fd >= 0) {
                message.msg_control = control;
                message.msg_controllen = sizeof(control);
                *CMSG_FIRSTHDR(&message) =
                        (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(fd))};
                memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof(fd));
        }
        return sendmsg(opener->socket_fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int open_location(
        struct opener *opener, uint32_t model, const char *location, size_t length, int *ret_fd, struct sl_error *error)
{
        const struct sl_data_folders others = {(const char *const *)opener->others, opener->n_others};
        struct opened_folder *folder = &opener->folders[model < opener->n_folders ? model : 0];
        int r = 0;

        if (model >= opener->n_folders)
                return sl_error_set(error, EACCES, "external data of model %u: there are %u", model, opener->n_folders);
        if (strlen(location) != length || length >= SL_CHILD_LOCATION_BYTES_MAX)
                return sl_error_set(error, EACCES, "external data \"%s\": no name of a file", location);
        if (++opener->n_requests > REQUESTS_MAX)
                return sl_error_set(error, E2BIG, "external data \"%s\": asked for more than %u times", location, REQUESTS_MAX);
        if (folder->opened.fd < 0)
                r = sl_model_folder_open(folder->model_path, &others, &folder->opened);
        if (r < 0)
                return sl_error_set(error, EIO, "external data \"%s\": the model's folder: %s", location, strerror(-r));
        return sl_model_folder_open_file(&folder->opened, location, ret_fd, error);
}

/* Return: 0; -EPIPE the child is done. */
static int answer_request(struct opener *opener)
{
        char request[1 + SL_CHILD_LOCATION_BYTES_MAX + 1]; /* number, location, terminator */
        ssize_t n = recv(opener->socket_fd, request, sizeof(request) - 1, 0);
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        struct sl_child_answer answer = {0};
        struct sl_error error = {""};

        if (n <= 0)
                return -EPIPE;
        request[n] = 0;
        answer.code = -open_location(opener, (unsigned char)request[0], request + 1, (size_t)n - 1, &fd, &error);
        memcpy(answer.text, error.text, sizeof(answer.text));
        return send_answer(opener, &answer, fd) < 0 ? -EPIPE : 0;
}

static void *external_opener_run(void *argument)
{
        struct opener *opener = argument;

        (void)setpriority(PRIO_PROCESS, 0, NICENESS);
        while (opener->n_requests <= REQUESTS_MAX && answer_request(opener) == 0)
                ;
        opener_free(opener);
        return NULL;
}

/* Descriptors under way count against the whole user's: the least buffer lets few of them wait for a child that does not read. */
static void bound_answers(int socket_fd)
{
        const int least = 1;

        (void)setsockopt(socket_fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
}

static int start_thread(struct opener *opener)
{
        pthread_t thread;
        int r = sl_thread_start_aside(NULL, "sl-external", external_opener_run, opener, &thread);

        if (r == 0)
                pthread_detach(thread);
        return r;
}

static bool copy_others(const struct sl_data_folders *others, struct opener *opener)
{
        opener->others = calloc(others->n + 1u, sizeof(*opener->others));
        for (uint32_t i = 0; i < others->n && opener->others && opener->n_others == i; i++) {
                opener->others[i] = strdup(others->paths[i]);
                opener->n_others += opener->others[i] != NULL;
        }
        return opener->others && opener->n_others == others->n;
}

int sl_external_opener_start(const char *const *model_paths, uint32_t n_models, const struct sl_data_folders *others, int socket_fd)
{
        struct opener *opener = calloc(1, sizeof(*opener) + n_models * sizeof(*opener->folders));
        bool complete = true;
        int r;

        if (!opener) {
                close(socket_fd);
                return -ENOMEM;
        }
        opener->socket_fd = socket_fd;
        opener->n_folders = n_models;
        for (uint32_t i = 0; i < n_models; i++) {
                opener->folders[i] = (struct opened_folder){.model_path = strdup(model_paths[i]), .opened.fd = -1};
                complete = complete && opener->folders[i].model_path;
        }
        if (others)
                complete = copy_others(others, opener) && complete;
        bound_answers(socket_fd);
        r = complete ? start_thread(opener) : -ENOMEM;
        if (r < 0)
                opener_free(opener);
        return r;
}
