/* SPDX-License-Identifier: Apache-2.0 */
#include "merger.h"

#include "account.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fields.h"
#include "block_maker.h"
#include "compile.h"
#include "compiler_limit.h"
#include "compilers.h"
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

/* Of what it watches. */
#define FUSE_TOKEN  (1ull << 59)
#define ORDER_TOKEN (FUSE_TOKEN | 1)

enum merger_state { MERGER_IDLE, MERGER_CLEARING, MERGER_MERGING, MERGER_MAKING };

struct sl_merger {
        struct sl_registry *registry;
        enum merger_state state;
        struct sl_bundle *bundle; /* whose members are merged */
        struct sl_merger_members members;
        struct sl_fuse *fuse;
        struct sl_compile_order *order; /* its compiler is being started */
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
        return sl_served_is_ready(served) && served->model && served->model->bundle == bundle &&
               (served->serves == served->want.number || served->failed == served->want.number) && !sl_served_is_changing(served) &&
               !served->load && !sl_crew_is_changing(served->model->crew);
}

/* Plans of one merged graph are made of whole files. */
static bool can_be_merged(const struct sl_served *served)
{
        return !served->is_shape && !served->model->info->n_symbols &&
               !sl_worker_options_are_fake(&served->model->crew->options.worker);
}

/* False: one of the bundle is not ready, or on its way. A model that has several names counts once. */
static bool find_members(const struct sl_merger *m, const struct sl_bundle *bundle, struct sl_merger_members *ret_members)
{
        const struct sl_model *seen[SL_CARRIER_LANES_MAX];
        uint32_t n_seen = 0;

        ret_members->n = 0;
        for (uint32_t i = 0; i < m->registry->n_awake; i++) {
                const struct sl_served *served = sl_awake_at(m->registry, i);
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
                ret_members->specs[ret_members->n++] = served->want.spec;
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

        for (uint32_t i = 0; i < m->result.n_blocks; i++) {
                lanes += m->result.blocks[i].n_lanes;
                shared += sl_plan_info(m->result.blocks[i].plan)->member_bytes;
        }
        sl_fields_add(&fields, "model", m->members.name);
        sl_fields_add_number(&fields, "models", m->members.n);
        sl_fields_add_number(&fields, "plans", m->result.n_blocks);
        sl_fields_add_number(&fields, "lanes", lanes);
        sl_fields_add_number(&fields, "lanes_least", least);
        sl_fields_add_real(&fields, "speed_ratio", sl_fuse_gain(table));
        sl_fields_add_number(&fields, "own_bytes", (long long)bytes);
        sl_fields_add_number(&fields, "shared_bytes", (long long)shared);
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

/* Its compiler has what it was promised until it is gone, and nobody waits for that here. */
static void end_fuse(struct sl_merger *m)
{
        struct sl_compilation *compilation = sl_fuse_take_compilation(m->fuse);

        sl_wait_unwatch(m->registry->options.wait, FUSE_TOKEN);
        m->fuse = sl_fuse_free(m->fuse);
        if (m->order)
                sl_wait_unwatch(m->registry->options.wait, ORDER_TOKEN);
        else if (!compilation)
                return;
        m->order = sl_compile_order_cancel(m->order, m->compiler_bytes);
        sl_compilers_end(m->registry->compilers, compilation, m->compiler_bytes);
        m->compiler_bytes = 0;
}

/* What was under way is over, however that was. */
static void end_merge(struct sl_merger *m)
{
        if (m->fuse)
                end_fuse(m);
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
                .data_folders = runtime->data_folders,
                .zygote = runtime->zygote,
                .orders = true,
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
        r = sl_wait_watch(m->registry->options.wait, sl_fuse_fd(m->fuse), FUSE_TOKEN);
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

/* As those of loads it is started by a thread that may wait for that. */
static int order_compiler(struct sl_merger *m, const struct sl_compile_options *options, struct sl_error *error)
{
        int r = sl_compilers_start(m->registry->compilers, options, &m->order, error);

        if (r < 0)
                return r;
        r = sl_wait_watch(m->registry->options.wait, sl_compile_order_fd(m->order), ORDER_TOKEN);
        if (r == 0)
                return 0;
        m->order = sl_compile_order_cancel(m->order, 0);
        return sl_error_set(error, -r, "its compiler cannot be watched: %s", strerror(-r));
}

static void take_compiler(struct sl_merger *m)
{
        struct sl_compilation *compilation = NULL;
        struct sl_error error = {""};
        int r;

        sl_wait_unwatch(m->registry->options.wait, ORDER_TOKEN);
        r = sl_compile_order_take(sl_take(m->order), &compilation, &error);
        sl_fuse_give(m->fuse, r, compilation, &error);
}

/* True: it is over. */
static bool advance_fuse(struct sl_merger *m)
{
        struct sl_compile_options options;
        struct sl_error error;

        if (m->order) {
                if (!sl_compile_order_is_done(m->order))
                        return false;
                take_compiler(m);
        }
        while (!sl_fuse_advance(m->fuse)) {
                int r;

                if (!sl_fuse_wants(m->fuse, &options))
                        return false;
                r = order_compiler(m, &options, &error);
                if (r == 0)
                        return false;
                sl_fuse_give(m->fuse, r, NULL, &error);
        }
        return true;
}

static void advance_merging(struct sl_merger *m)
{
        if (!advance_fuse(m))
                return;
        sl_fuse_take(m->fuse, &m->result);
        sl_wait_unwatch(m->registry->options.wait, FUSE_TOKEN);
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

void sl_merger_advance(struct sl_merger *m, bool is_busy)
{
        if (m->state != MERGER_IDLE && !is_still(m)) {
                forget_members(m);
                give_up(m, "one of its models goes or changes, or another one comes");
        }
        if (m->state == MERGER_IDLE && m->registry->options.runtime->fuse_bytes && !is_busy)
                begin_merge(m);
        if (m->state != MERGER_IDLE)
                advance_state(m);
}

bool sl_merger_owns(uint64_t token)
{
        return token == FUSE_TOKEN || token == ORDER_TOKEN;
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
