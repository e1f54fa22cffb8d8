/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_driver.h"

#include "base/bytes.h"
#include "base/split_mix.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SPANS_MAX   512
#define OBJECTS_MAX 4096

/* A run of addresses. RESERVED ones hold mappings, which are spans of their own. */
enum span_kind { SPAN_NONE, SPAN_ALLOCATED, SPAN_RESERVED, SPAN_MAPPED, SPAN_REGISTERED };
struct span {
        enum span_kind kind;
        CUdeviceptr address;
        size_t bytes;
        bool accessible;
};

enum object_kind { OBJECT_NONE, OBJECT_MEMORY, OBJECT_STREAM, OBJECT_EVENT, OBJECT_LIBRARY, OBJECT_CONTEXT };

enum work_kind { WORK_COPY, WORK_SET, WORK_RECORD, WORK_WAIT, WORK_LAUNCH };
struct work {
        enum work_kind kind;
        char *to;
        const char *from;
        size_t bytes;
        unsigned char value;
        struct object *event;
        uint64_t generation;
        const struct fake_cuda_kernel *kernel;
        struct fake_cuda_launch launch;
        void *argument;
        struct work *next;
};

struct object {
        enum object_kind kind;
        int fd; /* MEMORY */
        size_t bytes;
        struct work *first, **end;    /* STREAM */
        uint64_t recorded, completed; /* EVENT */
};

static struct {
        pthread_mutex_t lock;
        struct fake_cuda_options options;
        uint64_t random;
        uint32_t calls[FAKE_CUDA_CALL_COUNT], fails_at[FAKE_CUDA_CALL_COUNT];
        CUresult fails_with[FAKE_CUDA_CALL_COUNT], lost;
        struct span spans[SPANS_MAX];
        struct object objects[OBJECTS_MAX];
        size_t in_use;
        uint32_t retained;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Noreturn void die(const char *why)
{
        fprintf(stderr, "fake driver: %s\n", why);
        abort();
}

/* Counts a call; what it is to answer. The lock is taken, and released by leave(). */
static CUresult enter(enum fake_cuda_call call)
{
        pthread_mutex_lock(&fake.lock);
        if (++fake.calls[call] == fake.fails_at[call])
                return fake.fails_with[call];
        return fake.lost;
}

static CUresult leave(CUresult result)
{
        pthread_mutex_unlock(&fake.lock);
        return result;
}

#define ENTER(field)                                                                                                               \
        do {                                                                                                                       \
                CUresult entered = enter(FAKE_CUDA_##field);                                                                       \
                if (entered != CUDA_SUCCESS)                                                                                       \
                        return leave(entered);                                                                                     \
        } while (0)

static struct span *add_span(enum span_kind kind, CUdeviceptr address, size_t bytes)
{
        for (struct span *s = fake.spans; s < fake.spans + SPANS_MAX; s++)
                if (s->kind == SPAN_NONE) {
                        *s = (struct span){kind, address, bytes, kind == SPAN_ALLOCATED};
                        return s;
                }
        die("too many runs of memory");
}

static struct span *find_span(enum span_kind kind, CUdeviceptr address)
{
        for (struct span *s = fake.spans; s < fake.spans + SPANS_MAX; s++)
                if (s->kind == kind && s->address == address)
                        return s;
        return NULL;
}

static struct object *add_object(enum object_kind kind)
{
        for (struct object *o = fake.objects; o < fake.objects + OBJECTS_MAX; o++)
                if (o->kind == OBJECT_NONE) {
                        *o = (struct object){.kind = kind, .fd = -1};
                        o->end = &o->first;
                        return o;
                }
        die("too many objects");
}

static struct object *get_object(const void *handle, enum object_kind kind)
{
        struct object *o = (struct object *)handle;

        if (o < fake.objects || o >= fake.objects + OBJECTS_MAX || o->kind != kind)
                die("a handle that is none");
        return o;
}

/* Mappings that touch each other count as one run. */
static bool is_device(CUdeviceptr address, size_t bytes)
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

/* ---- what streams do ---- */

static bool can_go(const struct work *work)
{
        return work && (work->kind != WORK_WAIT || work->event->completed >= work->generation);
}

static void do_work(struct work *work)
{
        switch (work->kind) {
        case WORK_COPY:
                memmove(work->to, work->from, work->bytes);
                break;
        case WORK_SET:
                memset(work->to, work->value, work->bytes);
                break;
        case WORK_RECORD:
                work->event->completed = work->generation;
                break;
        case WORK_WAIT:
                break;
        case WORK_LAUNCH:
                work->kernel->run(&work->launch, work->argument);
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
        do_work(work);
}

/* The lock is held. */
static bool step(void)
{
        struct object *ready[OBJECTS_MAX];
        size_t n = 0;

        for (struct object *o = fake.objects; o < fake.objects + OBJECTS_MAX; o++)
                if (o->kind == OBJECT_STREAM && can_go(o->first))
                        ready[n++] = o;
        if (n)
                step_stream(ready[sl_split_mix_next(&fake.random) % n]);
        return n > 0;
}

static void add_work(CUstream handle, struct work work)
{
        struct object *stream = get_object(handle, OBJECT_STREAM);
        struct work *kept = malloc(sizeof(*kept));

        *kept = work;
        kept->next = NULL;
        *stream->end = kept;
        stream->end = &kept->next;
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

static CUresult CUDAAPI get_error_name(CUresult error, const char **ret_name)
{
        *ret_name = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER";
        return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_error_string(CUresult error, const char **ret_text)
{
        *ret_text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "something else";
        return CUDA_SUCCESS;
}

static CUresult CUDAAPI init(unsigned int flags)
{
        (void)flags;
        ENTER(init);
        return leave(fake.options.n_devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE);
}

static CUresult CUDAAPI device_get_count(int *ret_count)
{
        ENTER(device_get_count);
        *ret_count = fake.options.n_devices;
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI device_get(CUdevice *ret_device, int ordinal)
{
        ENTER(device_get);
        *ret_device = ordinal;
        return leave(ordinal < fake.options.n_devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE);
}

static CUresult CUDAAPI device_get_name(char *name, int length, CUdevice device)
{
        ENTER(device_get_name);
        snprintf(name, (size_t)length, "Fake %d", device);
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI device_get_attribute(int *ret_value, CUdevice_attribute attribute, CUdevice device)
{
        (void)device;
        ENTER(device_get_attribute);
        *ret_value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR      ? fake.options.major
                     : attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT        ? fake.options.n_processors
                     : attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK ? 49152
                                                                                    : 0;
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI device_total_mem(size_t *ret_bytes, CUdevice device)
{
        (void)device;
        ENTER(device_total_mem);
        *ret_bytes = fake.options.memory_bytes;
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI device_primary_ctx_retain(CUcontext *ret_context, CUdevice device)
{
        (void)device;
        ENTER(device_primary_ctx_retain);
        fake.retained++;
        *ret_context = (CUcontext)&fake;
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI device_primary_ctx_release(CUdevice device)
{
        (void)device;
        ENTER(device_primary_ctx_release);
        if (!fake.retained--)
                die("a context is released that nobody holds");
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI ctx_set_current(CUcontext context)
{
        (void)context;
        ENTER(ctx_set_current);
        return leave(CUDA_SUCCESS);
}

static bool fits(size_t bytes)
{
        return bytes <= fake.options.memory_bytes && fake.in_use <= fake.options.memory_bytes - bytes;
}

static CUresult CUDAAPI mem_alloc(CUdeviceptr *ret_address, size_t bytes)
{
        void *memory;

        ENTER(mem_alloc);
        if (!bytes)
                return leave(CUDA_ERROR_INVALID_VALUE);
        memory = fits(bytes) ? aligned_alloc(256, sl_align_up(bytes, 256)) : NULL;
        if (!memory)
                return leave(CUDA_ERROR_OUT_OF_MEMORY);
        memset(memory, 0xa5, bytes);
        fake.in_use += bytes;
        *ret_address = (CUdeviceptr)memory;
        add_span(SPAN_ALLOCATED, *ret_address, bytes);
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI mem_free(CUdeviceptr address)
{
        struct span *span;

        ENTER(mem_free);
        span = find_span(SPAN_ALLOCATED, address);
        if (!span)
                die("memory is freed that is none");
        fake.in_use -= span->bytes;
        span->kind = SPAN_NONE;
        free((void *)address);
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI mem_host_register(void *memory, size_t bytes, unsigned int flags)
{
        (void)flags;
        ENTER(mem_host_register);
        if ((uintptr_t)memory % SL_PAGE_BYTES || bytes % SL_PAGE_BYTES)
                return leave(CUDA_ERROR_INVALID_VALUE);
        if (find_span(SPAN_REGISTERED, (CUdeviceptr)memory))
                return leave(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        add_span(SPAN_REGISTERED, (CUdeviceptr)memory, bytes);
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI mem_host_unregister(void *memory)
{
        struct span *span;

        ENTER(mem_host_unregister);
        span = find_span(SPAN_REGISTERED, (CUdeviceptr)memory);
        if (!span)
                return leave(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        span->kind = SPAN_NONE;
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI mem_get_allocation_granularity(
        size_t *ret_bytes, const CUmemAllocationProp *properties, CUmemAllocationGranularity_flags option)
{
        (void)properties, (void)option;
        ENTER(mem_get_allocation_granularity);
        *ret_bytes = fake.options.granularity;
        return leave(CUDA_SUCCESS);
}

static bool is_granular(size_t bytes)
{
        return bytes && bytes % fake.options.granularity == 0;
}

static CUresult CUDAAPI mem_address_reserve(
        CUdeviceptr *ret_address, size_t bytes, size_t alignment, CUdeviceptr wish, unsigned long long flags)
{
        void *memory;

        (void)alignment, (void)wish, (void)flags;
        ENTER(mem_address_reserve);
        if (!is_granular(bytes))
                return leave(CUDA_ERROR_INVALID_VALUE);
        memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
                return leave(CUDA_ERROR_OUT_OF_MEMORY);
        *ret_address = (CUdeviceptr)memory;
        add_span(SPAN_RESERVED, *ret_address, bytes);
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI mem_address_free(CUdeviceptr address, size_t bytes)
{
        struct span *span;

        ENTER(mem_address_free);
        span = find_span(SPAN_RESERVED, address);
        if (!span || span->bytes != bytes)
                die("addresses are given back that are none");
        for (struct span *s = fake.spans; s < fake.spans + SPANS_MAX; s++)
                if (s->kind == SPAN_MAPPED && s->address >= address && s->address < address + bytes)
                        die("addresses are given back with memory mapped there");
        span->kind = SPAN_NONE;
        munmap((void *)address, bytes);
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI mem_create(
        CUmemGenericAllocationHandle *ret_handle, size_t bytes, const CUmemAllocationProp *properties, unsigned long long flags)
{
        struct object *memory;

        (void)flags;
        ENTER(mem_create);
        if (!is_granular(bytes) || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
                return leave(CUDA_ERROR_INVALID_VALUE);
        if (!fits(bytes))
                return leave(CUDA_ERROR_OUT_OF_MEMORY);
        memory = add_object(OBJECT_MEMORY);
        memory->fd = memfd_create("fake device", MFD_CLOEXEC);
        memory->bytes = bytes;
        if (memory->fd < 0 || ftruncate(memory->fd, (off_t)bytes) < 0)
                die("no memory file");
        fake.in_use += bytes;
        *ret_handle = (CUmemGenericAllocationHandle)(uintptr_t)memory;
        return leave(CUDA_SUCCESS);
}

/* What is mapped stays until it is unmapped; here it is gone from the count at once. */
static CUresult CUDAAPI mem_release(CUmemGenericAllocationHandle handle)
{
        struct object *memory;

        ENTER(mem_release);
        memory = get_object((void *)(uintptr_t)handle, OBJECT_MEMORY);
        fake.in_use -= memory->bytes;
        close(memory->fd);
        memory->kind = OBJECT_NONE;
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI mem_map(
        CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
        struct object *memory;

        (void)flags;
        ENTER(mem_map);
        memory = get_object((void *)(uintptr_t)handle, OBJECT_MEMORY);
        if (offset || bytes != memory->bytes)
                return leave(CUDA_ERROR_INVALID_VALUE);
        if (mmap((void *)address, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->fd, 0) == MAP_FAILED)
                die("no mapping");
        add_span(SPAN_MAPPED, address, bytes);
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI mem_unmap(CUdeviceptr address, size_t bytes)
{
        struct span *span;

        ENTER(mem_unmap);
        span = find_span(SPAN_MAPPED, address);
        if (!span || span->bytes != bytes)
                die("what is unmapped is no mapping");
        span->kind = SPAN_NONE;
        mmap((void *)address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI mem_set_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
        ENTER(mem_set_access);
        if (count != 1 || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
                return leave(CUDA_ERROR_INVALID_VALUE);
        for (struct span *s = fake.spans; s < fake.spans + SPANS_MAX; s++)
                if (s->kind == SPAN_MAPPED && s->address >= address && s->address + s->bytes <= address + bytes)
                        s->accessible = true;
        if (mprotect((void *)address, bytes, PROT_READ | PROT_WRITE) < 0)
                die("no access");
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI memcpy_htod_async(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
        ENTER(memcpy_htod_async);
        if (!is_device(to, bytes))
                die("a copy to what is no memory of the device");
        add_work(stream, (struct work){.kind = WORK_COPY, .to = (char *)to, .from = from, .bytes = bytes});
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI memcpy_dtoh_async(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
        ENTER(memcpy_dtoh_async);
        if (!is_device(from, bytes))
                die("a copy from what is no memory of the device");
        add_work(stream, (struct work){.kind = WORK_COPY, .to = to, .from = (const char *)from, .bytes = bytes});
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI memset_d8_async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
        ENTER(memset_d8_async);
        if (!is_device(to, bytes))
                die("what is set is no memory of the device");
        add_work(stream, (struct work){.kind = WORK_SET, .to = (char *)to, .value = value, .bytes = bytes});
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI stream_create_with_priority(CUstream *ret_stream, unsigned int flags, int priority)
{
        (void)priority;
        ENTER(stream_create_with_priority);
        if (flags != CU_STREAM_NON_BLOCKING)
                return leave(CUDA_ERROR_INVALID_VALUE);
        *ret_stream = (CUstream)add_object(OBJECT_STREAM);
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI stream_destroy(CUstream handle)
{
        struct object *stream;

        ENTER(stream_destroy);
        stream = get_object(handle, OBJECT_STREAM);
        if (stream->first)
                die("a stream is destroyed that has work left");
        stream->kind = OBJECT_NONE;
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI stream_wait_event(CUstream stream, CUevent handle, unsigned int flags)
{
        struct object *event;

        (void)flags;
        ENTER(stream_wait_event);
        event = get_object(handle, OBJECT_EVENT);
        add_work(stream, (struct work){.kind = WORK_WAIT, .event = event, .generation = event->recorded});
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI stream_synchronize(CUstream handle)
{
        struct object *stream;

        ENTER(stream_synchronize);
        stream = get_object(handle, OBJECT_STREAM);
        while (stream->first)
                if (!step())
                        die("a stream waits for what never comes");
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI event_create(CUevent *ret_event, unsigned int flags)
{
        (void)flags;
        ENTER(event_create);
        *ret_event = (CUevent)add_object(OBJECT_EVENT);
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI event_destroy(CUevent handle)
{
        struct object *event;

        ENTER(event_destroy);
        event = get_object(handle, OBJECT_EVENT);
        if (event->completed != event->recorded)
                die("an event is destroyed that is still to come");
        event->kind = OBJECT_NONE;
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI event_record(CUevent handle, CUstream stream)
{
        struct object *event;

        ENTER(event_record);
        event = get_object(handle, OBJECT_EVENT);
        add_work(stream, (struct work){.kind = WORK_RECORD, .event = event, .generation = ++event->recorded});
        return leave(CUDA_SUCCESS);
}

/* Time passes while somebody asks. */
static CUresult CUDAAPI event_query(CUevent handle)
{
        struct object *event;

        ENTER(event_query);
        event = get_object(handle, OBJECT_EVENT);
        if (sl_split_mix_next(&fake.random) % 2)
                step();
        return leave(event->completed == event->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

static CUresult CUDAAPI library_load_data(CUlibrary *ret_library, const void *code, CUjit_option *jit_options, void **jit_values,
        unsigned int n_jit_options, CUlibraryOption *options, void **values, unsigned int n_options)
{
        (void)jit_options, (void)jit_values, (void)n_jit_options, (void)options, (void)values, (void)n_options;
        ENTER(library_load_data);
        if (!code)
                return leave(CUDA_ERROR_INVALID_VALUE);
        *ret_library = (CUlibrary)add_object(OBJECT_LIBRARY);
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI library_unload(CUlibrary library)
{
        ENTER(library_unload);
        get_object(library, OBJECT_LIBRARY)->kind = OBJECT_NONE;
        return leave(CUDA_SUCCESS);
}

static CUresult CUDAAPI library_get_kernel(CUkernel *ret_kernel, CUlibrary library, const char *name)
{
        ENTER(library_get_kernel);
        get_object(library, OBJECT_LIBRARY);
        for (size_t i = 0; i < fake.options.n_kernels; i++)
                if (!strcmp(fake.options.kernels[i].name, name)) {
                        *ret_kernel = (CUkernel)(uintptr_t)&fake.options.kernels[i];
                        return leave(CUDA_SUCCESS);
                }
        return leave(CUDA_ERROR_NOT_FOUND);
}

static bool is_launchable(const struct fake_cuda_launch *launch)
{
        uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];

        return launch->grid[0] && launch->grid[1] && launch->grid[2] && threads && threads <= 1024 && launch->block[2] <= 64 &&
               launch->grid[0] < 1u << 31 && launch->grid[1] < 1u << 16 && launch->grid[2] < 1u << 16 &&
               launch->shared_bytes <= 49152;
}

static CUresult CUDAAPI launch_kernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream,
        void **arguments, void **extra)
{
        const struct fake_cuda_kernel *kernel = (const struct fake_cuda_kernel *)function;
        struct work work = {.kind = WORK_LAUNCH, .kernel = kernel};

        (void)extra;
        ENTER(launch_kernel);
        work.launch = (struct fake_cuda_launch){{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
        if (!is_launchable(&work.launch))
                return leave(CUDA_ERROR_INVALID_VALUE);
        work.argument = malloc(kernel->argument_bytes);
        memcpy(work.argument, arguments[0], kernel->argument_bytes);
        add_work(stream, work);
        return leave(CUDA_SUCCESS);
}

/* ---- the test's side ---- */

struct fake_cuda_options fake_cuda_defaults(void)
{
        return (struct fake_cuda_options){
                .n_devices = 1, .major = 9, .n_processors = 132, .granularity = 65536, .memory_bytes = 1ull << 30, .seed = 1};
}

/* What an earlier test has left lies where it was. */
static void forget(void)
{
        for (struct span *s = fake.spans; s < fake.spans + SPANS_MAX; s++)
                *s = (struct span){.kind = SPAN_NONE};
        for (struct object *o = fake.objects; o < fake.objects + OBJECTS_MAX; o++)
                *o = (struct object){.kind = OBJECT_NONE};
        memset(fake.calls, 0, sizeof(fake.calls));
        memset(fake.fails_at, 0, sizeof(fake.fails_at));
        fake.lost = CUDA_SUCCESS;
        fake.in_use = fake.retained = 0;
}

void fake_cuda_begin(const struct fake_cuda_options *options, struct sl_cuda_driver *ret_driver)
{
        pthread_mutex_lock(&fake.lock);
        forget();
        fake.options = *options;
        fake.random = options->seed;
        pthread_mutex_unlock(&fake.lock);
        *ret_driver = (struct sl_cuda_driver){.version = SL_CUDA_DRIVER_VERSION};
#define X(field, name, number) ret_driver->field = field;
        SL_CUDA_DRIVER_CALLS(X)
#undef X
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
        for (struct object *o = fake.objects; o < fake.objects + OBJECTS_MAX; o++)
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
        is = is_device(address, bytes);
        pthread_mutex_unlock(&fake.lock);
        return is;
}
