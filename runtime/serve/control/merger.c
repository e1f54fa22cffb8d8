/* SPDX-License-Identifier: Apache-2.0 */
#include "merger.h"

#include "account.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fields.h"
#include "block_maker.h"
#include "compiler_limit.h"
#include "crew.h"
#include "dispatcher.h"
#include "fuse.h"
#include "memory.h"
#include "merger_orders.h"
#include "model.h"
#include "plan_cache.h"
#include "registry_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_WARNING 1 /* as sl_runtime_log_fn counts */
#define LOG_INFO    2
#define LOG_DEBUG   3

enum merger_state { MERGER_IDLE, MERGER_CLEARING, MERGER_MERGING, MERGER_MAKING };

struct sl_merger {
        struct sl_registry *registry;
        enum merger_state state;
        struct sl_bundle *bundle; /* whose members are merged */
        struct sl_merger_members members;
        struct sl_fuse *fuse;
        struct sl_fuse_result result;
        struct sl_block_maker *maker;
        uint64_t compiler_bytes, block_bytes; /* promised */
        uint64_t left_bytes;                  /* that there were when it began, if it got less for that; 0: it got all */
};

/* ---- who is to be merged ---- */

static uint64_t mix(uint64_t sum, uint64_t value)
{
        return (sum ^ value) * 0x100000001b3ull;
}

static bool is_settled(const struct sl_served *served, const struct sl_bundle *bundle)
{
        return served->state == SL_SERVED_READY && served->model && served->model->bundle == bundle && !served->replace &&
               !served->resize && !served->load && served->own.spec.path && !sl_crew_is_changing(served->model->crew);
}

/* Plans of one merged graph are made of whole files. */
static bool can_be_merged(const struct sl_served *served)
{
        return !served->is_shape && !served->model->info->n_symbols && !served->model->crew->options.fake;
}

/* False: one of the bundle is not ready, or on its way. A model that has several names counts once. */
static bool find_members(const struct sl_merger *m, const struct sl_bundle *bundle, struct sl_merger_members *ret_members)
{
        const struct sl_model *seen[SL_CARRIER_LANES_MAX];
        uint32_t n_seen = 0;

        ret_members->n = 0;
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                const struct sl_served *served = &m->registry->served[i];
                bool twin = false;

                if (!is_settled(served, bundle))
                        continue;
                for (uint32_t k = 0; k < n_seen; k++)
                        twin |= seen[k] == served->model;
                if (twin || n_seen == SL_CARRIER_LANES_MAX)
                        continue;
                seen[n_seen++] = served->model;
                if (!can_be_merged(served))
                        continue;
                ret_members->models[ret_members->n] = served->model;
                ret_members->specs[ret_members->n++] = &served->own;
        }
        sl_merger_members_part(ret_members);
        sl_merger_members_sort(ret_members);
        return n_seen == sl_bundle_size(bundle);
}

/* Not 0. */
static uint64_t sign_members(const struct sl_bundle *bundle, const struct sl_merger_members *members)
{
        uint64_t sum = mix(0xcbf29ce484222325ull, sl_bundle_joins(bundle));

        for (uint32_t i = 0; i < members->n; i++) {
                const struct sl_crew *crew = members->models[i]->crew;

                sum = mix(sum, (uint64_t)(uintptr_t)members->models[i]);
                for (uint32_t k = 0; k < crew->n; k++)
                        sum = mix(sum, (uint64_t)(uintptr_t)crew->workers[k].executor);
        }
        return sum | 1;
}

/* Where memory was refused, it is asked for again when there is as much. */
static bool has_memory_now(const struct sl_merger *m, struct sl_bundle *bundle)
{
        uint64_t lacks = *sl_bundle_lacks(bundle);

        return lacks && lacks <= sl_memory_left(m->registry->options.memory);
}

/* A bundle with others than it was merged with last, or was not. */
static struct sl_bundle *find_bundle(const struct sl_merger *m, struct sl_merger_members *ret_members)
{
        struct sl_bundle *bundle = NULL;

        while ((bundle = sl_bundles_next(&m->registry->bundles, bundle))) {
                if (!find_members(m, bundle, ret_members) || ret_members->n < 2)
                        continue;
                if (*sl_bundle_seen(bundle) != sign_members(bundle, ret_members) || has_memory_now(m, bundle))
                        return bundle;
        }
        return NULL;
}

/* The one that is merged; NULL: it is no more. */
static struct sl_bundle *find_own(const struct sl_merger *m)
{
        struct sl_bundle *bundle = NULL;

        while ((bundle = sl_bundles_next(&m->registry->bundles, bundle)) && bundle != m->bundle)
                ;
        return bundle;
}

static bool is_still(const struct sl_merger *m)
{
        struct sl_merger_members now;
        struct sl_bundle *bundle = find_own(m);

        return bundle && find_members(m, bundle, &now) && sign_members(bundle, &now) == *sl_bundle_seen(bundle);
}

/* Whoever was about to change may come back as it was: it is merged again when all are ready. */
static void forget_members(struct sl_merger *m)
{
        struct sl_bundle *bundle = find_own(m);

        if (bundle)
                *sl_bundle_seen(bundle) = 0;
}

/* ---- what is said ---- */

static void log_merge(const struct sl_merger *m, int level, const char *event, const char *cause)
{
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "model", m->members.name);
        sl_fields_add_number(&fields, "models", m->members.n);
        sl_fields_add(&fields, "cause", cause);
        sl_account_log(m->registry->options.accounts, NULL, level, event, fields.text);
}

/* @bytes: beside the members' own. */
static void say_what_is_merged(const struct sl_merger *m, uint64_t bytes)
{
        const struct sl_fuse_table *table = &m->result.blocks[0].table;
        uint32_t least = sl_fuse_least_lanes(table, table->rows[0].batch), lanes = 0;
        struct sl_fields fields = {0};
        uint64_t shared = 0; /* constants that stayed where the members' plans have them */
        char text[160];

        for (uint32_t i = 0; i < m->result.n_blocks; i++) {
                lanes += m->result.blocks[i].n_lanes;
                shared += sl_plan_info(m->result.blocks[i].plan)->member_bytes;
        }
        snprintf(text, sizeof(text), "%u lanes in %u merged plans; of %u, %.2f x as fast together, from %u on", lanes,
                m->result.n_blocks, table->n_lanes, sl_fuse_gain(table), least);
        sl_fields_add(&fields, "model", m->members.name);
        sl_fields_add_number(&fields, "models", m->members.n);
        sl_fields_add_number(&fields, "bytes", (long long)bytes);
        sl_fields_add_number(&fields, "shared", (long long)shared);
        sl_fields_add(&fields, "what", text);
        sl_account_log(m->registry->options.accounts, NULL, LOG_INFO, "bundle-merged", fields.text);
}

/* ---- from one state to the next ---- */

static void give_back(struct sl_merger *m)
{
        struct sl_memory *memory = m->registry->options.memory;

        sl_memory_give(memory, SL_MEMORY_COMPILERS, m->compiler_bytes);
        sl_memory_give(memory, SL_MEMORY_WORKERS, m->block_bytes);
        m->compiler_bytes = m->block_bytes = 0;
}

/* What was under way is over, however that was. */
static void end_merge(struct sl_merger *m)
{
        if (m->fuse)
                sl_wait_unwatch(m->registry->options.wait, SL_MERGER_TOKEN);
        m->fuse = sl_fuse_free(m->fuse);
        m->maker = sl_block_maker_free(m->maker);
        sl_fuse_result_deinit(&m->result);
        m->result = (struct sl_fuse_result){0};
        sl_merger_members_release(&m->members);
        give_back(m);
        m->bundle = NULL;
        m->state = MERGER_IDLE;
}

static void give_up_as(struct sl_merger *m, int level, const char *cause)
{
        log_merge(m, level, "bundle-not-merged", cause);
        end_merge(m);
}

static void give_up(struct sl_merger *m, const char *cause)
{
        give_up_as(m, LOG_DEBUG, cause);
}

static int check_bound(const struct sl_merger *m, uint64_t bytes, struct sl_error *error)
{
        uint64_t bound = m->registry->options.runtime->fuse_bytes;

        return bytes > bound ? sl_error_set(error, ENOMEM, "merged plans take %llu bytes of their own, fuse_bytes is %llu",
                                       (unsigned long long)bytes, (unsigned long long)bound)
                             : 0;
}

/* As the members' own loads had it. */
static struct sl_lower_options lowering_of(const struct sl_merger *m)
{
        struct sl_lower_options lowering = m->members.specs[0]->spec.lowering;
        struct sl_plan_cache *cache = m->registry->options.runtime->cache;
        struct sl_target target;

        if (lowering.core_measured && !sl_lower_options_have_core(&lowering) && cache &&
                sl_plan_cache_target(cache, sl_lower_options_backend(&lowering), &target) == 0)
                lowering.core = target.core;
        return lowering;
}

/* What is refused is remembered. */
static int check_memory(struct sl_merger *m, uint64_t bytes, struct sl_error *error)
{
        int r = sl_memory_check(m->registry->options.memory, bytes, error);

        if (r < 0)
                *sl_bundle_lacks(m->bundle) = bytes;
        return r;
}

static void say_who_stays(const struct sl_merger *m, const struct sl_model *model, int level, const char *cause)
{
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "model", model->name);
        sl_fields_add(&fields, "cause", cause);
        sl_account_log(m->registry->options.accounts, NULL, level, "model-not-merged", fields.text);
}

/* What is merged is read from the files. */
static void leave_changed_out(struct sl_merger *m)
{
        for (uint32_t i = m->members.n; i-- > 0;)
                if (!sl_model_is_still(m->members.specs[i]->path, &m->members.models[i]->crew->options.file)) {
                        say_who_stays(m, m->members.models[i], LOG_WARNING,
                                "its file has changed since it was loaded: it is merged once it is reloaded");
                        sl_merger_members_leave_out(&m->members, i);
                }
}

/* A compiler that got less than is configured had not enough: as if that had been refused, until there is clearly more. */
static void want_more(struct sl_merger *m)
{
        if (m->result.status == -ENOMEM && m->left_bytes)
                *sl_bundle_lacks(m->bundle) = 2 * m->left_bytes;
}

static int begin_fuse(struct sl_merger *m, struct sl_error *error)
{
        const struct sl_runtime_options *runtime = m->registry->options.runtime;
        uint64_t limit = sl_compiler_limit(runtime, m->registry->options.memory, 0);
        const struct sl_lower_options lowering = lowering_of(m);
        struct sl_fuse_member members[SL_CARRIER_LANES_MAX];
        const struct sl_fuse_options options = {
                .members = members,
                .n_members = m->members.n,
                .lowering = &lowering,
                .cache = runtime->cache,
                .compile_program = runtime->compile_program,
                .zygote = runtime->zygote,
                .background = true,
                .short_ns = m->members.models[0]->inliner ? SL_INLINE_PASS_NS : 0,
                .memory_bytes = limit,
                .seconds = runtime->compile_seconds,
        };
        uint64_t bytes;
        int r;

        for (uint32_t i = 0; i < m->members.n; i++)
                members[i] = (struct sl_fuse_member){.path = m->members.specs[i]->path,
                        .file = m->members.models[i]->crew->options.file,
                        .plan = m->members.plans[i]};
        m->left_bytes = limit < sl_compiler_limit_configured(runtime) ? sl_memory_left(m->registry->options.memory) : 0;
        bytes = sl_fuse_bytes(&options);
        r = check_memory(m, bytes, error);
        if (r == 0)
                r = sl_memory_take(m->registry->options.memory, SL_MEMORY_COMPILERS, bytes, error);
        if (r < 0)
                return r;
        m->compiler_bytes = bytes;
        r = sl_fuse_begin(&options, &m->fuse, error);
        if (r < 0)
                return r;
        r = sl_wait_watch(m->registry->options.wait, sl_fuse_fd(m->fuse), SL_MERGER_TOKEN);
        return r < 0 ? sl_error_set(error, -r, "it cannot be watched: %s", strerror(-r)) : 0;
}

/* Plans and blocks, whose bytes go to their carriers with them. */
static int promise(
        struct sl_merger *m, const struct sl_block_order *orders, uint32_t n, uint64_t *ret_bytes, struct sl_error *error)
{
        struct sl_memory *memory = m->registry->options.memory;
        uint64_t bytes = 0, plans = 0;
        int r;

        for (uint32_t i = 0; i < n; i++)
                if (sl_add_overflows(bytes, sl_merger_order_bytes(&orders[i]), &bytes))
                        return sl_error_set(error, EOVERFLOW, "its blocks take more than can be said");
        for (uint32_t i = 0; i < m->result.n_blocks; i++)
                plans += sl_plan_bytes(m->result.blocks[i].plan);
        *ret_bytes = bytes + plans;
        r = check_bound(m, *ret_bytes, error);
        if (r == 0)
                r = check_memory(m, *ret_bytes, error);
        if (r == 0)
                r = sl_memory_take(memory, SL_MEMORY_WORKERS, bytes, error);
        if (r < 0)
                return r;
        m->block_bytes = bytes;
        for (uint32_t i = 0; i < m->result.n_blocks && r == 0; i++)
                r = sl_memory_take_plan(memory, m->result.blocks[i].plan, error);
        return r;
}

static void make_blocks(struct sl_merger *m)
{
        struct sl_error error = {""};
        struct sl_block_order *orders;
        uint64_t bytes = 0;
        uint32_t n;
        int r = sl_merger_orders_new(m->bundle, &m->members, &m->result, &orders, &n);

        if (r < 0 || n == 0) {
                want_more(m);
                give_up(m, r < 0 ? "no memory" : m->result.error.text[0] ? m->result.error.text : "nothing is faster merged");
                return;
        }
        r = promise(m, orders, n, &bytes, &error);
        if (r < 0) {
                free(orders);
                give_up_as(m, LOG_WARNING, error.text);
                return;
        }
        if (sl_block_maker_new(orders, n, m->registry->options.control, &m->maker) < 0) {
                give_up(m, "its kernels cannot be made: no thread");
                return;
        }
        m->state = MERGER_MAKING;
        say_what_is_merged(m, bytes);
}

static void advance_merging(struct sl_merger *m)
{
        if (!sl_fuse_advance(m->fuse))
                return;
        sl_fuse_take(m->fuse, &m->result);
        sl_wait_unwatch(m->registry->options.wait, SL_MERGER_TOKEN);
        m->fuse = sl_fuse_free(m->fuse);
        sl_memory_give(m->registry->options.memory, SL_MEMORY_COMPILERS, m->compiler_bytes);
        m->compiler_bytes = 0;
        make_blocks(m);
}

/* Orders of one carrier lie one behind the other. */
static void put_blocks(struct sl_merger *m)
{
        struct sl_block_order *orders;
        const char *why;
        uint32_t n;

        orders = sl_block_maker_orders(m->maker, &n, &why);
        if (why[0])
                log_merge(m, LOG_DEBUG, "bundle-not-merged", why);
        for (uint32_t i = 0; i < n;) {
                struct sl_carrier *carrier = orders[i].carrier;
                struct sl_block *blocks = NULL;
                uint64_t bytes = 0;

                for (; i < n && orders[i].carrier == carrier; i++) {
                        struct sl_block *block = sl_take(orders[i].made);

                        if (!block)
                                continue;
                        sl_block_chain(block, blocks);
                        blocks = block;
                        bytes += sl_merger_order_bytes(&orders[i]);
                }
                if (!blocks)
                        continue;
                m->block_bytes -= bytes;
                sl_bundle_put_blocks(m->bundle, carrier, blocks, bytes, &m->members.models[0]->crew->options);
        }
}

static void advance_state(struct sl_merger *m)
{
        struct sl_error error = {""};

        if (m->state == MERGER_CLEARING) {
                if (sl_bundle_put_blocks_away(m->bundle, m->registry->options.dispatcher))
                        return;
                m->state = MERGER_MERGING;
                leave_changed_out(m);
                if (m->members.n < 2) {
                        give_up(m, "nothing is left to merge");
                        return;
                }
                if (begin_fuse(m, &error) < 0) {
                        give_up_as(m, LOG_WARNING, error.text);
                        return;
                }
        }
        if (m->state == MERGER_MERGING)
                advance_merging(m);
        if (m->state == MERGER_MAKING && sl_block_maker_is_over(m->maker)) {
                put_blocks(m);
                end_merge(m);
        }
}

static void begin_merge(struct sl_merger *m)
{
        struct sl_merger_members members;
        struct sl_bundle *bundle = find_bundle(m, &members);

        if (!bundle)
                return;
        *sl_bundle_seen(bundle) = sign_members(bundle, &members);
        *sl_bundle_lacks(bundle) = 0;
        m->bundle = bundle;
        m->members = members;
        sl_merger_members_hold(&m->members);
        for (uint32_t i = 0; i < m->members.n_others; i++)
                say_who_stays(m, m->members.others[i], LOG_INFO,
                        "it is compiled with other options than those of its architecture that are merged");
        m->state = MERGER_CLEARING;
}

void sl_merger_advance(struct sl_merger *m)
{
        uint32_t failed;

        if (m->state != MERGER_IDLE && !is_still(m)) {
                forget_members(m);
                give_up(m, "one of its models goes or changes, or another one comes");
        }
        if (m->state == MERGER_IDLE && m->registry->options.runtime->fuse_bytes && !m->registry->change &&
                !sl_registry_busy(m->registry, &failed))
                begin_merge(m);
        if (m->state != MERGER_IDLE)
                advance_state(m);
}

void sl_merger_blocks_gone(struct sl_merger *m, const struct sl_block *blocks)
{
        const struct sl_block_count count = sl_blocks_count(blocks);
        struct sl_fields fields = {0};

        sl_fields_add_number(&fields, "runs", (long long)count.runs);
        sl_fields_add_number(&fields, "jobs", (long long)count.jobs);
        sl_account_log(m->registry->options.accounts, NULL, LOG_DEBUG, "bundle-unmerged", fields.text);
        sl_bundles_blocks_gone(&m->registry->bundles, blocks);
}

int sl_merger_new(struct sl_registry *registry, struct sl_merger **ret_merger)
{
        struct sl_merger *m = calloc(1, sizeof(*m));

        if (!m)
                return -ENOMEM;
        m->registry = registry;
        *ret_merger = m;
        return 0;
}

struct sl_merger *sl_merger_free(struct sl_merger *m)
{
        if (m)
                end_merge(m);
        free(m);
        return NULL;
}
