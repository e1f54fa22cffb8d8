/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that a runtime needs, and what dead ones have left. */
#include "base/cleanup.h"
#include "cache_folder.h"
#include "checks.h"
#include "config.h"
#include "finding.h"
#include "host.h"
#include "stats_claim.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MIB(bytes) ((double)(bytes) / (1ull << 20))

enum folder_state { FOLDER_USABLE, FOLDER_TO_BE_MADE, FOLDER_CLOSED, FOLDER_NOT_KNOWN };

/* @path is below the root. */
static bool is_folder(const char *path)
{
        struct stat status;

        return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Takes the last name off: "/" stays. */
static void go_up(char *path)
{
        char *slash;

        for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
                path[n - 1] = 0;
        slash = strrchr(path, '/');
        if (slash)
                slash[slash == path] = 0;
}

/* A folder that is not there is made, and @n_above of those above it. */
static enum folder_state look_at_folder(const struct sl_host *host, const char *folder, uint32_t n_above)
{
        char path[PATH_MAX];
        bool there;

        sl_host_path(host, folder, path);
        there = is_folder(path);
        for (uint32_t i = 0; !is_folder(path) && i <= n_above; i++)
                go_up(path);
        if (!host->probes->may_write)
                return FOLDER_NOT_KNOWN;
        if (!is_folder(path) || !host->probes->may_write(path))
                return FOLDER_CLOSED;
        return there ? FOLDER_USABLE : FOLDER_TO_BE_MADE;
}

void sl_check_socket_folder(const struct sl_host *host, struct sl_finding *finding)
{
        static const char *const texts[] = {[FOLDER_USABLE] = "%s",
                [FOLDER_TO_BE_MADE] = "%s, which the runtime makes",
                [FOLDER_CLOSED] = "%s is not there, or this user may not make files in it",
                [FOLDER_NOT_KNOWN] = "%s; only the host itself can tell which users may make files in it"};
        enum folder_state state = *host->socket_folder ? look_at_folder(host, host->socket_folder, 0) : FOLDER_CLOSED;

        sl_found(finding,
                state == FOLDER_CLOSED      ? SL_VERDICT_WRONG
                : state == FOLDER_NOT_KNOWN ? SL_VERDICT_UNKNOWN
                                            : SL_VERDICT_OK,
                texts[state], *host->socket_folder ? host->socket_folder : "a path that is too long for a socket");
        if (state != FOLDER_CLOSED)
                return;
        sl_change(finding,
                "RuntimeDirectory=starling of the unit; mkdir -p and chown; or another folder by $STARLING_SOCKET_DIR, or "
                "socket_dir of the configuration");
        sl_gain(finding, "a runtime that cannot listen there does not start");
}

/* Whose it is, and who else may write, counts: others could bring plans of theirs. */
static bool is_private(const char *path)
{
        struct stat status;

        return stat(path, &status) == 0 && status.st_uid == geteuid() && !(status.st_mode & 022);
}

/* A plan has about the size of its model. */
#define LITTLE_ROOM (256ull << 20)

static void look_at_room(const struct sl_host *host, const char *path, struct sl_finding *finding)
{
        struct sl_space space;

        if (!host->probes->space || host->probes->space(path, &space) < 0)
                return;
        sl_found_too(
                finding, ", %.0f MiB are free, cache.bytes is %.0f MiB", MIB(space.free_bytes), MIB(host->config->cache_bytes));
        if (space.free_bytes >= LITTLE_ROOM)
                return;
        finding->verdict = SL_VERDICT_BETTER;
        sl_change(finding, "starling cache clear, or another cache.directory");
        sl_gain(finding, "plans that do not fit are compiled again with each start");
}

static void look_at_cache(const struct sl_host *host, const char *folder, uint32_t n_above, struct sl_finding *finding)
{
        enum folder_state state = look_at_folder(host, folder, n_above);
        char path[PATH_MAX];

        sl_host_path(host, folder, path);
        sl_found(finding, state == FOLDER_NOT_KNOWN ? SL_VERDICT_UNKNOWN : SL_VERDICT_OK, "%s%s", folder,
                state == FOLDER_TO_BE_MADE ? ", which the runtime makes" : "");
        if (state == FOLDER_CLOSED || (state == FOLDER_USABLE && !is_private(path))) {
                finding->verdict = SL_VERDICT_BETTER;
                sl_found_too(finding, state == FOLDER_CLOSED ? " is not there, or this user may not make files in it"
                                                             : " belongs to another user, or others may write to it");
                sl_change(finding, "CacheDirectory=starling of the unit; chown and chmod 0700; or another cache.directory");
                sl_gain(finding, "plans are kept: else each start compiles all models again");
        } else if (state == FOLDER_USABLE) {
                look_at_room(host, path, finding);
        }
}

void sl_check_cache_folder(const struct sl_host *host, struct sl_finding *finding)
{
        char folder[PATH_MAX];
        struct sl_error error;

        if (!host->config->cache_bytes)
                sl_found(finding, SL_VERDICT_OK, "none, as cache.bytes is 0");
        else if (host->config->cache_directory)
                look_at_cache(host, host->config->cache_directory, 0, finding);
        else if (*host->root)
                sl_found(finding, SL_VERDICT_UNKNOWN, "the runtime's user has it in its home");
        else if (sl_cache_folder_default(folder, &error) == 0)
                look_at_cache(host, folder, 1, finding);
        else {
                sl_found(finding, SL_VERDICT_BETTER, "%s", error.text);
                sl_change(finding, "cache.directory in the configuration, or $XDG_CACHE_HOME");
                sl_gain(finding, "plans are kept: else each start compiles all models again");
        }
}

void sl_check_repositories(const struct sl_host *host, struct sl_finding *finding)
{
        const struct sl_config *config = host->config;
        char path[PATH_MAX];

        for (uint32_t i = 0; i < config->n_repositories; i++) {
                if (is_folder(sl_host_path(host, config->repositories[i], path)))
                        continue;
                sl_found(finding, host->probes->may_write ? SL_VERDICT_WRONG : SL_VERDICT_UNKNOWN,
                        "\"%s\" is no folder, or this user may not see it", config->repositories[i]);
                sl_change(finding, "model_repositories in the configuration");
                sl_gain(finding, "a runtime with this configuration does not start here");
                return;
        }
        if (config->n_repositories)
                sl_found(finding, SL_VERDICT_OK, "%u, all of them there", config->n_repositories);
        else
                sl_found(finding, SL_VERDICT_OK, "none is configured; `starling serve` takes them as arguments");
}

#define SHM    "/dev/shm"
#define PREFIX "starling."

/* Has the page been left by a runtime that is dead? */
static bool is_left_behind(int folder, const char *name)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;

        if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
                return false;
        fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        return fd >= 0 && !sl_claim_is_held(fd);
}

static uint32_t list_left_behind(DIR *folder, struct sl_finding *finding)
{
        const struct dirent *entry;
        uint32_t n = 0;

        while ((entry = readdir(folder))) {
                if (!is_left_behind(dirfd(folder), entry->d_name))
                        continue;
                if (n++ == 0)
                        sl_found(finding, SL_VERDICT_BETTER, "no process holds");
                sl_found_too(finding, "%s " SHM "/%s", n > 1 ? "," : "", entry->d_name);
        }
        return n;
}

void sl_check_left_behind(const struct sl_host *host, struct sl_finding *finding)
{
        char path[PATH_MAX];
        DIR *folder = opendir(sl_host_path(host, SHM, path));

        sl_found(finding, folder ? SL_VERDICT_OK : SL_VERDICT_UNKNOWN, folder ? "nothing" : SHM " cannot be read");
        if (folder && list_left_behind(folder, finding)) {
                sl_change(finding, "`starling stats NAME` shows what a runtime counted until its end, `starling postmortem NAME` "
                                   "what NAME~last did; then "
                                   "rm, or a start of that name");
                sl_gain(finding, "memory, up to limits.stats_bytes for each; they are left as flight recorders");
        }
        if (folder)
                closedir(folder);
}
