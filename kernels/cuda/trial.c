/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/trial.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "cuda/chooser.h"
#include "cuda/cudnn/plan.h"
#include "cuda/stopwatch.h"
#include "op.h"
#include "shape/attention.h"
#include "tensor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define ALIGNMENT 256

/* Of each byte of what is computed with: 0.01 as float32 and bfloat16, 1 as float16. */
#define FILL 0x3c

/* Engines that are compiled at run time, for a node. */
#define COMPILED_MAX 2u

/* ---- keys ---- */

static void mix(uint64_t key[2], const void *bytes, size_t n)
{
        XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, n, key[0] ^ (key[1] << 1 | key[1] >> 63));

        key[0] = hash.low64;
        key[1] = hash.high64;
}

static void mix_tensor(uint64_t key[2], const struct sl_tensor *tensor)
{
        const uint32_t kinds[] = {tensor->dtype, tensor->layout, tensor->shape.rank};

        mix(key, kinds, sizeof(kinds));
        mix(key, tensor->shape.dims, tensor->shape.rank * sizeof(tensor->shape.dims[0]));
}

/* Of attention; what else decides a convolution is in the texts of its candidates. */
static void mix_attention(uint64_t key[2], const struct sl_node_desc *node)
{
        struct sl_attention a = {.batch = 0};

        if (node->op != SL_OP_ROW_ATTENTION || sl_attention_read(node, &a, NULL) < 0)
                return;
        const int64_t numbers[] = {a.heads, a.depth, a.width, a.first[0], a.first[1], a.first[2], a.guard};

        mix(key, numbers, sizeof(numbers));
        mix(key, &a.scale, sizeof(a.scale));
}

void sl_cuda_trial_node_key(const struct sl_kernel_source *source, uint64_t ret_key[2])
{
        const struct sl_node_desc *node = source->node;
        const uint32_t kinds[] = {
                node->op, node->n_inputs, node->n_outputs, node->epilogue.activation, node->epilogue.has_residual};

        ret_key[0] = ret_key[1] = 0;
        mix(ret_key, source->blob->data, source->blob->bytes);
        mix(ret_key, kinds, sizeof(kinds));
        for (uint32_t i = 0; i < node->n_inputs; i++)
                mix_tensor(ret_key, &node->inputs[i]);
        mix_tensor(ret_key, &node->outputs[0]);
        mix_attention(ret_key, node);
}

void sl_cuda_trial_product_key(const struct sl_cuda_product *p, const struct sl_cublaslt_ground *ground, uint64_t ret_key[2])
{
        const int64_t numbers[] = {p->type, p->out_type, p->rows, p->depth, p->columns, p->batch, p->left_turned, p->right_turned,
                p->left_row, p->right_row, p->out_row, p->left_step, p->right_step, p->out_step, p->bias_step, p->has_bias,
                p->has_addend, p->has_relu, p->tf32, ground->alignment, (int64_t)ground->workspace_bytes, ground->n_processors};
        const float factors[] = {p->alpha, p->beta};

        ret_key[0] = ret_key[1] = 1;
        mix(ret_key, numbers, sizeof(numbers));
        mix(ret_key, factors, sizeof(factors));
}

/* ---- memory ---- */

/* Blocks one behind the other in what the owner lends. */
struct blocks {
        CUdeviceptr base;
        uint64_t bytes;
};

static uint64_t add_block(struct blocks *blocks, uint64_t bytes)
{
        uint64_t at = blocks->bytes;

        blocks->bytes += sl_align_up(bytes ? bytes : 1, ALIGNMENT);
        return at;
}

static int borrow(struct sl_session *session, struct blocks *blocks)
{
        const struct sl_cuda_chooser_options *options = sl_cuda_chooser_options(session->device.chooser);
        const struct sl_cuda_driver *driver = session->device.cuda->driver;
        int r = options->room ? options->room(options->context, blocks->bytes, &blocks->base) : -ENOMEM;

        return r < 0 ? r : sl_cuda_errno(driver->memset_d8_async(blocks->base, FILL, blocks->bytes, session->device.stream));
}

static int begin_watch(struct sl_session *session, struct sl_cuda_stopwatch *ret_watch)
{
        const struct sl_cuda_chooser_options *options = sl_cuda_chooser_options(session->device.chooser);

        return sl_cuda_stopwatch_init(
                ret_watch, session->device.cuda->driver, session->device.stream, options->breathe, options->context);
}

/* The shortest so far of several, of which @nth is another. */
struct race {
        uint32_t n_timed, best;
        uint64_t best_ns; /* 0: nothing was timed */
};

static void race_note(struct race *race, uint32_t nth, uint64_t ns)
{
        race->n_timed++;
        if (race->best_ns && race->best_ns <= ns)
                return;
        race->best_ns = ns;
        race->best = nth;
}

/* ---- nodes ---- */

/* A kernel for each candidate; those that cannot be made are NULL. */
#define KERNELS_MAX (SL_CUDA_CANDIDATES_MAX + COMPILED_MAX)
struct node_trial {
        struct sl_session *session;
        const struct sl_kernel_source *source;
        uint32_t n;
        struct sl_cuda_candidate candidates[KERNELS_MAX];
        struct sl_kernel *kernels[KERNELS_MAX];
        uint32_t n_compiled;
        struct sl_cudnn_plan compiled[SL_CUDNN_PLANS_MAX];
        struct sl_binding binding;
        const void *inputs[SL_NODE_INPUTS_MAX];
        void *outputs[1];
};

static uint64_t largest_workspace(const struct node_trial *t)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < t->n; i++)
                bytes = t->candidates[i].workspace_bytes > bytes ? t->candidates[i].workspace_bytes : bytes;
        return bytes;
}

/* The first way that is cuDNN's. */
static uint32_t way_of_cudnn(const struct node_trial *t)
{
        uint32_t i = 0;

        while (i + 1 < t->n && !t->candidates[i].text)
                i++;
        return t->candidates[i].way;
}

/* Engines that only the device has, of a way that the record has, in the scratch that there is. */
static void add_compiled(struct node_trial *t)
{
        uint32_t way = way_of_cudnn(t);
        bool tf32 = t->source->target && t->source->target->tf32;
        struct sl_cudnn_wish wish = {.compiles = true, .n_whole = COMPILED_MAX};
        const struct sl_cudnn *library = &t->session->libraries->cudnn;
        uint64_t workspace_bytes = largest_workspace(t);
        struct sl_cuda_asked asked;
        struct sl_cudnn_planner *planner;

        if (!sl_cuda_asked_read(t->source->node, way, tf32, &asked) || sl_cuda_session_use_cudnn(t->session, NULL) < 0 ||
                sl_cudnn_planner_new_on(library, t->session->cudnn, &planner, NULL) < 0)
                return;
        wish.tf32 = asked.tf32;
        if (sl_cudnn_plans_make(planner, &asked.convolution, &wish, t->compiled, &t->n_compiled, NULL) < 0)
                t->n_compiled = 0;
        sl_cudnn_planner_free(planner);
        for (uint32_t i = 0; i < t->n_compiled && t->n < KERNELS_MAX; i++)
                if (t->compiled[i].workspace_bytes <= workspace_bytes && t->compiled[i].whole == (way != SL_CUDA_WAY_BARE))
                        t->candidates[t->n++] = (struct sl_cuda_candidate){.way = way,
                                .notes = SL_CUDA_COMPILES,
                                .engine = t->compiled[i].engine,
                                .workspace_bytes = t->compiled[i].workspace_bytes,
                                .text = t->compiled[i].text,
                                .text_bytes = t->compiled[i].text_bytes};
}

static void make_kernels(struct node_trial *t)
{
        for (uint32_t i = 0; i < t->n; i++)
                if (sl_cuda_kernel_make(t->session, t->source, &t->candidates[i], &t->kernels[i], NULL) < 0)
                        t->kernels[i] = NULL;
}

/* As it lies: filters of bytes may be float32 in the plan, or have their totals behind them. */
static uint64_t input_bytes(const struct sl_kernel_source *source, uint32_t index)
{
        uint64_t packed_bytes = source->packed ? source->packed[index].data_bytes : 0;

        return packed_bytes ? packed_bytes : sl_tensor_bytes(&source->node->inputs[index]);
}

static int place_operands(struct node_trial *t)
{
        const struct sl_node_desc *node = t->source->node;
        uint64_t inputs[SL_NODE_INPUTS_MAX], output, scratch, scratch_bytes = 0;
        struct blocks blocks = {.bytes = 0};
        int r;

        for (uint32_t i = 0; i < node->n_inputs; i++)
                inputs[i] = add_block(&blocks, input_bytes(t->source, i));
        output = add_block(&blocks, sl_tensor_bytes(&node->outputs[0]));
        for (uint32_t i = 0; i < t->n; i++)
                if (t->kernels[i] && t->kernels[i]->scratch_bytes > scratch_bytes)
                        scratch_bytes = t->kernels[i]->scratch_bytes;
        scratch = add_block(&blocks, scratch_bytes);
        r = borrow(t->session, &blocks);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                t->inputs[i] = node->inputs[i].dtype == SL_DTYPE_NONE ? NULL : (const void *)(blocks.base + inputs[i]);
        t->outputs[0] = (void *)(blocks.base + output);
        t->binding = (struct sl_binding){.inputs = t->inputs, .outputs = t->outputs, .scratch = (void *)(blocks.base + scratch)};
        return 0;
}

struct node_launch {
        struct sl_kernel *kernel;
        const struct sl_binding *binding;
};

static CUresult launch_node(void *context)
{
        const struct node_launch *launch = context;

        return sl_cuda_kernel_queue(launch->kernel, launch->binding);
}

static int run_node_race(struct node_trial *t, struct race *race)
{
        struct sl_cuda_stopwatch watch;
        int r = begin_watch(t->session, &watch);

        if (r < 0)
                return r;
        for (uint32_t i = 0; i < t->n && r != -EIO; i++) {
                struct node_launch launch = {t->kernels[i], &t->binding};
                uint64_t ns;

                r = t->kernels[i] ? sl_cuda_stopwatch_time(&watch, launch_node, &launch, race->best_ns, &ns) : -ENOTSUP;
                if (r == 0)
                        race_note(race, i, ns);
        }
        sl_cuda_stopwatch_deinit(&watch);
        return r == -EIO ? r : 0;
}

/* The plan as the device has finished it, which compiles nothing when it is loaded again. */
static void finish_text(const struct node_trial *t, uint32_t nth, struct sl_cudnn_plan *ret_plan)
{
        const struct sl_kernel *kernel = t->kernels[nth];

        for (uint32_t i = 0; kernel && i < kernel->recipe.n_steps; i++)
                if (kernel->recipe.steps[i].kind == SL_CUDA_CONVOLVE &&
                        sl_cudnn_plan_describe(&t->session->libraries->cudnn, kernel->made[i].execution.plan, ret_plan) == 0)
                        return;
        *ret_plan = (struct sl_cudnn_plan){.text = NULL};
}

static void keep_node(const struct node_trial *t, const struct race *race, const uint64_t key[2], uint64_t taken_ns)
{
        const struct sl_cuda_candidate *best = &t->candidates[race->best];
        struct sl_gpu_choice choice = {.key = {key[0], key[1]},
                .way = best->way,
                .workspace_bytes = best->workspace_bytes,
                .ns = race->best_ns,
                .text = best->text,
                .text_bytes = best->text_bytes};
        struct sl_cudnn_plan finished;

        finish_text(t, race->best, &finished);
        if (finished.text && finished.workspace_bytes <= best->workspace_bytes) {
                choice.text = finished.text;
                choice.text_bytes = finished.text_bytes;
        }
        sl_cuda_chooser_keep(t->session->device.chooser, &choice, race->n_timed, taken_ns);
        sl_cudnn_plan_deinit(&finished);
}

static int try_node(struct node_trial *t, struct race *race)
{
        const struct sl_cuda_chooser *chooser = t->session->device.chooser;
        int r;

        if (!sl_cuda_chooser_has_time(chooser))
                return 0;
        if (sl_cuda_chooser_options(chooser)->compiles)
                add_compiled(t);
        make_kernels(t);
        r = place_operands(t);
        if (r == 0)
                r = run_node_race(t, race);
        return r;
}

int sl_cuda_trial_node(struct sl_session *session, const struct sl_kernel_source *source, const struct sl_cuda_record *record,
        const uint64_t key[2])
{
        struct node_trial *t = calloc(1, sizeof(*t));
        uint64_t begun_ns = sl_clock_ns(), spent_ns = sl_cuda_chooser_spent_ns(session->device.chooser), within_ns;
        struct race race = {.best = 0};
        int r;

        if (!t)
                return 0;
        t->session = session;
        t->source = source;
        t->n = record->n;
        memcpy(t->candidates, record->candidates, record->n * sizeof(record->candidates[0]));
        r = try_node(t, &race);
        within_ns =
                sl_cuda_chooser_spent_ns(session->device.chooser) - spent_ns; /* on products of its candidates, noted with them */
        if (r != -EIO)
                keep_node(t, &race, key, sl_clock_ns() - begun_ns - within_ns);
        for (uint32_t i = 0; i < t->n; i++)
                sl_cuda_kernel_free(t->kernels[i]);
        sl_cudnn_plans_deinit(t->compiled, t->n_compiled);
        free(t);
        return r == -EIO ? r : 0;
}

/* ---- products ---- */

struct product_trial {
        struct sl_session *session;
        struct sl_cublaslt_matmul matmul; /* borrowed descriptors */
        struct sl_cublaslt_operands operands;
        uint32_t n;
        struct sl_cublaslt_algorithm algorithms[SL_CUBLASLT_ALGORITHMS_MAX];
};

/* A stack of matrices as it lies. */
static uint64_t stack_bytes(uint32_t dtype, int64_t rows, int64_t row, int64_t step, int64_t batch)
{
        return (uint64_t)(rows * row + (batch - 1) * step) * sl_dtype_bytes(dtype);
}

static int place_product(struct product_trial *t, const struct sl_cublaslt_ground *ground)
{
        const struct sl_cuda_product *p = &t->matmul.product;
        struct blocks blocks = {.bytes = 0};
        uint64_t left =
                add_block(&blocks, stack_bytes(p->type, p->left_turned ? p->depth : p->rows, p->left_row, p->left_step, p->batch));
        uint64_t right = add_block(
                &blocks, stack_bytes(p->type, p->right_turned ? p->columns : p->depth, p->right_row, p->right_step, p->batch));
        uint64_t bias = add_block(&blocks, stack_bytes(p->out_type, 1, p->columns, p->bias_step, p->batch));
        uint64_t out = add_block(&blocks, stack_bytes(p->out_type, p->rows, p->out_row, p->out_step, p->batch));
        uint64_t addend =
                p->has_addend ? add_block(&blocks, stack_bytes(p->out_type, p->rows, p->out_row, p->out_step, p->batch)) : 0;
        uint64_t workspace = add_block(&blocks, ground->workspace_bytes);
        int r = borrow(t->session, &blocks);

        t->operands = (struct sl_cublaslt_operands){.left = blocks.base + left,
                .right = blocks.base + right,
                .bias = p->has_bias ? blocks.base + bias : 0,
                .addend = p->has_addend ? blocks.base + addend : 0,
                .out = blocks.base + out,
                .workspace = blocks.base + workspace};
        return r;
}

static CUresult launch_product(void *context)
{
        struct product_trial *t = context;

        return sl_cublaslt_matmul_launch(&t->matmul, &t->operands, t->session->device.stream) == CUBLAS_STATUS_SUCCESS
                       ? CUDA_SUCCESS
                       : CUDA_ERROR_LAUNCH_FAILED;
}

static int run_product_race(struct product_trial *t, struct race *race)
{
        struct sl_cuda_stopwatch watch;
        int r = begin_watch(t->session, &watch);

        if (r < 0)
                return r;
        for (uint32_t i = 0; i < t->n && r != -EIO; i++) {
                uint64_t ns;

                sl_cublaslt_matmul_use(&t->matmul, &t->algorithms[i]);
                r = sl_cuda_stopwatch_time(&watch, launch_product, t, race->best_ns, &ns);
                if (r == 0)
                        race_note(race, i, ns);
        }
        sl_cuda_stopwatch_deinit(&watch);
        return r == -EIO ? r : 0;
}

static void keep_product(const struct product_trial *t, const struct race *race, const uint64_t key[2], uint64_t taken_ns)
{
        struct sl_gpu_choice choice = {.key = {key[0], key[1]}, .ns = race->best_ns};

        if (t->n) {
                choice.has_algorithm = 1;
                choice.workspace_bytes = t->algorithms[race->best].workspace_bytes;
                memcpy(choice.algorithm, &t->algorithms[race->best].algo, sizeof(choice.algorithm));
        }
        sl_cuda_chooser_keep(t->session->device.chooser, &choice, race->n_timed, taken_ns);
}

int sl_cuda_trial_product(struct sl_session *session, const struct sl_cublaslt_matmul *matmul,
        const struct sl_cublaslt_ground *ground, const uint64_t key[2])
{
        struct product_trial t = {.session = session, .matmul = *matmul};
        uint64_t begun_ns = sl_clock_ns();
        struct race race = {.best = 0};
        int r = 0;

        _Static_assert(sizeof(t.algorithms[0].algo) == SL_GPU_ALGORITHM_BYTES, "a choice has all of an algorithm");
        t.n = sl_cublaslt_matmul_list(matmul, ground, t.algorithms);
        if (t.n && sl_cuda_chooser_has_time(session->device.chooser)) {
                r = place_product(&t, ground);
                if (r == 0)
                        r = run_product_race(&t, &race);
        }
        if (r == -EIO)
                return r;
        keep_product(&t, &race, key, sl_clock_ns() - begun_ns);
        return 0;
}
