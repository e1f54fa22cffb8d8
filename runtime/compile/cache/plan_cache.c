/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_cache.h"

#include "backend.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cache_folder.h"
#include "cache_record.h"
#include "format.h"
#include "lower_options.h"
#include "plan.h"
#include "plan_copier.h"
#include "stop.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#define SETTLED_SECONDS 2
#define CPUINFO_BYTES   16384
#define MODEL_MAGIC     0x31304c444f4d4c53u /* "SLMODL01" */
#define BASE_MAGIC      0x31305341424c5301u
#define INTACT_MAGIC    0x3130544e494c5301u
#define TARGET_MAGIC    0x3245524f434c5301u
#define MERGED_MAGIC    0x31304547524d4c53u
#define CHOICES_MAGIC   0x313048434c5301u
#define BOOT_ID_BYTES   36
#define BESIDE_BYTES    (2 * 4096) /* what a plan takes beyond its size: the rest of its last page, and its record */

struct sl_plan_cache {
        int fd; /* of the folder */
        uint64_t bytes_max;
        uint64_t unseen;       /* bytes that may be kept before the folder is looked at again; the copier's */
        struct sl_digest host; /* processor, libraries, format */
        struct sl_digest boot; /* this start of the host; zero when it is not known */
        struct sl_plan_copier copier;
        _Atomic uint32_t holders; /* fetch-add-relaxed by who holds one; fetch-sub-acq-rel; the last one frees */
};

/* ---- the records (cache_record.h) ---- */

/* IDENTITY.model */
struct known_model {
        uint64_t magic, folder;
        struct sl_digest digest;
        uint64_t checksum;
};

/* FAMILY.base */
struct known_base {
        uint64_t magic;
        char name[SL_PLAN_CACHE_NAME_BYTES];
        struct sl_plan_identity identity;
        uint64_t checksum;
};

/* HOST.core */
struct known_target {
        uint64_t magic;
        struct sl_target target;
        uint64_t checksum;
};

/* KEY.intact, KEY.UID.intact */
struct known_intact {
        uint64_t magic;
        struct sl_digest identity; /* of the plan file */
        uint64_t checksum;
};

SL_DEFINE_CLEANUP(struct sl_plan *, sl_plan_free)
SL_DEFINE_CLEANUP(struct sl_plan_cache *, sl_plan_cache_free)

static struct sl_digest mix(struct sl_digest seed, const void *bytes, size_t n)
{
        XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, n, seed.low ^ (seed.high << 1 | seed.high >> 63));

        return (struct sl_digest){hash.low64, hash.high64};
}

/* The lines that tell kinds of processors apart, of the first one; a host without them has one kind. */
static struct sl_digest mix_processor(struct sl_digest seed)
{
        static const char *const keys[] = {"vendor_id", "cpu family", "model", "stepping", "cache size", "flags"};
        SL_CLEANUP(sl_cleanup_fd) int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
        SL_CLEANUP(sl_cleanup_free) char *text = calloc(1, CPUINFO_BYTES);
        char *rest;

        if (fd < 0 || !text || read(fd, text, CPUINFO_BYTES - 1) <= 0)
                return seed;
        rest = strstr(text, "\n\n");
        if (rest)
                *rest = 0;
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
                for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
                        if (!strncmp(line, keys[i], strlen(keys[i])))
                                seed = mix(seed, line, strlen(line));
                }
        }
        return seed;
}

static struct sl_digest digest_host(void)
{
        struct sl_plan_key key = sl_plan_key_here();
        uint32_t version = SL_PLAN_VERSION;
        struct sl_digest digest = mix((struct sl_digest){0}, &version, sizeof(version));

        digest = mix(digest, SL_PLAN_RELEASE, sizeof(SL_PLAN_RELEASE));
        return mix_processor(mix(digest, &key, sizeof(key)));
}

/* What plans of a backend depend on; of one whose device is elsewhere, its target says it. */
static struct sl_digest mix_backend(struct sl_digest seed, const struct sl_backend *backend)
{
        char key[SL_BACKEND_KEY_BYTES] = "";

        if (!backend)
                return seed;
        if (backend->key)
                (void)backend->key(NULL, key);
        return mix(mix(seed, backend->name, strlen(backend->name)), key, strlen(key));
}

/* What a crash of the host left half-written must be read again, whatever the file system says of it. */
static struct sl_digest digest_boot(void)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
        char id[BOOT_ID_BYTES];

        if (fd < 0 || read(fd, id, sizeof(id)) != sizeof(id))
                return (struct sl_digest){0};
        return mix((struct sl_digest){0}, id, sizeof(id));
}

static void name_of(struct sl_digest digest, const char *suffix, char ret_name[SL_PLAN_CACHE_NAME_BYTES])
{
        snprintf(ret_name, SL_PLAN_CACHE_NAME_BYTES, "%016llx%016llx.%s", (unsigned long long)digest.high,
                (unsigned long long)digest.low, suffix);
}

static bool recall_model(const struct sl_plan_cache *cache, struct sl_digest identity, struct known_model *ret_known)
{
        char name[SL_PLAN_CACHE_NAME_BYTES];

        name_of(identity, "model", name);
        return sl_cache_record_read(cache->fd, name, MODEL_MAGIC, ret_known, sizeof(*ret_known)) == 0 && ret_known->folder <= 1;
}

static void remember_model(struct sl_plan_cache *cache, struct sl_digest identity, struct known_model *known)
{
        char name[SL_PLAN_CACHE_NAME_BYTES];

        name_of(identity, "model", name);
        sl_cache_record_write(cache->fd, name, known, sizeof(*known)); /* Without it the model is read again, no more. */
}

/*
 * The content's digest: from what is known of this identity, or by reading. A model with external data is found in two steps: its
 * own identity says that the folder counts, that of the folder gives the digest.
 */
static int digest_model(struct sl_plan_cache *cache, const char *path, uint64_t bytes_max, const struct sl_stop *stop,
        struct sl_plan_cache_key *key, struct sl_digest *ret_digest)
{
        struct known_model known = {.magic = MODEL_MAGIC};
        const int64_t settled = (int64_t)time(NULL) - SETTLED_SECONDS; /* what changes while it is read has changed later */
        int64_t changed, folder_changed = 0;
        struct sl_model_content content;
        struct sl_digest own;
        int r = sl_model_identify(path, false, &own, &changed);

        key->identity = own;
        key->folder = false;
        if (r == 0 && recall_model(cache, own, &known) && !known.folder) {
                *ret_digest = known.digest;
                return 0;
        }
        if (r == 0 && known.folder) {
                key->folder = true;
                r = sl_model_identify(path, true, &key->identity, &folder_changed);
                if (r == 0 && recall_model(cache, key->identity, &known)) {
                        *ret_digest = known.digest;
                        return 0;
                }
        }
        if (r == 0)
                r = sl_model_digest(path, bytes_max, stop, &content);
        if (r == 0 && content.folder)
                r = sl_model_identify(path, true, &key->identity, &folder_changed);
        if (r == 0 && content.by_status && folder_changed >= settled)
                return -EAGAIN; /* once more in the same tick of the clock, and nobody would see it */
        if (r < 0)
                return r;
        key->folder = content.folder;
        *ret_digest = content.digest;
        known = (struct known_model){.magic = MODEL_MAGIC, .folder = content.folder, .digest = content.digest};
        if (changed < settled)
                remember_model(cache, own, &known);
        if (changed < settled && folder_changed < settled && content.folder)
                remember_model(cache, key->identity, &known);
        return 0;
}

/* All of them, or all but @without. */
static struct sl_digest mix_options(struct sl_digest seed, const struct sl_lower_options *lowering, enum sl_lower_option without)
{
        for (uint32_t i = 0; i < SL_LOWER_OPTION_COUNT; i++) {
                const char *name = sl_lower_option_name((enum sl_lower_option)i);
                char text[SL_LOWER_OPTION_TEXT_BYTES];

                if (i == without)
                        continue;
                sl_lower_options_text(lowering, (enum sl_lower_option)i, text);
                seed = mix(mix(seed, name, strlen(name)), text, strlen(text));
        }
        return seed;
}

static int no_digest(const char *path, int r, uint64_t bytes_max, struct sl_error *error)
{
        switch (r) {
        case -EFBIG:
                return sl_error_set(
                        error, -r, "\"%s\": the file is larger than model_bytes_max, %" PRIu64 " bytes", path, bytes_max);
        case -ETIME:
                return sl_error_set(error, -r, "\"%s\": reading it and its folder for their digest takes too long", path);
        case -EAGAIN:
                return sl_error_set(error, -r,
                        "\"%s\": files of its folder have more than model_bytes_max, %" PRIu64
                        " bytes, and changed less than %d s ago",
                        path, bytes_max, SETTLED_SECONDS);
        default:
                return sl_error_set(error, -r, "\"%s\": %s", path, strerror(-r));
        }
}

int sl_plan_cache_key(struct sl_plan_cache *cache, const char *model_path, const char *program,
        const struct sl_lower_options *lowering, const struct sl_stop *stop, struct sl_plan_cache_key *ret_key,
        struct sl_error *error)
{
        const struct sl_stop none = {.verdict = NULL};
        struct sl_plan_cache_key key = {0};
        struct sl_digest compiler, model, all;
        int64_t changed;
        int r = sl_model_identify(program ? program : "/proc/self/exe", false, &compiler, &changed);

        if (r < 0)
                return sl_error_set(error, -r, "\"%s\": %s", program ? program : "/proc/self/exe", strerror(-r));
        r = digest_model(cache, model_path, lowering->model_bytes_max, stop ? stop : &none, &key, &model);
        if (r < 0)
                return no_digest(model_path, r, lowering->model_bytes_max, error);
        all = mix(mix_backend(cache->host, sl_backend_find(sl_lower_options_backend(lowering))), &compiler, sizeof(compiler));
        all = mix(all, &model, sizeof(model));
        key.content = model;
        key.digest = mix_options(all, lowering, SL_LOWER_OPTION_COUNT);
        name_of(key.digest, "plan", key.name);
        name_of(mix_options(all, lowering, SL_LOWER_OPTION_shapes), "base", key.family);
        *ret_key = key;
        return 0;
}

static bool recall_target(const struct sl_plan_cache *cache, const char *name, struct known_target *ret_known)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;

        if (sl_cache_record_open(cache->fd, name, TARGET_MAGIC, ret_known, sizeof(*ret_known), &fd) < 0)
                return false;
        (void)futimens(fd, NULL); /* a use: plans without number depend on it */
        return true;
}

static int name_target(const struct sl_plan_cache *cache, const struct sl_backend *backend, char ret_name[SL_PLAN_CACHE_NAME_BYTES])
{
        struct sl_digest program;
        int64_t changed;

        if (!backend || !backend->planner->measure || sl_model_identify("/proc/self/exe", false, &program, &changed) < 0)
                return -ENOTSUP;
        name_of(mix(mix_backend(cache->host, backend), &program, sizeof(program)), "core", ret_name);
        return 0;
}

int sl_plan_cache_recall_target(const struct sl_plan_cache *cache, const char *backend, struct sl_target *ret_target)
{
        char name[SL_PLAN_CACHE_NAME_BYTES];
        struct known_target known;
        int r = name_target(cache, sl_backend_find(backend), name);

        if (r < 0)
                return r;
        if (!recall_target(cache, name, &known))
                return -ENOENT;
        *ret_target = known.target;
        return 0;
}

int sl_plan_cache_target(struct sl_plan_cache *cache, const char *backend, struct sl_target *ret_target)
{
        const struct sl_backend *found = sl_backend_find(backend);
        struct known_target known = {.magic = TARGET_MAGIC};
        char name[SL_PLAN_CACHE_NAME_BYTES];
        int r = name_target(cache, found, name);

        if (r < 0)
                return r;
        if (!recall_target(cache, name, &known)) {
                known = (struct known_target){.magic = TARGET_MAGIC};
                r = found->planner->measure(&known.target);
                if (r < 0)
                        return r;
                sl_cache_record_write(
                        cache->fd, name, &known, sizeof(known)); /* Without it the next start measures again, no more. */
        }
        *ret_target = known.target;
        return 0;
}

void sl_plan_cache_key_on(struct sl_plan_cache_key *key, const struct sl_plan *base)
{
        struct sl_plan_identity identity;

        if (!base)
                return;
        identity = sl_plan_identity(base);
        key->digest = mix(key->digest, &identity, sizeof(identity));
        name_of(key->digest, "plan", key->name);
}

void sl_plan_cache_key_merged(const struct sl_plan_cache_key *members, uint32_t n, struct sl_plan_cache_key *ret_key)
{
        struct sl_plan_cache_key key = {.digest = {MERGED_MAGIC, n}};

        for (uint32_t i = 0; i < n; i++)
                key.digest = mix(key.digest, &members[i].digest, sizeof(members[i].digest));
        name_of(key.digest, "plan", key.name);
        *ret_key = key;
}

int sl_plan_cache_recall(
        struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, uint64_t kind, void *ret_record, size_t bytes)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        char name[SL_PLAN_CACHE_NAME_BYTES];
        int r;

        name_of(key->digest, "fuse", name);
        r = sl_cache_record_open(cache->fd, name, kind, ret_record, bytes, &fd);
        if (r == 0)
                (void)futimens(fd, NULL); /* a use */
        return r;
}

void sl_plan_cache_remember(struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, void *record, size_t bytes)
{
        char name[SL_PLAN_CACHE_NAME_BYTES];

        name_of(key->digest, "fuse", name);
        sl_cache_record_write(cache->fd, name, record, bytes);
}

/*
 * Whoever writes the file, cuts it, replaces it or gives it another name changes one of these numbers, and only its owner can set
 * any of them back. The digest of a file that cannot be examined is nobody's.
 */
static struct sl_digest identify_plan(const struct sl_plan_cache *cache, int fd)
{
        struct stat status = {0};

        if (fstat(fd, &status) < 0)
                return (struct sl_digest){0};
        const uint64_t numbers[] = {status.st_dev, status.st_ino, (uint64_t)status.st_size, (uint64_t)status.st_mtim.tv_sec,
                (uint64_t)status.st_mtim.tv_nsec, (uint64_t)status.st_ctim.tv_sec, (uint64_t)status.st_ctim.tv_nsec};

        return mix(cache->boot, numbers, sizeof(numbers));
}

static bool is_known(struct sl_digest digest)
{
        return digest.low | digest.high;
}

/* The record notes the use of the plan too, since a change of the plan's own times would be one of its identity. */
static bool recall_intact(const struct sl_plan_cache *cache, const char *plan, struct sl_digest identity)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        char name[SL_CACHE_NAME_BYTES];
        struct known_intact known;

        sl_cache_folder_record(plan, name);
        if (!is_known(cache->boot) || !is_known(identity) ||
                sl_cache_record_open(cache->fd, name, INTACT_MAGIC, &known, sizeof(known), &fd) < 0 ||
                known.identity.low != identity.low || known.identity.high != identity.high)
                return false;
        return futimens(fd, NULL) == 0;
}

/* @identity: from before the plan was read, so that it is not that of a later change. Without the record it is read again, no more.
 */
static void remember_intact(const struct sl_plan_cache *cache, const char *plan, struct sl_digest identity)
{
        struct known_intact known = {.magic = INTACT_MAGIC, .identity = identity};
        char name[SL_CACHE_NAME_BYTES];

        sl_cache_folder_record(plan, name);
        sl_cache_record_write(cache->fd, name, &known, sizeof(known));
}

/* To look at each file for each plan would take longer the more there are. */
static void keep_bound(struct sl_plan_cache *cache, int fd)
{
        const uint64_t look_every = cache->bytes_max / SL_PLAN_CACHE_LOOKS;
        struct stat status;
        uint64_t bytes = fstat(fd, &status) == 0 ? (uint64_t)status.st_size + BESIDE_BYTES : UINT64_MAX;

        if (bytes <= cache->unseen) {
                cache->unseen -= bytes;
                return;
        }
        cache->unseen = sl_cache_folder_make_room(cache->fd, cache->bytes_max);
        if (cache->unseen > look_every)
                cache->unseen = look_every;
}

/* A plan that was copied has been opened, so the copy is as intact as if it had been read. */
static void plan_kept(void *context, const char *name, int fd)
{
        struct sl_plan_cache *cache = context;

        if (strstr(name, ".plan"))
                remember_intact(cache, name, identify_plan(cache, fd));
        keep_bound(cache, fd);
}

int sl_plan_cache_new(const char *directory, uint64_t bytes_max, struct sl_plan_cache **ret_cache, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_plan_cache_free) struct sl_plan_cache *cache = calloc(1, sizeof(*cache));
        char path[PATH_MAX];
        int r;

        if (!cache)
                return sl_error_set(error, ENOMEM, "no memory for the cache of plans");
        cache->fd = -1;
        cache->holders = 1;
        sl_plan_copier_init(&cache->copier, plan_kept, cache);
        cache->bytes_max = bytes_max;
        cache->host = digest_host();
        cache->boot = digest_boot();
        r = directory ? 0 : sl_cache_folder_default(path, error);
        if (r == 0)
                r = sl_cache_folder_open(directory ? directory : path, true, &cache->fd, error);
        if (r < 0)
                return r;
        *ret_cache = sl_take(cache);
        return 0;
}

struct sl_plan_cache *sl_plan_cache_free(struct sl_plan_cache *cache)
{
        if (!cache)
                return NULL;
        sl_plan_copier_deinit(&cache->copier);
        sl_plan_cache_drop(cache);
        return NULL;
}

struct sl_plan_cache *sl_plan_cache_hold(struct sl_plan_cache *cache)
{
        if (cache)
                atomic_fetch_add_explicit(&cache->holders, 1, memory_order_relaxed);
        return cache;
}

void sl_plan_cache_drop(struct sl_plan_cache *cache)
{
        if (!cache || atomic_fetch_sub_explicit(&cache->holders, 1, memory_order_acq_rel) > 1)
                return;
        sl_cleanup_fd(&cache->fd);
        free(cache);
}

/* What a plan may refer to: the base that it is derived from, or its members. */
struct beside {
        struct sl_plan *base;
        struct sl_plan *const *members;
        uint32_t n_members;
};

static int open_beside(int fd, const struct beside *beside, bool intact, struct sl_plan **ret_plan, struct sl_error *error)
{
        if (beside->n_members)
                return sl_plan_open_merged(fd, beside->members, beside->n_members, intact, ret_plan, error);
        return (intact ? sl_plan_open_intact : sl_plan_open_on)(fd, beside->base, ret_plan, error);
}

static int open_plan(const struct sl_plan_cache *cache, const char *name, int fd, const struct beside *beside,
        struct sl_plan **ret_plan, struct sl_error *error)
{
        struct sl_digest identity = identify_plan(cache, fd);
        int r;

        if (recall_intact(cache, name, identity))
                return open_beside(fd, beside, true, ret_plan, error);
        r = open_beside(fd, beside, false, ret_plan, error);
        if (r == 0)
                remember_intact(cache, name, identity);
        return r;
}

static int find_plan(const struct sl_plan_cache *cache, const char *key, const struct beside *beside, struct sl_plan **ret_plan,
        struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        char name[SL_CACHE_NAME_BYTES];
        int r = sl_cache_folder_plan(cache->fd, key, name);

        if (r == 0)
                r = sl_cache_folder_find(cache->fd, name, &fd);
        if (r == -ENOENT)
                return r;
        if (r < 0)
                return sl_error_set(
                        error, -r, "cached plan %s: %s", name, r == -EPERM ? "no file of this user's alone" : strerror(-r));
        r = open_plan(cache, name, fd, beside, ret_plan, error);
        if (r == -EBADMSG || r == -EPROTONOSUPPORT || r == -ESTALE)
                sl_cache_folder_remove(cache->fd, name);
        return r < 0 ? sl_error_prefix(error, r, "cached plan %s", name) : 0;
}

int sl_plan_cache_find(struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, struct sl_plan *base,
        struct sl_plan **ret_plan, struct sl_error *error)
{
        return find_plan(cache, key->name, &(struct beside){.base = base}, ret_plan, error);
}

int sl_plan_cache_find_merged(struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, struct sl_plan *const *members,
        uint32_t n_members, struct sl_plan **ret_plan, struct sl_error *error)
{
        return find_plan(cache, key->name, &(struct beside){.members = members, .n_members = n_members}, ret_plan, error);
}

static bool recall_base(const struct sl_plan_cache *cache, const char *family, struct known_base *ret_known)
{
        return sl_cache_record_read(cache->fd, family, BASE_MAGIC, ret_known, sizeof(*ret_known)) == 0 &&
               memchr(ret_known->name, 0, sizeof(ret_known->name)) && !strchr(ret_known->name, '/');
}

int sl_plan_cache_find_base(struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, struct sl_plan **ret_base,
        bool *ret_own, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_plan_free) struct sl_plan *base = NULL;
        struct sl_plan_identity identity;
        struct known_base known;
        int r;

        if (!recall_base(cache, key->family, &known))
                return -ENOENT;
        r = find_plan(cache, known.name, &(struct beside){0}, &base, error);
        if (r == 0) {
                identity = sl_plan_identity(base);
                if (!memcmp(&identity, &known.identity, sizeof(identity))) {
                        *ret_base = sl_take(base);
                        *ret_own = !strcmp(known.name, key->name);
                        return 0;
                }
        }
        unlinkat(cache->fd, key->family, 0);
        if (r == 0 || r == -ENOENT)
                return sl_error_set(error, ESTALE, "cached plan %s, the base of other sizes, is %s", known.name,
                        r == 0 ? "another now" : "gone");
        return r;
}

int sl_plan_cache_keep_base(
        struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, const struct sl_plan *base, struct sl_error *error)
{
        struct known_base known = {.magic = BASE_MAGIC, .identity = sl_plan_identity(base)};
        int r;

        memcpy(known.name, key->name, sizeof(known.name));
        r = sl_cache_record_write(cache->fd, key->family, &known, sizeof(known));
        return r < 0 ? sl_error_set(error, -r, "base %s of other sizes is not kept: %s", key->name, strerror(-r)) : 0;
}

/* "KEY.plan", or "KEY.UID.plan" where it counts as that user's. */
static void file_name(const struct sl_plan_cache_key *key, char ret_name[SL_CACHE_NAME_BYTES])
{
        if (key->asked)
                snprintf(ret_name, SL_CACHE_NAME_BYTES, "%.32s.%u.plan", key->name, key->uid);
        else
                snprintf(ret_name, SL_CACHE_NAME_BYTES, "%s", key->name);
}

static int tell_failure(struct sl_plan_cache *cache, struct sl_error *error)
{
        int r = sl_plan_copier_failure(&cache->copier);

        return r < 0 ? sl_error_set(error, -r, "a plan could not be kept: %s", strerror(-r)) : 0;
}

int sl_plan_cache_wait(struct sl_plan_cache *cache, struct sl_error *error)
{
        sl_plan_copier_wait(&cache->copier);
        return tell_failure(cache, error);
}

/* Since the key was made. */
static int check_unchanged(const struct sl_plan_cache_key *key, const char *model_path, struct sl_error *error)
{
        struct sl_digest identity;
        int64_t changed;
        int r = sl_model_identify(model_path, key->folder, &identity, &changed);

        if (r == 0 && identity.low == key->identity.low && identity.high == key->identity.high)
                return 0;
        return sl_error_set(error, ESTALE, "plan of \"%s\" is not kept: the file has changed meanwhile", model_path);
}

static int store(struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, const char *model_path, int plan_fd,
        struct sl_error *error)
{
        char name[SL_CACHE_NAME_BYTES];
        struct stat status;
        int r;

        if (fstat(plan_fd, &status) == 0 && (uint64_t)status.st_size > cache->bytes_max)
                return sl_error_set(error, EFBIG, "plan of \"%s\" is not kept: %lld bytes, the cache holds %llu", model_path,
                        (long long)status.st_size, (unsigned long long)cache->bytes_max);
        file_name(key, name);
        r = sl_plan_copier_add(&cache->copier, cache->fd, name, plan_fd);
        if (r < 0)
                return sl_error_set(error, -r, "plan of \"%s\" is not kept: %s", model_path, strerror(-r));
        return tell_failure(cache, error);
}

int sl_plan_cache_store(struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, const char *model_path, int plan_fd,
        struct sl_error *error)
{
        int r = check_unchanged(key, model_path, error);

        return r < 0 ? r : store(cache, key, model_path, plan_fd, error);
}

static void choices_name(const struct sl_plan_choices_key *key, char ret_name[SL_CACHE_NAME_BYTES])
{
        const uint64_t numbers[] = {key->plan.checksum, key->plan.bytes, key->gpu | (uint64_t)key->compiles << 32, key->percent};
        char name[SL_PLAN_CACHE_NAME_BYTES];

        name_of(mix((struct sl_digest){CHOICES_MAGIC, 0}, numbers, sizeof(numbers)), "choices", name);
        if (key->asked)
                snprintf(ret_name, SL_CACHE_NAME_BYTES, "%.32s.%u.choices", name, key->uid);
        else
                snprintf(ret_name, SL_CACHE_NAME_BYTES, "%s", name);
}

int sl_plan_cache_find_choices(struct sl_plan_cache *cache, const struct sl_plan_choices_key *key, int *ret_fd)
{
        char name[SL_CACHE_NAME_BYTES];
        int r;

        choices_name(key, name);
        r = sl_cache_folder_find(cache->fd, name, ret_fd);
        if (r == 0)
                (void)futimens(*ret_fd, NULL); /* a use */
        return r;
}

int sl_plan_cache_store_choices(struct sl_plan_cache *cache, const struct sl_plan_choices_key *key, int fd, struct sl_error *error)
{
        char name[SL_CACHE_NAME_BYTES];
        int r;

        choices_name(key, name);
        r = sl_plan_copier_add(&cache->copier, cache->fd, name, fd);
        if (r < 0)
                return sl_error_set(error, -r, "the GPU's choices for a plan are not kept: %s", strerror(-r));
        return tell_failure(cache, error);
}

int sl_plan_cache_store_merged(struct sl_plan_cache *cache, const struct sl_plan_cache_key *key,
        const struct sl_plan_cache_key *members, const char *const *paths, uint32_t n, int plan_fd, struct sl_error *error)
{
        int r = 0;

        for (uint32_t i = 0; i < n && r == 0; i++)
                r = check_unchanged(&members[i], paths[i], error);
        return r < 0 ? r : store(cache, key, paths[0], plan_fd, error);
}
