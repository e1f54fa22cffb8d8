/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_store.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <pwd.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define APPLICATION_ID  0x53544c50 /* "STLP" */
#define BUSY_MS         20000
#define STATEMENT_BYTES 8192

struct sl_profile_store {
        sqlite3 *database;
        int version; /* of the schema that was found */
        char path[PATH_MAX];
};

SL_DEFINE_CLEANUP(struct sl_profile_store *, sl_profile_store_free)
SL_DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize)

struct sl_profile_store *sl_profile_store_free(struct sl_profile_store *store)
{
        if (!store)
                return NULL;
        sqlite3_close(store->database);
        free(store);
        return NULL;
}

/* ---- where it is ---- */

int sl_profile_store_default(char ret_path[PATH_MAX], struct sl_error *error)
{
        const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
        const struct passwd *user = home && *home ? NULL : getpwuid(getuid());
        int n;

        if (user)
                home = user->pw_dir;
        if (data && *data == '/')
                n = snprintf(ret_path, PATH_MAX, "%s/starling/profiles.db", data);
        else if (home && *home)
                n = snprintf(ret_path, PATH_MAX, "%s/.local/share/starling/profiles.db", home);
        else
                return sl_error_set(error, ENOENT, "no place for profiles: the user has no home; name one with --store");
        return n < PATH_MAX ? 0
                            : sl_error_set(error, ENAMETOOLONG, "the path of the profiles has more than %d bytes", PATH_MAX - 1);
}

static int make_folders(const char *path, struct sl_error *error)
{
        char folder[PATH_MAX];

        snprintf(folder, sizeof(folder), "%s", path);
        for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = 0;
                if (mkdir(folder, 0700) < 0 && errno != EEXIST)
                        return sl_error_set(error, errno, "\"%s\": %s", folder, strerror(errno));
                *slash = '/';
        }
        return 0;
}

/* ---- errors ---- */

static int code_of(int status)
{
        switch (status & 0xff) {
        case SQLITE_OK:
                return 0;
        case SQLITE_NOTADB:
                return EMEDIUMTYPE;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
                return EBUSY;
        case SQLITE_FULL:
                return ENOSPC;
        case SQLITE_NOMEM:
                return ENOMEM;
        case SQLITE_READONLY:
        case SQLITE_PERM:
        case SQLITE_AUTH:
                return EACCES;
        default:
                return EIO;
        }
}

static int fail(struct sl_profile_store *store, int status, struct sl_error *error)
{
        int code = code_of(status), system = sqlite3_system_errno(store->database);
        const char *text = sqlite3_errmsg(store->database);

        if (code == EMEDIUMTYPE)
                return sl_error_set(error, code, "\"%s\" is no database", store->path);
        if (code == EIO && (system == EFBIG || system == ENOSPC || system == EDQUOT))
                return sl_error_set(error, ENOSPC, "\"%s\": %s", store->path, strerror(system));
        if ((status & 0xff) == SQLITE_CORRUPT)
                return sl_error_set(error, code, "\"%s\" is damaged: %s", store->path, text);
        if (code == EBUSY)
                return sl_error_set(
                        error, code, "\"%s\": another process holds it for more than %d s", store->path, BUSY_MS / 1000);
        return sl_error_set(error, code, "\"%s\": %s", store->path, text);
}

static int execute(struct sl_profile_store *store, const char *statement, struct sl_error *error)
{
        int status = sqlite3_exec(store->database, statement, NULL, NULL, NULL);

        return status == SQLITE_OK ? 0 : fail(store, status, error);
}

static int prepare(struct sl_profile_store *store, const char *text, sqlite3_stmt **ret_statement, struct sl_error *error)
{
        int status = sqlite3_prepare_v2(store->database, text, -1, ret_statement, NULL);

        return status == SQLITE_OK ? 0 : fail(store, status, error);
}

/* ---- the schema ---- */

struct words {
        char text[STATEMENT_BYTES];
        size_t used;
};

static void say(struct words *words, const char *text)
{
        size_t bytes = strlen(text), room = sizeof(words->text) - words->used;

        if (bytes < room) {
                memcpy(words->text + words->used, text, bytes + 1);
                words->used += bytes;
        }
}

/* Names with @between, each with @behind it; @keys: of keys alone. */
static void say_names(struct words *words, bool keys, const char *between, const char *behind)
{
        bool first = true;

        for (const struct sl_profile_field *field = sl_profile_fields; field->name; field++) {
                if (keys && !field->is_key)
                        continue;
                say(words, first ? "" : between);
                say(words, field->name);
                say(words, behind);
                first = false;
        }
}

static void say_schema(struct words *words)
{
        static const char *const types[] = {" TEXT NOT NULL, ", " INTEGER NOT NULL, ", " REAL, "};
        char pragma[128];

        say(words, "CREATE TABLE profile (");
        for (const struct sl_profile_field *field = sl_profile_fields; field->name; field++) {
                say(words, field->name);
                say(words, types[field->kind]);
        }
        say(words, "PRIMARY KEY (");
        say_names(words, true, ", ", "");
        say(words, ")) WITHOUT ROWID;");
        snprintf(pragma, sizeof(pragma), "PRAGMA application_id = %d; PRAGMA user_version = %d;", APPLICATION_ID,
                SL_PROFILE_STORE_VERSION);
        say(words, pragma);
}

/* Its key has one more column, which SQLite adds to no table that is there. */
static void say_upgrade(struct words *words)
{
        say(words, "ALTER TABLE profile RENAME TO narrow;");
        say_schema(words);
        say(words, "INSERT INTO profile (");
        say_names(words, false, ", ", "");
        say(words, ") SELECT ");
        say_names(words, false, ", ", "");
        say(words, " FROM (SELECT *, 1 AS threads FROM narrow); DROP TABLE narrow;");
}

static int read_number(struct sl_profile_store *store, const char *text, int *ret_number, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sqlite3_finalize) sqlite3_stmt *statement = NULL;
        int r = prepare(store, text, &statement, error), status;

        if (r < 0)
                return r;
        status = sqlite3_step(statement);
        if (status != SQLITE_ROW)
                return fail(store, status, error);
        *ret_number = sqlite3_column_int(statement, 0);
        return 0;
}

/* *ret_empty: there is nothing in it. */
static int check_schema(struct sl_profile_store *store, bool *ret_empty, struct sl_error *error)
{
        int application = 0, version = 0, tables = 0;
        int r = read_number(store, "PRAGMA application_id", &application, error);

        if (r == 0)
                r = read_number(store, "PRAGMA user_version", &version, error);
        if (r == 0)
                r = read_number(store, "SELECT count(*) FROM sqlite_schema", &tables, error);
        if (r < 0)
                return r;
        *ret_empty = tables == 0 && application == 0;
        store->version = version;
        if (*ret_empty)
                return 0;
        if (application != APPLICATION_ID)
                return sl_error_set(error, EMEDIUMTYPE, "\"%s\" is a database of another program", store->path);
        if (version > SL_PROFILE_STORE_VERSION)
                return sl_error_set(error, EPROTONOSUPPORT, "\"%s\" has schema version %d; this program knows up to %d",
                        store->path, version, SL_PROFILE_STORE_VERSION);
        return 0;
}

static int end_transaction(struct sl_profile_store *store, int r, struct sl_error *error)
{
        if (r == 0)
                r = execute(store, "COMMIT", error);
        if (r < 0)
                (void)sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
        return r;
}

/* As it is at one moment: another program may be making it. */
static int look_at_schema(struct sl_profile_store *store, bool *ret_empty, struct sl_error *error)
{
        int r = execute(store, "BEGIN", error);

        return r < 0 ? r : end_transaction(store, check_schema(store, ret_empty, error), error);
}

/* Two may find it empty, or old, at once: the second one looks again when it has it for itself. */
static int make_schema(struct sl_profile_store *store, struct sl_error *error)
{
        struct words words = {.used = 0};
        bool empty = false;
        int r = execute(store, "BEGIN IMMEDIATE", error);

        if (r < 0)
                return r;
        r = check_schema(store, &empty, error);
        bool is_old = !empty && store->version < SL_PROFILE_STORE_VERSION;
        if (empty)
                say_schema(&words);
        else if (is_old)
                say_upgrade(&words);
        if (r == 0 && (empty || is_old))
                r = execute(store, words.text, error);
        if (r == 0)
                store->version = SL_PROFILE_STORE_VERSION;
        return end_transaction(store, r, error);
}

static int open_database(struct sl_profile_store *store, bool write, struct sl_error *error)
{
        int flags = write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
        bool empty = false;
        int r = write ? make_folders(store->path, error) : 0;

        if (r < 0)
                return r;
        if (!write && access(store->path, R_OK) < 0)
                return sl_error_set(error, errno, "\"%s\": %s", store->path, strerror(errno));
        int status = sqlite3_open_v2(store->path, &store->database, flags, NULL);
        if (status != SQLITE_OK)
                return store->database ? fail(store, status, error) : sl_error_set(error, ENOMEM, "no memory for profiles");
        sqlite3_extended_result_codes(store->database, 1);
        sqlite3_busy_timeout(store->database, BUSY_MS);
        r = look_at_schema(store, &empty, error);
        if (r < 0 || (!empty && (!write || store->version == SL_PROFILE_STORE_VERSION)))
                return r;
        return write ? make_schema(store, error) : sl_error_set(error, ENOENT, "\"%s\" has no profiles", store->path);
}

int sl_profile_store_open(const char *path, bool write, struct sl_profile_store **ret_store, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_profile_store_free) struct sl_profile_store *store = calloc(1, sizeof(*store));
        int r;

        if (!store)
                return sl_error_set(error, ENOMEM, "no memory for profiles");
        if (strlen(path) >= sizeof(store->path))
                return sl_error_set(error, ENAMETOOLONG, "a path of more than %d bytes", PATH_MAX - 1);
        strcpy(store->path, path);
        r = open_database(store, write, error);
        if (r == 0)
                *ret_store = sl_take(store);
        return r;
}

/* ---- rows ---- */

static int bind_field(
        sqlite3_stmt *statement, int at, const struct sl_worker_profile *profile, const struct sl_profile_field *field)
{
        if (field->kind == SL_PROFILE_TEXT)
                return sqlite3_bind_text(statement, at, sl_profile_text(profile, field), -1, SQLITE_STATIC);
        if (field->kind == SL_PROFILE_COUNT)
                return sqlite3_bind_int64(statement, at, (sqlite3_int64)*sl_profile_count(profile, field));
        return sqlite3_bind_double(statement, at, *sl_profile_figure(profile, field)); /* NaN is NULL */
}

static int bind_profile(sqlite3_stmt *statement, const struct sl_worker_profile *profile, bool keys)
{
        int at = 1, status = SQLITE_OK;

        for (const struct sl_profile_field *field = sl_profile_fields; field->name && status == SQLITE_OK; field++)
                if (!keys || field->is_key)
                        status = bind_field(statement, at++, profile, field);
        return status;
}

/* Whoever wrote the file, nothing but what sl_profile_field_set() takes comes out of it. */
static int take_row(
        struct sl_profile_store *store, sqlite3_stmt *statement, struct sl_worker_profile *profile, struct sl_error *error)
{
        int at = 0;

        sl_worker_profile_init(profile);
        for (const struct sl_profile_field *field = sl_profile_fields; field->name; field++, at++) {
                int r = 0;

                if (sqlite3_column_type(statement, at) == SQLITE_FLOAT && field->kind == SL_PROFILE_FIGURE) {
                        double number = sqlite3_column_double(statement, at);

                        *sl_profile_figure(profile, field) = number;
                        if (!(number >= 0) || isinf(number))
                                r = sl_error_set(error, EINVAL, "%s: %g is not a number of at least 0", field->name, number);
                } else {
                        const char *text = (const char *)sqlite3_column_text(statement, at);

                        r = sl_profile_field_set(profile, field, text ? text : "", error);
                }
                if (r < 0)
                        return sl_error_prefix(error, r, "\"%s\"", store->path);
        }
        return 0;
}

static void say_columns(struct words *words, const char *before, bool keys, const char *behind)
{
        say(words, before);
        say_names(words, keys, ", ", behind);
}

static void say_select(struct words *words, const struct sl_profile_store *store)
{
        say_columns(words, "SELECT ", false, "");
        say(words, store->version < 2 ? " FROM (SELECT *, 1 AS threads FROM profile)" : " FROM profile");
}

static int put_all(struct sl_profile_store *store, const struct sl_worker_profile *profiles, size_t n, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sqlite3_finalize) sqlite3_stmt *statement = NULL;
        struct words words = {.used = 0};
        int r;

        say_columns(&words, "INSERT OR REPLACE INTO profile (", false, "");
        say(&words, ") VALUES (?");
        for (const struct sl_profile_field *field = sl_profile_fields + 1; field->name; field++)
                say(&words, ", ?");
        say(&words, ")");
        r = prepare(store, words.text, &statement, error);
        for (size_t i = 0; r == 0 && i < n; i++) {
                int status = bind_profile(statement, &profiles[i], false);

                if (status == SQLITE_OK)
                        status = sqlite3_step(statement);
                r = status == SQLITE_DONE ? 0 : fail(store, status, error);
                sqlite3_reset(statement);
        }
        return r;
}

int sl_profile_store_put(struct sl_profile_store *store, const struct sl_worker_profile *profiles, size_t n, struct sl_error *error)
{
        int r = execute(store, "BEGIN IMMEDIATE", error);

        return r < 0 ? r : end_transaction(store, put_all(store, profiles, n, error), error);
}

int sl_profile_store_find(struct sl_profile_store *store, const struct sl_worker_profile *wanted,
        struct sl_worker_profile *ret_profile, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sqlite3_finalize) sqlite3_stmt *statement = NULL;
        struct words words = {.used = 0};
        int r, status;

        say_select(&words, store);
        say(&words, " WHERE ");
        say_names(&words, true, " AND ", " = ?");
        r = prepare(store, words.text, &statement, error);
        if (r < 0)
                return r;
        status = bind_profile(statement, wanted, true);
        if (status == SQLITE_OK)
                status = sqlite3_step(statement);
        if (status == SQLITE_DONE)
                return -ENOENT;
        return status == SQLITE_ROW ? take_row(store, statement, ret_profile, error) : fail(store, status, error);
}

int sl_profile_store_read(struct sl_profile_store *store, struct sl_profile_list *list, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sqlite3_finalize) sqlite3_stmt *statement = NULL;
        struct sl_worker_profile profile;
        struct words words = {.used = 0};
        int r, status = SQLITE_DONE;

        say_select(&words, store);
        say(&words, " ORDER BY host, device, model, path, precision, options, beside, batch, threads");
        r = prepare(store, words.text, &statement, error);
        while (r == 0 && (status = sqlite3_step(statement)) == SQLITE_ROW) {
                r = take_row(store, statement, &profile, error);
                if (r == 0 && (r = sl_profile_list_add(list, &profile)) < 0)
                        sl_error_set(error, -r, "no memory for %zu profiles", list->n);
        }
        return r < 0 || status == SQLITE_DONE ? r : fail(store, status, error);
}
