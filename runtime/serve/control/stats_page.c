/* SPDX-License-Identifier: Apache-2.0 */
#include "stats_page.h"

#include "base/error.h"
#include "base/fields.h"
#include "listener.h"
#include "runtime_options.h"
#include "stats.h"
#include "stats_guard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define LOG_WARNING 1 /* as sl_runtime_log_fn counts */

struct place {
        const struct sl_runtime_options *options;
        const char *wait_name;
        char folder[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /* of the socket */
};

static void log_fields(const struct place *place, const char *event, const struct sl_fields *fields)
{
        if (place->options->log)
                place->options->log(place->options->context, LOG_WARNING, event, fields->text);
}

static uint32_t *join(const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b)
{
        uint32_t *all = malloc((n_a + n_b + 1ul) * sizeof(*all));

        if (all && n_a)
                memcpy(all, a, n_a * sizeof(*all));
        if (all && n_b)
                memcpy(all + n_a, b, n_b * sizeof(*all));
        return all;
}

/* Whoever may attach as a reader may read the page. */
static int create_guarded(const struct place *place, const char *folder, struct sl_stats **ret_stats, struct sl_error *error)
{
        const struct sl_access *access = &place->options->access;
        uint32_t *uids = join(access->client_uids, access->n_client_uids, access->reader_uids, access->n_reader_uids);
        uint32_t *gids = join(access->client_gids, access->n_client_gids, access->reader_gids, access->n_reader_gids);
        struct sl_stats_guard guard = {
                .everybody = access->everybody_client || access->everybody_reader,
                .uids = uids,
                .n_uids = access->n_client_uids + access->n_reader_uids,
                .gids = gids,
                .n_gids = access->n_client_gids + access->n_reader_gids,
        };
        int r = -ENOMEM;

        if (uids && gids)
                r = sl_stats_create(
                        &(struct sl_stats_options){
                                .name = place->options->name,
                                .directory = folder,
                                .wait_name = place->wait_name,
                                .guard = &guard,
                                .bytes = place->options->stats_bytes,
                                .release = STARLING_VERSION,
                                .counts = {[SL_STATS_CLIENTS] = place->options->clients_max},
                        },
                        ret_stats, error);
        else
                sl_error_set(error, ENOMEM, "stats page: no memory");
        free(uids);
        free(gids);
        return r;
}

static int create_beside_socket(
        const struct place *place, const struct sl_error *cause, struct sl_stats **ret_stats, struct sl_error *error)
{
        struct sl_fields fields = {0};
        struct sl_error own;
        int r = create_guarded(place, place->folder, ret_stats, &own);

        if (r < 0)
                return sl_error_set(error, -r, "%s; beside the socket: %s", cause->text, own.text);
        sl_fields_add(&fields, "path", sl_stats_path(*ret_stats));
        sl_fields_add(&fields, "cause", cause->text);
        log_fields(place, "stats-page-elsewhere", &fields);
        return 0;
}

/* The usual place is somebody else's, is not there, cannot be written to, or is full: the name is as free as before. */
static bool has_no_room(int r)
{
        static const int causes[] = {EPERM, EACCES, ENOENT, ENOTDIR, EROFS, ENOSPC, EDQUOT};

        for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
                if (r == -causes[i])
                        return true;
        return false;
}

/* The page is also the claim on the name: one beside the socket counts as much as one in its usual place. */
static int create(const struct place *place, struct sl_stats **ret_stats, struct sl_error *error)
{
        struct sl_error cause = {""};
        int r;

        if (sl_stats_stays_claimed(place->options->name, place->folder))
                return sl_error_set(error, EADDRINUSE, "stats page \"%s/starling.%s\": a runtime of this name is running",
                        place->folder, place->options->name);
        r = create_guarded(place, NULL, ret_stats, &cause);
        if (has_no_room(r))
                return create_beside_socket(place, &cause, ret_stats, error);
        if (r < 0)
                *error = cause;
        return r;
}

static void log_left_behind(const struct place *place, const char *socket_path, const struct sl_stats *stats)
{
        struct sl_fields fields = {0};

        if (sl_stats_has_replaced(stats))
                sl_fields_add(&fields, "stats_page", sl_stats_path(stats));
        if (sl_listener_is_there(socket_path))
                sl_fields_add(&fields, "socket", socket_path);
        if (fields.used)
                log_fields(place, "left-behind-replaced", &fields);
}

static void log_unguarded(const struct place *place, const struct sl_stats *stats)
{
        struct sl_fields fields = {0};

        if (sl_stats_guarded(stats) == 0)
                return;
        sl_fields_add(&fields, "path", sl_stats_path(stats));
        sl_fields_add(&fields, "cause", strerror(-sl_stats_guarded(stats)));
        log_fields(place, "stats-page-closed", &fields);
}

int sl_stats_page_make(const struct sl_runtime_options *options, const char *socket_path, const char *wait_name,
        struct sl_stats **ret_stats, struct sl_error *error)
{
        struct place place = {.options = options, .wait_name = wait_name};
        const char *slash = strrchr(socket_path, '/');
        int r;

        if (slash)
                memcpy(place.folder, socket_path, (size_t)(slash - socket_path));
        else
                strcpy(place.folder, ".");
        r = create(&place, ret_stats, error);
        if (r < 0)
                return r;
        log_left_behind(&place, socket_path, *ret_stats);
        log_unguarded(&place, *ret_stats);
        return 0;
}
