/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One input is all that are no constants, and of the whole a digest is kept, so that a trial takes the memory of one input and one
 * output.
 */
#include "cpu/split_trial.h"

#include "base/dtype.h"
#include "cpu/base/bfloat16.h"
#include "cpu/base/operator.h"
#include "cpu/onednn/divided_call.h"
#include "kernel_source.h"
#include "runner.h"

#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>

/* A prime, or rows of a matrix would be alike and few results were compared: bfloat16 hides most other orders of a sum. */
#define RANDOM_FLOATS 65521u

/* Numbers that look like what a network has; so many, again and again. */
static void fill_values(void *values, uint32_t dtype, uint64_t bytes)
{
        uint64_t size = sl_dtype_bytes(dtype), own = bytes < RANDOM_FLOATS * size ? bytes : RANDOM_FLOATS * size;
        uint32_t state = 12345;

        for (uint64_t i = 0; i < own / size; i++) {
                state = state * 1664525u + 1013904223u;
                float value = (float)(int32_t)state * 0x1p-31f;

                if (dtype == SL_DTYPE_F32)
                        ((float *)values)[i] = value;
                else
                        ((uint16_t *)values)[i] = sl_narrow_bf16(value);
        }
        for (uint64_t done = own, more; done < bytes; done += more) {
                more = bytes - done < own ? bytes - done : own;
                memcpy((char *)values + done, values, more);
        }
}

/* Buffers for a launch with inputs that are no constants: all of them the same random numbers. */
struct trial {
        const void *inputs[SL_NODE_INPUTS_MAX];
        void *numbers, *output, *scratch;
        uint64_t numbers_bytes, output_bytes, scratch_bytes;
        XXH128_hash_t whole; /* of the output */
};

/* Of the system, which gets it back: in the heap what others keep would lie behind it, and the next trial is larger. */
static void *map_bytes(uint64_t bytes)
{
        void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return memory == MAP_FAILED ? NULL : memory;
}

static void unmap_bytes(void *memory, uint64_t bytes)
{
        if (memory)
                munmap(memory, bytes);
}

static void trial_deinit(struct trial *trial)
{
        unmap_bytes(trial->numbers, trial->numbers_bytes);
        unmap_bytes(trial->output, trial->output_bytes);
        unmap_bytes(trial->scratch, trial->scratch_bytes);
}

static bool is_drawn(const struct sl_kernel_source *source, uint32_t i)
{
        return source->node->inputs[i].dtype != SL_DTYPE_NONE && !(source->constants && source->constants[i]);
}

/* Bytes of the largest input that is no constant; false: one is of another type than input 0, or that is none of real numbers. */
static bool drawn_bytes(const struct sl_kernel_source *source, uint64_t *ret_bytes)
{
        *ret_bytes = 0;
        if (!sl_cpu_is_real(&source->node->inputs[0]))
                return false;
        for (uint32_t i = 0; i < source->node->n_inputs; i++) {
                const struct sl_tensor *input = &source->node->inputs[i];

                if (!is_drawn(source, i))
                        continue;
                if (input->dtype != source->node->inputs[0].dtype)
                        return false;
                *ret_bytes = sl_tensor_bytes(input) > *ret_bytes ? sl_tensor_bytes(input) : *ret_bytes;
        }
        return true;
}

/* More memory than this, and the time to fill it, is not taken at a load: such a call, of many samples, stays whole. */
#define TRIAL_BYTES_MAX (160ull << 20)

static bool trial_init(struct trial *trial, const struct sl_kernel_source *source, size_t scratch_bytes)
{
        uint64_t output_bytes = sl_tensor_bytes(&source->node->outputs[0]), bytes;

        if (!drawn_bytes(source, &bytes) || bytes + output_bytes > TRIAL_BYTES_MAX)
                return false;
        trial->numbers_bytes = bytes + 1;
        trial->output_bytes = output_bytes;
        trial->scratch_bytes = scratch_bytes + 1;
        trial->numbers = map_bytes(trial->numbers_bytes);
        trial->output = map_bytes(trial->output_bytes);
        trial->scratch = map_bytes(trial->scratch_bytes);
        if (!trial->numbers || !trial->output || !trial->scratch)
                return false;
        fill_values(trial->numbers, source->node->inputs[0].dtype, bytes);
        for (uint32_t i = 0; i < source->node->n_inputs; i++)
                trial->inputs[i] = is_drawn(source, i) ? trial->numbers : source->constants ? source->constants[i] : NULL;
        return true;
}

static bool run_whole(const struct sl_runner *runner, struct sl_kernel *kernel, struct trial *trial)
{
        struct sl_binding binding = {.inputs = trial->inputs, .outputs = &trial->output, .scratch = trial->scratch};

        if (runner->launch(kernel, &binding))
                return false;
        trial->whole = XXH3_128bits(trial->output, trial->output_bytes);
        return true;
}

/* Do parts of it, of such a number, give the bits of the whole? */
static bool parts_agree(const struct sl_runner *runner, struct sl_kernel *kernel, struct trial *trial, uint32_t count)
{
        struct sl_binding binding = {.inputs = trial->inputs, .outputs = &trial->output, .scratch = trial->scratch};
        bool agree = runner->divide(kernel, SL_AXIS_ROWS, count) > 0;

        if (agree)
                memset(trial->output, 0xff, trial->output_bytes);
        for (uint32_t i = 0; i < count && agree; i++) {
                struct sl_part part = sl_part_of(SL_AXIS_ROWS, runner->units(kernel, SL_AXIS_ROWS), i, count);

                binding.part = &part;
                agree = runner->launch(kernel, &binding) == 0;
        }
        return agree && XXH128_isEqual(XXH3_128bits(trial->output, trial->output_bytes), trial->whole);
}

void sl_cpu_try_splits(const struct sl_runner *runner, struct sl_kernel *kernel, const struct sl_kernel_source *source,
        struct sl_split ret_splits[SL_TEAM_SIZE_COUNT])
{
        struct trial trial = {.numbers = NULL};

        if (trial_init(&trial, source, runner->scratch_bytes(kernel)) && run_whole(runner, kernel, &trial))
                for (uint32_t count = 2; count <= SL_DIVIDED_PARTS_MAX; count *= 2) {
                        if (!parts_agree(runner, kernel, &trial, count))
                                continue;
                        for (uint32_t i = 0; i < SL_TEAM_SIZE_COUNT; i++)
                                if (sl_team_size_at(i) >= count)
                                        ret_splits[i] = (struct sl_split){SL_AXIS_ROWS, (uint8_t)count, 0, 0};
                }
        trial_deinit(&trial);
}
