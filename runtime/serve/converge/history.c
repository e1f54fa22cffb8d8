/* SPDX-License-Identifier: Apache-2.0 */
#include "history.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define MAGIC 0x3150455453474e4cull

struct history_head {
        uint64_t magic;
        uint32_t fleet_bytes, name_bytes, group_bytes, step_bytes; /* of each struct */
        uint32_t step_kinds, awaits;
};

struct call_head {
        uint64_t bytes; /* of the whole call, with this */
        uint32_t n_names, n_groups, n_steps, reserved;
        uint64_t due_ns;
        struct sl_fleet fleet; /* without its arrays */
};

struct name_head {
        uint32_t index, n_members;
};

static const struct history_head head = {
        .magic = MAGIC,
        .fleet_bytes = sizeof(struct sl_fleet),
        .name_bytes = sizeof(struct sl_fleet_name),
        .group_bytes = sizeof(struct sl_fleet_group),
        .step_bytes = sizeof(struct sl_step),
        .step_kinds = SL_STEP_KIND_COUNT,
        .awaits = SL_AWAIT_COUNT,
};

static_assert(sizeof(struct history_head) % 8 == 0 && sizeof(struct call_head) % 8 == 0 && sizeof(struct name_head) % 8 == 0 &&
                      sizeof(struct sl_fleet_name) % 8 == 0 && sizeof(struct sl_fleet_group) % 8 == 0 &&
                      sizeof(struct sl_step) % 8 == 0,
        "what follows lies at multiples of 8");

/* Members, up to a multiple of 8 bytes. */
static size_t members_bytes(uint32_t n_members)
{
        return (n_members + 1ul) / 2 * 8;
}

/* ---- writing ---- */

/* FNV-1a (Fowler, Noll, Vo). */
static uint64_t add_to_hash(uint64_t hash, const void *bytes, size_t n)
{
        const unsigned char *at = bytes;

        for (size_t i = 0; i < n; i++)
                hash = (hash ^ at[i]) * 0x100000001b3ull;
        return hash;
}

/* What is written of it. */
static struct sl_fleet_name without_members(const struct sl_fleet_name *name)
{
        struct sl_fleet_name copy;

        memcpy(&copy, name, sizeof(copy)); /* with what lies between its fields, so that the same is the same again */
        copy.members = NULL;
        return copy;
}

static uint64_t hash_of(const struct sl_fleet_name *name)
{
        struct sl_fleet_name copy = without_members(name);
        uint64_t hash = add_to_hash(0xcbf29ce484222325ull, &copy, sizeof(copy));

        hash = add_to_hash(hash, name->members, name->n_members * sizeof(*name->members));
        return hash ? hash : 1;
}

static size_t name_bytes(const struct sl_fleet_name *name)
{
        return sizeof(struct name_head) + sizeof(*name) + members_bytes(name->n_members);
}

static void put_name(struct sl_history_writer *writer, uint32_t index, const struct sl_fleet_name *name)
{
        static const char zeros[8];
        const struct name_head head_of_name = {.index = index, .n_members = name->n_members};
        const struct sl_fleet_name copy = without_members(name);
        size_t bytes = name->n_members * sizeof(*name->members);

        writer->put(writer->context, &head_of_name, sizeof(head_of_name));
        writer->put(writer->context, &copy, sizeof(copy));
        if (bytes)
                writer->put(writer->context, name->members, bytes);
        if (members_bytes(name->n_members) > bytes)
                writer->put(writer->context, zeros, members_bytes(name->n_members) - bytes);
}

void sl_history_begin(struct sl_history_writer *writer)
{
        memset(writer->written, 0, sizeof(writer->written));
        writer->put(writer->context, &head, sizeof(head));
}

void sl_history_write(struct sl_history_writer *writer, const struct sl_fleet *fleet, const struct sl_step *steps, uint32_t n_steps,
        uint64_t due_ns)
{
        struct call_head call = {.n_groups = fleet->n_groups, .n_steps = n_steps, .due_ns = due_ns, .fleet = *fleet};
        uint16_t changed[SL_FLEET_NAMES_MAX];

        call.fleet.names = NULL;
        call.fleet.groups = NULL;
        call.bytes = sizeof(call) + fleet->n_groups * sizeof(*fleet->groups) + n_steps * sizeof(*steps);
        for (uint32_t i = 0; i < fleet->n; i++) {
                uint64_t hash = hash_of(&fleet->names[i]);

                if (hash == writer->written[i])
                        continue;
                writer->written[i] = hash;
                changed[call.n_names++] = (uint16_t)i;
                call.bytes += name_bytes(&fleet->names[i]);
        }
        if (!call.n_names && !n_steps)
                return;
        writer->put(writer->context, &call, sizeof(call));
        for (uint32_t i = 0; i < call.n_names; i++)
                put_name(writer, changed[i], &fleet->names[changed[i]]);
        if (fleet->n_groups)
                writer->put(writer->context, fleet->groups, fleet->n_groups * sizeof(*fleet->groups));
        if (n_steps)
                writer->put(writer->context, steps, n_steps * sizeof(*steps));
}

/* ---- reading ---- */

/* What is left of some bytes. */
struct rest {
        const char *at;
        size_t left;
};

/* NULL: there is not so much. */
static const void *take(struct rest *rest, size_t bytes)
{
        const char *at = rest->at;

        if (bytes > rest->left)
                return NULL;
        rest->at += bytes;
        rest->left -= bytes;
        return at;
}

int sl_history_open(struct sl_history_reader *reader, const void *bytes, size_t n)
{
        *reader = (struct sl_history_reader){.at = bytes, .left = n};
        if (n < sizeof(head) || memcmp(bytes, &head, sizeof(head)) != 0)
                return -EBADMSG;
        reader->at += sizeof(head);
        reader->left -= sizeof(head);
        return 0;
}

static int read_name(struct sl_history_reader *reader, struct rest *rest, uint32_t n)
{
        const struct name_head *found = take(rest, sizeof(*found));
        const struct sl_fleet_name *name = take(rest, sizeof(*name));
        const uint32_t *members;

        if (!found || !name || found->index >= n || found->n_members != name->n_members)
                return -EBADMSG;
        members = take(rest, members_bytes(found->n_members));
        if (!members)
                return -EBADMSG;
        reader->names[found->index] = *name;
        reader->names[found->index].members = members;
        return 0;
}

static int read_call(struct sl_history_reader *reader, struct rest *rest, struct sl_history_call *ret_call)
{
        const struct call_head *call = take(rest, sizeof(*call));

        if (!call || call->fleet.n > SL_FLEET_NAMES_MAX || call->n_steps > SL_STEPS_MAX || call->n_groups != call->fleet.n_groups)
                return -EBADMSG;
        for (uint32_t i = 0; i < call->n_names; i++)
                if (read_name(reader, rest, call->fleet.n) < 0)
                        return -EBADMSG;
        *ret_call = (struct sl_history_call){.fleet = call->fleet, .n_steps = call->n_steps, .due_ns = call->due_ns};
        ret_call->fleet.names = reader->names;
        ret_call->fleet.groups = take(rest, call->n_groups * sizeof(*ret_call->fleet.groups));
        ret_call->steps = take(rest, call->n_steps * sizeof(*ret_call->steps));
        return ret_call->fleet.groups && ret_call->steps && !rest->left ? 1 : -EBADMSG;
}

int sl_history_next(struct sl_history_reader *reader, struct sl_history_call *ret_call)
{
        struct rest rest = {.at = reader->at};
        uint64_t bytes;

        if (reader->left < sizeof(bytes))
                return 0;
        memcpy(&bytes, reader->at, sizeof(bytes));
        if (bytes > reader->left)
                return 0;
        rest.left = bytes;
        reader->at += bytes;
        reader->left -= bytes;
        return read_call(reader, &rest, ret_call);
}
