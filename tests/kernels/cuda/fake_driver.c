/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_state.h"

#include "base/bytes.h"
#include "base/split_mix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct fake_state fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

_Noreturn void fake_die(const char *why)
{
        fprintf(stderr, "fake driver: %s\n", why);
        abort();
}

CUresult fake_enter(enum fake_cuda_call call)
{
        pthread_mutex_lock(&fake.lock);
        if (++fake.calls[call] == fake.fails_at[call])
                return fake.fails_with[call];
        return fake.lost;
}

CUresult fake_leave(CUresult result)
{
        pthread_mutex_unlock(&fake.lock);
        return result;
}

static struct span *fake_add_span(enum span_kind kind, CUdeviceptr address, size_t bytes)
{
        for (struct span *s = fake.spans; s < fake.spans + SPANS_MAX; s++)
                if (s->kind == SPAN_NONE) {
                        *s = (struct span){kind, address, bytes, kind == SPAN_ALLOCATED};
                        return s;
                }
        fake_die("too many runs of memory");
}

static struct span *find_span(enum span_kind kind, CUdeviceptr address)
{
        for (struct span *s = fake.spans; s < fake.spans + SPANS_MAX; s++)
                if (s->kind == kind && s->address == address)
                        return s;
        return NULL;
}

struct object *fake_add_object(enum object_kind kind)
{
        for (struct object *o = fake.objects; o < fake.objects + OBJECTS_MAX; o++)
                if (o->kind == OBJECT_NONE) {
                        if (o - fake.objects >= fake.n_objects)
                                fake.n_objects = (uint32_t)(o - fake.objects) + 1;
                        *o = (struct object){.kind = kind, .fd = -1};
                        o->end = &o->first;
                        return o;
                }
        fake_die("too many objects");
}

struct object *fake_get_object(const void *handle, enum object_kind kind)
{
        struct object *o = (struct object *)handle;

        if (o < fake.objects || o >= fake.objects + OBJECTS_MAX || o->kind != kind)
                fake_die("a handle that is none");
        return o;
}

bool fake_has(CUdeviceptr address, size_t bytes)
{
        CUdeviceptr at = address;
        bool found = true;

        while (found && at < address + bytes) {
                found = false;
                for (struct span *s = fake.spans; s < fake.spans + SPANS_MAX && !found; s++)
                        if ((s->kind == SPAN_ALLOCATED || s->kind == SPAN_MAPPED) && s->accessible && at >= s->address &&
                                at < s->address + s->bytes) {
                                at = s->address + s->bytes;
                                found = true;
                        }
        }
        return found;
}

bool fake_has_registered(CUdeviceptr address, size_t bytes)
{
        for (struct span *s = fake.spans; s < fake.spans + SPANS_MAX; s++)
                if ((s->kind == SPAN_REGISTERED || s->kind == SPAN_PINNED) && address >= s->address &&
                        address + bytes <= s->address + s->bytes)
                        return true;
        return false;
}

/* ---- what streams do ---- */

static bool can_go(const struct work *work)
{
        return work && (work->kind != WORK_WAIT || work->event->completed >= work->generation);
}

static void do_work(struct object *stream, struct work *work)
{
        switch (work->kind) {
        case WORK_COPY:
                memmove(work->to, work->from, work->bytes);
                break;
        case WORK_SET:
                memset(work->to, (int)work->value, work->bytes);
                break;
        case WORK_RECORD:
                work->event->completed = work->generation;
                work->event->clock_ns = stream->clock_ns;
                break;
        case WORK_WAIT:
                break;
        case WORK_LAUNCH:
                work->kernel->run(&work->launch, work->argument);
                stream->clock_ns += work->kernel->takes_ns ? work->kernel->takes_ns(work->argument) : FAKE_CUDA_LAUNCH_NS;
                break;
        case WORK_WRITE:
                __atomic_store_n((uint64_t *)work->to, work->value, __ATOMIC_RELEASE);
                break;
        }
        free(work->argument);
        free(work);
}

static void step_stream(struct object *stream)
{
        struct work *work = stream->first;

        stream->first = work->next;
        if (!stream->first)
                stream->end = &stream->first;
        do_work(stream, work);
}

/* The lock is held. */
static bool step(void)
{
        struct object *ready[OBJECTS_MAX];
        size_t n = 0;

        for (struct object *o = fake.objects; o < fake.objects + fake.n_objects; o++)
                if (o->kind == OBJECT_STREAM && can_go(o->first))
                        ready[n++] = o;
        if (n)
                step_stream(ready[sl_split_mix_next(&fake.random) % n]);
        return n > 0;
}

void fake_append(struct object *owner, const struct work *work)
{
        struct work *kept = malloc(sizeof(*kept));

        *kept = *work;
        kept->next = NULL;
        *owner->end = kept;
        owner->end = &kept->next;
}

void fake_drop_work(struct object *owner)
{
        for (struct work *w = owner->first, *next; w; w = next) {
                next = w->next;
                free(w->argument);
                free(w);
        }
        owner->first = NULL;
        owner->end = &owner->first;
}

void fake_add_work(CUstream handle, struct work work)
{
        struct object *stream = fake_get_object(handle, OBJECT_STREAM);

        if (stream->capture && work.kind != WORK_COPY && work.kind != WORK_SET && work.kind != WORK_LAUNCH)
                fake_die("what is captured here is copies, sets and launches");
        fake_append(stream->capture ? stream->capture : stream, &work);
}

bool fake_cuda_step(void)
{
        bool stepped;

        pthread_mutex_lock(&fake.lock);
        stepped = step();
        pthread_mutex_unlock(&fake.lock);
        return stepped;
}

void fake_cuda_finish(void)
{
        while (fake_cuda_step())
                ;
}

/* ---- the functions ---- */

static CUresult CUDAAPI fake_get_error_name(CUresult error, const char **ret_name)
{
        *ret_name = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER";
        return CUDA_SUCCESS;
}

static CUresult CUDAAPI fake_get_error_string(CUresult error, const char **ret_text)
{
        *ret_text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "something else";
        return CUDA_SUCCESS;
}

static CUresult CUDAAPI fake_init(unsigned int flags)
{
        (void)flags;
        ENTER(init);
        return fake_leave(fake.options.n_devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE);
}

static CUresult CUDAAPI fake_device_get_count(int *ret_count)
{
        ENTER(device_get_count);
        *ret_count = fake.options.n_devices;
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_device_get(CUdevice *ret_device, int ordinal)
{
        ENTER(device_get);
        *ret_device = ordinal;
        return fake_leave(ordinal < fake.options.n_devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE);
}

static CUresult CUDAAPI fake_device_get_name(char *name, int length, CUdevice device)
{
        ENTER(device_get_name);
        snprintf(name, (size_t)length, "Fake %d", device);
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_device_get_attribute(int *ret_value, CUdevice_attribute attribute, CUdevice device)
{
        (void)device;
        ENTER(device_get_attribute);
        *ret_value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR            ? fake.options.major
                     : attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT              ? fake.options.n_processors
                     : attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK       ? 49152
                     : attribute == CU_DEVICE_ATTRIBUTE_WARP_SIZE                         ? 32
                     : attribute == CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS     ? fake.options.writes_values
                     : attribute == CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED ? 1
                                                                                          : 0;
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_device_total_mem(size_t *ret_bytes, CUdevice device)
{
        (void)device;
        ENTER(device_total_mem);
        *ret_bytes = fake.options.memory_bytes;
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_device_primary_ctx_retain(CUcontext *ret_context, CUdevice device)
{
        (void)device;
        ENTER(device_primary_ctx_retain);
        fake.retained++;
        *ret_context = (CUcontext)&fake;
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_device_primary_ctx_release(CUdevice device)
{
        (void)device;
        ENTER(device_primary_ctx_release);
        if (!fake.retained--)
                fake_die("a context is released that nobody holds");
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_ctx_set_current(CUcontext context)
{
        (void)context;
        ENTER(ctx_set_current);
        return fake_leave(CUDA_SUCCESS);
}

/* Of a Hopper. */
static CUresult CUDAAPI fake_ctx_get_stream_priority_range(int *ret_least, int *ret_greatest)
{
        ENTER(ctx_get_stream_priority_range);
        *ret_least = 0;
        *ret_greatest = -5;
        return fake_leave(CUDA_SUCCESS);
}

static bool fits(size_t bytes)
{
        return bytes <= fake.options.memory_bytes && fake.in_use <= fake.options.memory_bytes - bytes;
}

static CUresult CUDAAPI fake_mem_alloc(CUdeviceptr *ret_address, size_t bytes)
{
        void *memory;

        ENTER(mem_alloc);
        if (!bytes)
                return fake_leave(CUDA_ERROR_INVALID_VALUE);
        memory = fits(bytes) ? aligned_alloc(256, sl_align_up(bytes, 256)) : NULL;
        if (!memory)
                return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
        memset(memory, 0xa5, bytes);
        fake.in_use += bytes;
        *ret_address = (CUdeviceptr)memory;
        fake_add_span(SPAN_ALLOCATED, *ret_address, bytes);
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_mem_free(CUdeviceptr address)
{
        struct span *span;

        ENTER(mem_free);
        span = find_span(SPAN_ALLOCATED, address);
        if (!span)
                fake_die("memory is freed that is none");
        fake.in_use -= span->bytes;
        span->kind = SPAN_NONE;
        free((void *)address);
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_mem_host_register(void *memory, size_t bytes, unsigned int flags)
{
        (void)flags;
        ENTER(mem_host_register);
        if ((uintptr_t)memory % SL_PAGE_BYTES || bytes % SL_PAGE_BYTES)
                return fake_leave(CUDA_ERROR_INVALID_VALUE);
        if (find_span(SPAN_REGISTERED, (CUdeviceptr)memory))
                return fake_leave(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        fake_add_span(SPAN_REGISTERED, (CUdeviceptr)memory, bytes);
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_mem_host_unregister(void *memory)
{
        struct span *span;

        ENTER(mem_host_unregister);
        span = find_span(SPAN_REGISTERED, (CUdeviceptr)memory);
        if (!span)
                return fake_leave(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        span->kind = SPAN_NONE;
        return fake_leave(CUDA_SUCCESS);
}

/* One address for both, as on every device that the module runs on. */
static CUresult CUDAAPI fake_mem_host_get_device_pointer(CUdeviceptr *ret_address, void *memory, unsigned int flags)
{
        (void)flags;
        ENTER(mem_host_get_device_pointer);
        if (!fake_has_registered((CUdeviceptr)memory, 1))
                return fake_leave(CUDA_ERROR_INVALID_VALUE);
        *ret_address = (CUdeviceptr)memory;
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_mem_get_info(size_t *ret_free, size_t *ret_total)
{
        ENTER(mem_get_info);
        *ret_free = fake.options.memory_bytes - fake.in_use;
        *ret_total = fake.options.memory_bytes;
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_mem_host_alloc(void **ret_memory, size_t bytes, unsigned int flags)
{
        (void)flags;
        ENTER(mem_host_alloc);
        *ret_memory = aligned_alloc(SL_PAGE_BYTES, sl_align_up(bytes, SL_PAGE_BYTES));
        if (!*ret_memory)
                return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
        fake_add_span(SPAN_PINNED, (CUdeviceptr)*ret_memory, bytes);
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_mem_free_host(void *memory)
{
        struct span *span;

        ENTER(mem_free_host);
        span = find_span(SPAN_PINNED, (CUdeviceptr)memory);
        if (!span)
                fake_die("pinned memory is freed that is none");
        span->kind = SPAN_NONE;
        free(memory);
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_mem_get_allocation_granularity(
        size_t *ret_bytes, const CUmemAllocationProp *properties, CUmemAllocationGranularity_flags option)
{
        (void)properties, (void)option;
        ENTER(mem_get_allocation_granularity);
        *ret_bytes = fake.options.granularity;
        return fake_leave(CUDA_SUCCESS);
}

static bool is_granular(size_t bytes)
{
        return bytes && bytes % fake.options.granularity == 0;
}

static CUresult CUDAAPI fake_mem_address_reserve(
        CUdeviceptr *ret_address, size_t bytes, size_t alignment, CUdeviceptr wish, unsigned long long flags)
{
        void *memory;

        (void)alignment, (void)wish, (void)flags;
        ENTER(mem_address_reserve);
        if (!is_granular(bytes))
                return fake_leave(CUDA_ERROR_INVALID_VALUE);
        memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
                return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
        *ret_address = (CUdeviceptr)memory;
        fake_add_span(SPAN_RESERVED, *ret_address, bytes);
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_mem_address_free(CUdeviceptr address, size_t bytes)
{
        struct span *span;

        ENTER(mem_address_free);
        span = find_span(SPAN_RESERVED, address);
        if (!span || span->bytes != bytes)
                fake_die("addresses are given back that are none");
        for (struct span *s = fake.spans; s < fake.spans + SPANS_MAX; s++)
                if (s->kind == SPAN_MAPPED && s->address >= address && s->address < address + bytes)
                        fake_die("addresses are given back with memory mapped there");
        span->kind = SPAN_NONE;
        munmap((void *)address, bytes);
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_mem_create(
        CUmemGenericAllocationHandle *ret_handle, size_t bytes, const CUmemAllocationProp *properties, unsigned long long flags)
{
        struct object *memory;

        (void)flags;
        ENTER(mem_create);
        if (!is_granular(bytes) || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
                return fake_leave(CUDA_ERROR_INVALID_VALUE);
        if (!fits(bytes))
                return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
        memory = fake_add_object(OBJECT_MEMORY);
        memory->fd = memfd_create("fake device", MFD_CLOEXEC);
        memory->bytes = bytes;
        if (memory->fd < 0 || ftruncate(memory->fd, (off_t)bytes) < 0)
                fake_die("no memory file");
        fake.in_use += bytes;
        *ret_handle = (CUmemGenericAllocationHandle)(uintptr_t)memory;
        return fake_leave(CUDA_SUCCESS);
}

/* What is mapped stays until it is unmapped; here it is gone from the count at once. */
static CUresult CUDAAPI fake_mem_release(CUmemGenericAllocationHandle handle)
{
        struct object *memory;

        ENTER(mem_release);
        memory = fake_get_object((void *)(uintptr_t)handle, OBJECT_MEMORY);
        fake.in_use -= memory->bytes;
        close(memory->fd);
        memory->kind = OBJECT_NONE;
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_mem_map(
        CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
        struct object *memory;

        (void)flags;
        ENTER(mem_map);
        memory = fake_get_object((void *)(uintptr_t)handle, OBJECT_MEMORY);
        if (offset || bytes != memory->bytes)
                return fake_leave(CUDA_ERROR_INVALID_VALUE);
        if (mmap((void *)address, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->fd, 0) == MAP_FAILED)
                fake_die("no mapping");
        fake_add_span(SPAN_MAPPED, address, bytes);
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_mem_unmap(CUdeviceptr address, size_t bytes)
{
        struct span *span;

        ENTER(mem_unmap);
        span = find_span(SPAN_MAPPED, address);
        if (!span || span->bytes != bytes)
                fake_die("what is unmapped is no mapping");
        span->kind = SPAN_NONE;
        mmap((void *)address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_mem_set_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
        ENTER(mem_set_access);
        if (count != 1 || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
                return fake_leave(CUDA_ERROR_INVALID_VALUE);
        for (struct span *s = fake.spans; s < fake.spans + SPANS_MAX; s++)
                if (s->kind == SPAN_MAPPED && s->address >= address && s->address + s->bytes <= address + bytes)
                        s->accessible = true;
        if (mprotect((void *)address, bytes, PROT_READ | PROT_WRITE) < 0)
                fake_die("no access");
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_memcpy_htod_async(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
        ENTER(memcpy_htod_async);
        if (!fake_has(to, bytes))
                fake_die("a copy to what is no memory of the device");
        fake_add_work(stream, (struct work){.kind = WORK_COPY, .to = (char *)to, .from = from, .bytes = bytes});
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_memcpy_dtoh_async(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
        ENTER(memcpy_dtoh_async);
        if (!fake_has(from, bytes))
                fake_die("a copy from what is no memory of the device");
        fake_add_work(stream, (struct work){.kind = WORK_COPY, .to = to, .from = (const char *)from, .bytes = bytes});
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_memcpy_dtod_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
        ENTER(memcpy_dtod_async);
        if (!fake_has(to, bytes) || !fake_has(from, bytes))
                fake_die("a copy between what is no memory of the device");
        fake_add_work(stream, (struct work){.kind = WORK_COPY, .to = (char *)to, .from = (const char *)from, .bytes = bytes});
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_memset_d8_async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
        ENTER(memset_d8_async);
        if (!fake_has(to, bytes))
                fake_die("what is set is no memory of the device");
        fake_add_work(stream, (struct work){.kind = WORK_SET, .to = (char *)to, .value = value, .bytes = bytes});
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_stream_create_with_priority(CUstream *ret_stream, unsigned int flags, int priority)
{
        (void)priority;
        ENTER(stream_create_with_priority);
        if (flags != CU_STREAM_NON_BLOCKING)
                return fake_leave(CUDA_ERROR_INVALID_VALUE);
        *ret_stream = (CUstream)fake_add_object(OBJECT_STREAM);
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_stream_destroy(CUstream handle)
{
        struct object *stream;

        ENTER(stream_destroy);
        stream = fake_get_object(handle, OBJECT_STREAM);
        if (stream->first || stream->capture)
                fake_die("a stream is destroyed that has work left");
        if (stream->green)
                stream->green->n_streams--;
        stream->kind = OBJECT_NONE;
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_stream_wait_event(CUstream stream, CUevent handle, unsigned int flags)
{
        struct object *event;

        (void)flags;
        ENTER(stream_wait_event);
        event = fake_get_object(handle, OBJECT_EVENT);
        fake_add_work(stream, (struct work){.kind = WORK_WAIT, .event = event, .generation = event->recorded});
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_stream_synchronize(CUstream handle)
{
        struct object *stream;

        ENTER(stream_synchronize);
        stream = fake_get_object(handle, OBJECT_STREAM);
        while (stream->first)
                if (!step())
                        fake_die("a stream waits for what never comes");
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_stream_write_value64(CUstream stream, CUdeviceptr to, cuuint64_t value, unsigned int flags)
{
        ENTER(stream_write_value64);
        if (flags != CU_STREAM_WRITE_VALUE_DEFAULT || !fake.options.writes_values)
                return fake_leave(CUDA_ERROR_NOT_SUPPORTED);
        if (!fake_has(to, sizeof(value)) && !fake_has_registered(to, sizeof(value)))
                fake_die("a value is written to what the device does not reach");
        fake_add_work(stream, (struct work){.kind = WORK_WRITE, .to = (char *)to, .value = value});
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_event_create(CUevent *ret_event, unsigned int flags)
{
        struct object *event;

        ENTER(event_create);
        event = fake_add_object(OBJECT_EVENT);
        event->flags = flags;
        *ret_event = (CUevent)event;
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_event_destroy(CUevent handle)
{
        struct object *event;

        ENTER(event_destroy);
        event = fake_get_object(handle, OBJECT_EVENT);
        if (event->completed != event->recorded)
                fake_die("an event is destroyed that is still to come");
        event->kind = OBJECT_NONE;
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_event_record(CUevent handle, CUstream stream)
{
        struct object *event;

        ENTER(event_record);
        event = fake_get_object(handle, OBJECT_EVENT);
        fake_add_work(stream, (struct work){.kind = WORK_RECORD, .event = event, .generation = ++event->recorded});
        return fake_leave(CUDA_SUCCESS);
}

/* Time passes while somebody asks. */
static CUresult CUDAAPI fake_event_query(CUevent handle)
{
        struct object *event;

        ENTER(event_query);
        event = fake_get_object(handle, OBJECT_EVENT);
        if (!(event->flags & CU_EVENT_DISABLE_TIMING) && fake.options.stands && fake.options.stands())
                return fake_leave(CUDA_ERROR_NOT_READY);
        if (sl_split_mix_next(&fake.random) % 2)
                step();
        return fake_leave(event->completed == event->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

static CUresult CUDAAPI fake_event_elapsed_time(float *ret_ms, CUevent from, CUevent to)
{
        struct object *begin, *end;

        ENTER(event_elapsed_time);
        begin = fake_get_object(from, OBJECT_EVENT);
        end = fake_get_object(to, OBJECT_EVENT);
        if ((begin->flags | end->flags) & CU_EVENT_DISABLE_TIMING)
                return fake_leave(CUDA_ERROR_INVALID_HANDLE);
        if (begin->completed != begin->recorded || end->completed != end->recorded)
                return fake_leave(CUDA_ERROR_NOT_READY);
        *ret_ms = (float)((double)(end->clock_ns - begin->clock_ns) / 1e6);
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_library_load_data(CUlibrary *ret_library, const void *code, CUjit_option *jit_options,
        void **jit_values, unsigned int n_jit_options, CUlibraryOption *options, void **values, unsigned int n_options)
{
        (void)jit_options, (void)jit_values, (void)n_jit_options, (void)options, (void)values, (void)n_options;
        ENTER(library_load_data);
        if (!code)
                return fake_leave(CUDA_ERROR_INVALID_VALUE);
        *ret_library = (CUlibrary)fake_add_object(OBJECT_LIBRARY);
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_library_unload(CUlibrary library)
{
        ENTER(library_unload);
        fake_get_object(library, OBJECT_LIBRARY)->kind = OBJECT_NONE;
        return fake_leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI fake_library_get_kernel(CUkernel *ret_kernel, CUlibrary library, const char *name)
{
        ENTER(library_get_kernel);
        fake_get_object(library, OBJECT_LIBRARY);
        for (size_t i = 0; i < fake.options.n_kernels; i++)
                if (!strcmp(fake.options.kernels[i].name, name)) {
                        *ret_kernel = (CUkernel)(uintptr_t)&fake.options.kernels[i];
                        return fake_leave(CUDA_SUCCESS);
                }
        return fake_leave(CUDA_ERROR_NOT_FOUND);
}

static bool is_launchable(const struct fake_cuda_launch *launch)
{
        uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];

        return launch->grid[0] && launch->grid[1] && launch->grid[2] && threads && threads <= 1024 && launch->block[2] <= 64 &&
               launch->grid[0] < 1u << 31 && launch->grid[1] < 1u << 16 && launch->grid[2] < 1u << 16 &&
               launch->shared_bytes <= 49152;
}

static CUresult CUDAAPI fake_launch_kernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream,
        void **arguments, void **extra)
{
        const struct fake_cuda_kernel *kernel = (const struct fake_cuda_kernel *)function;
        struct work work = {.kind = WORK_LAUNCH, .kernel = kernel};

        (void)extra;
        ENTER(launch_kernel);
        work.launch = (struct fake_cuda_launch){{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
        if (!is_launchable(&work.launch))
                return fake_leave(CUDA_ERROR_INVALID_VALUE);
        work.argument = malloc(kernel->argument_bytes);
        memcpy(work.argument, arguments[0], kernel->argument_bytes);
        fake_add_work(stream, work);
        return fake_leave(CUDA_SUCCESS);
}

/* ---- the test's side ---- */

struct fake_cuda_options fake_cuda_defaults(void)
{
        return (struct fake_cuda_options){.n_devices = 1,
                .major = 9,
                .n_processors = 132,
                .granularity = 65536,
                .memory_bytes = 1ull << 30,
                .writes_values = true,
                .seed = 1};
}

static void fill_table(struct sl_cuda_driver *driver)
{
#define X(field, name, number) driver->field = fake_##field;
        SL_CUDA_DRIVER_CALLS(X)
#undef X
}

/* What an earlier test has left lies where it was. */
static void forget(void)
{
        for (struct span *s = fake.spans; s < fake.spans + SPANS_MAX; s++)
                *s = (struct span){.kind = SPAN_NONE};
        for (struct object *o = fake.objects; o < fake.objects + fake.n_objects; o++)
                *o = (struct object){.kind = OBJECT_NONE};
        memset(fake.calls, 0, sizeof(fake.calls));
        memset(fake.fails_at, 0, sizeof(fake.fails_at));
        fake.lost = CUDA_SUCCESS;
        fake.in_use = fake.retained = fake.n_objects = 0;
}

void fake_cuda_begin(const struct fake_cuda_options *options, struct sl_cuda_driver *ret_driver)
{
        pthread_mutex_lock(&fake.lock);
        forget();
        fake.options = *options;
        fake.random = options->seed;
        pthread_mutex_unlock(&fake.lock);
        *ret_driver = (struct sl_cuda_driver){.version = SL_CUDA_DRIVER_VERSION};
        fill_table(ret_driver);
}

void fake_cuda_fail(enum fake_cuda_call call, uint32_t nth, CUresult result)
{
        pthread_mutex_lock(&fake.lock);
        fake.fails_at[call] = fake.calls[call] + nth;
        fake.fails_with[call] = result;
        pthread_mutex_unlock(&fake.lock);
}

void fake_cuda_lose(CUresult result)
{
        pthread_mutex_lock(&fake.lock);
        fake.lost = result;
        pthread_mutex_unlock(&fake.lock);
}

uint32_t fake_cuda_calls(enum fake_cuda_call call)
{
        uint32_t calls;

        pthread_mutex_lock(&fake.lock);
        calls = fake.calls[call];
        pthread_mutex_unlock(&fake.lock);
        return calls;
}

uint32_t fake_cuda_held(void)
{
        uint32_t held;

        pthread_mutex_lock(&fake.lock);
        held = fake.retained;
        for (struct span *s = fake.spans; s < fake.spans + SPANS_MAX; s++)
                held += s->kind != SPAN_NONE;
        for (struct object *o = fake.objects; o < fake.objects + fake.n_objects; o++)
                held += o->kind != OBJECT_NONE;
        pthread_mutex_unlock(&fake.lock);
        return held;
}

size_t fake_cuda_memory_in_use(void)
{
        size_t bytes;

        pthread_mutex_lock(&fake.lock);
        bytes = fake.in_use;
        pthread_mutex_unlock(&fake.lock);
        return bytes;
}

bool fake_cuda_is_device(CUdeviceptr address, size_t bytes)
{
        bool is;

        pthread_mutex_lock(&fake.lock);
        is = fake_has(address, bytes);
        pthread_mutex_unlock(&fake.lock);
        return is;
}
