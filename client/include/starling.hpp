/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * starling.hpp: libstarling for C++20. Handles that close themselves, tensors that are std::span, errors that are exceptions; every
 * call is one of starling.h, whose words on ownership, threads and fork hold here too.
 *
 *     starling::client client;
 *     starling::model digits = client.open("digits");
 *     starling::queue queue = client.open_queue();
 *
 *     auto images = client.tensor<float>({300, 1, 8, 8});
 *     auto probabilities = client.tensor<float>({300, 10});
 *     std::ranges::copy(pixels, images.begin());
 *     queue.infer(digits, {images}, {probabilities});
 *     use(probabilities.values());
 *
 * A connection ends when the client and all models, queues and tensors that came from it are gone, in any order. All of them move
 * and none is copied; one that was moved from may only be destroyed or assigned to. A tensor must outlive the requests that name
 * it: the memory is the runtime's until the completion is there.
 */
#ifndef STARLING_HPP
#define STARLING_HPP

#if __cplusplus <= 201703L
#error "starling.hpp wants C++20 (-std=c++20); starling.h is for C++11 and later"
#else

#include "starling.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace starling
{

/* What a call, or a request, failed with: what() is the text, status() the negative errno value. */
class error : public std::runtime_error
{
      public:
        error(int status, const char *text) : std::runtime_error(text && *text ? text : starling_strerror(status)), status_(status)
        {
        }
        int status() const noexcept
        {
                return status_;
        }

      private:
        int status_;
};

/* Elements that C++20 has no type for, by their bits. */
enum class float16 : std::uint16_t {};
enum class bfloat16 : std::uint16_t {};

template <typename T> constexpr starling_dtype dtype_of()
{
        using U = std::remove_cv_t<T>;
        constexpr bool whole = std::is_integral_v<U> && !std::is_same_v<U, bool>;

        if constexpr (std::is_same_v<U, float>)
                return STARLING_F32;
        else if constexpr (std::is_same_v<U, double>)
                return STARLING_F64;
        else if constexpr (std::is_same_v<U, bool>)
                return STARLING_BOOL;
        else if constexpr (std::is_same_v<U, float16>)
                return STARLING_F16;
        else if constexpr (std::is_same_v<U, bfloat16>)
                return STARLING_BF16;
        else if constexpr (whole && sizeof(U) == 1)
                return std::is_signed_v<U> ? STARLING_I8 : STARLING_U8;
        else if constexpr (whole && sizeof(U) == 2)
                return std::is_signed_v<U> ? STARLING_I16 : STARLING_U16;
        else if constexpr (whole && sizeof(U) == 4)
                return std::is_signed_v<U> ? STARLING_I32 : STARLING_U32;
        else if constexpr (whole && sizeof(U) == 8)
                return std::is_signed_v<U> ? STARLING_I64 : STARLING_U64;
        else
                static_assert(!sizeof(U), "no element type of Starling");
}

namespace detail
{

using connection = std::shared_ptr<starling_client>;

/* Gives a part of a connection back before it lets the connection go. */
template <auto close> struct closer {
        connection client;
        template <typename T> void operator()(T *part) const noexcept
        {
                close(client.get(), part);
        }
};
inline void close_model(starling_client *, starling_model *model) noexcept
{
        starling_model_close(model);
}
inline void close_queue(starling_client *, starling_queue *queue) noexcept
{
        starling_queue_close(queue);
}
inline void close_memory(starling_client *client, void *data) noexcept
{
        starling_free(client, data);
}

inline void check(int result, const starling_error &text)
{
        if (result < 0)
                throw error(result, text.text);
}

inline void check(int result)
{
        if (result < 0)
                throw error(result, nullptr);
}

} // namespace detail

/* A tensor in the arena, filled with nothing in particular. Any thread; its elements are its owner's between requests. */
template <typename T> class tensor
{
      public:
        std::span<T> values() const noexcept
        {
                return {static_cast<T *>(raw_.data), raw_.bytes / sizeof(T)};
        }
        std::span<const std::uint32_t> dims() const noexcept
        {
                return {raw_.dims, raw_.rank};
        }
        T *begin() const noexcept
        {
                return values().data();
        }
        T *end() const noexcept
        {
                return begin() + size();
        }
        std::size_t size() const noexcept
        {
                return values().size();
        }
        T &operator[](std::size_t i) const noexcept
        {
                return begin()[i];
        }

        /* The first @n rows: a request of fewer samples in the same memory. @n is at most dims()[0]. */
        starling_tensor rows(std::uint32_t n) const
        {
                starling_tensor part = raw_;

                if (!raw_.rank || n > raw_.dims[0])
                        throw error(-EINVAL, "rows: more than the tensor has");
                part.bytes = raw_.dims[0] ? raw_.bytes / raw_.dims[0] * n : 0;
                part.dims[0] = n;
                return part;
        }
        operator const starling_tensor &() const noexcept
        {
                return raw_;
        }

      private:
        friend class client;
        tensor(const detail::connection &connection, std::span<const std::uint32_t> dims) : raw_{}, memory_(nullptr, {connection})
        {
                detail::check(starling_tensor_alloc(
                        connection.get(), dtype_of<T>(), static_cast<std::uint32_t>(dims.size()), dims.data(), &raw_));
                memory_.reset(raw_.data);
        }
        starling_tensor raw_;
        std::unique_ptr<void, detail::closer<detail::close_memory>> memory_;
};

/* A model as it was when it was opened. Any thread. */
class model
{
      public:
        const starling_model_info &info() const noexcept
        {
                return *starling_model_describe(handle_.get());
        }
        std::span<const starling_port> inputs() const noexcept
        {
                return {info().inputs, info().n_inputs};
        }
        std::span<const starling_port> outputs() const noexcept
        {
                return {info().outputs, info().n_outputs};
        }
        /* Whether it is to be opened again. */
        bool changed() const noexcept
        {
                return starling_model_changed(handle_.get()) != 0;
        }
        starling_model *get() const noexcept
        {
                return handle_.get();
        }

      private:
        friend class client;
        model(const detail::connection &connection, starling_model *handle) : handle_(handle, {connection})
        {
        }
        std::unique_ptr<starling_model, detail::closer<detail::close_model>> handle_;
};

/* What a request may say beside its model and tensors. */
struct request_options {
        std::uint32_t priority = 0;    /* 0 goes first */
        std::uint64_t deadline_ns = 0; /* absolute; 0: none. See within() */
        std::uint64_t user_data = 0;   /* comes back in the completion */
};

/* The deadline that lies @time from now. */
inline std::uint64_t within(std::chrono::nanoseconds time)
{
        return starling_clock_ns() + static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0));
}

/* A queue pair. One thread at a time. Closing it cancels what is in flight and waits for that. */
class queue
{
      public:
        using tensors = std::span<const starling_tensor>;
        using list = std::initializer_list<starling_tensor>;

        /* Submits and waits. Throws what the request failed with. The shapes in it are valid until the next call of this queue. */
        starling_completion infer(const model &model, tensors inputs, tensors outputs, const request_options &options = {})
        {
                starling_completion completion = {};
                const starling_request request = make(model, inputs, outputs, options);

                check(starling_infer(handle_.get(), &request, &completion));
                return completion;
        }
        starling_completion infer(const model &model, list inputs, list outputs, const request_options &options = {})
        {
                return infer(model, span_of(inputs), span_of(outputs), options);
        }

        /* The request's number for cancel(); nothing when the queue pair has no room: reap first. Throws any other refusal. */
        std::optional<std::uint64_t> submit(
                const model &model, tensors inputs, tensors outputs, const request_options &options = {})
        {
                const starling_request request = make(model, inputs, outputs, options);
                std::uint64_t id = 0;
                const int result = starling_submit(handle_.get(), &request, &id);

                if (result == -EAGAIN)
                        return std::nullopt;
                check(result);
                return id;
        }
        std::optional<std::uint64_t> submit(const model &model, list inputs, list outputs, const request_options &options = {})
        {
                return submit(model, span_of(inputs), span_of(outputs), options);
        }

        /* The completions that are there, as a part of @room; each has its own status. Throws -EPIPE when the runtime is gone. */
        std::span<starling_completion> poll(std::span<starling_completion> room)
        {
                const int n = starling_poll(handle_.get(), room.data(), static_cast<std::uint32_t>(room.size()));

                detail::check(n);
                return room.first(static_cast<std::size_t>(n));
        }

        /* As poll(), and waits for the first. Empty when nothing completed in time, nothing is in flight, or a signal came. */
        std::span<starling_completion> wait(
                std::span<starling_completion> room, std::optional<std::chrono::nanoseconds> timeout = std::nullopt)
        {
                const std::uint64_t ns =
                        timeout ? static_cast<std::uint64_t>(std::max<std::int64_t>(timeout->count(), 0)) : STARLING_FOREVER;
                const int n = starling_wait(handle_.get(), room.data(), static_cast<std::uint32_t>(room.size()), ns);

                if (n == -ETIMEDOUT || n == -ENODATA || n == -EINTR)
                        return room.first(0);
                detail::check(n);
                return room.first(static_cast<std::size_t>(n));
        }

        /* Which members of an ensemble the result is made of, before the next poll or wait; none: it failed, or the runtime is
         * older. */
        std::optional<starling_members> members(const starling_completion &completion) const noexcept
        {
                starling_members members = {};

                if (starling_completion_members(handle_.get(), &completion, &members) < 0)
                        return std::nullopt;
                return members;
        }

        /* Which variant of a task had the request, before the next submit; none: its model was opened by its own name. */
        std::optional<starling_answer> variant(const starling_completion &completion) const noexcept
        {
                starling_answer answer = {};

                if (starling_completion_variant(handle_.get(), &completion, &answer) < 0)
                        return std::nullopt;
                return answer;
        }

        /* Whether the request was in flight and its end was asked for; its completion still comes. */
        bool cancel(std::uint64_t id)
        {
                const int result = starling_cancel(handle_.get(), id);

                if (result == -ENOENT)
                        return false;
                detail::check(result);
                return true;
        }
        std::uint32_t in_flight() const noexcept
        {
                return starling_queue_in_flight(handle_.get());
        }

        /* For event loops: watch the descriptor after arm() has said that nothing is there to reap. */
        int descriptor()
        {
                const int fd = starling_queue_fd(handle_.get());

                detail::check(fd);
                return fd;
        }
        bool arm()
        {
                const int result = starling_queue_arm(handle_.get());

                detail::check(result);
                return result == 0;
        }
        starling_queue *get() const noexcept
        {
                return handle_.get();
        }

      private:
        friend class client;
        queue(const detail::connection &connection, starling_queue *handle) : handle_(handle, {connection})
        {
        }
        static tensors span_of(list tensors)
        {
                return {tensors.begin(), tensors.size()};
        }
        static starling_request make(const model &model, tensors inputs, tensors outputs, const request_options &options)
        {
                starling_request request = {};

                request.model = model.get();
                request.inputs = inputs.data();
                request.outputs = outputs.data();
                request.n_inputs = static_cast<std::uint32_t>(inputs.size());
                request.n_outputs = static_cast<std::uint32_t>(outputs.size());
                request.priority = options.priority;
                request.deadline_ns = options.deadline_ns;
                request.user_data = options.user_data;
                return request;
        }
        void check(int result) const
        {
                if (result < 0)
                        throw error(result, starling_queue_error(handle_.get()));
        }
        std::unique_ptr<starling_queue, detail::closer<detail::close_queue>> handle_;
};

/* A connection to a runtime. Any thread, but for reconnect() and disconnect(), which want to be alone. */
class client
{
      public:
        explicit client(const starling_options &options = {})
        {
                starling_client *handle = nullptr;
                starling_error text = {};

                detail::check(starling_connect(&options, &handle, &text), text);
                connection_ = detail::connection(handle, starling_close);
        }

        model open(const std::string &name) const
        {
                starling_model *handle = nullptr;
                starling_error text = {};

                detail::check(starling_model_open(get(), name.c_str(), &handle, &text), text);
                return model(connection_, handle);
        }
        /* A task, with what each request needs: it is used as a model. */
        model query(const std::string &task, const starling_query &needs = {}) const
        {
                starling_model *handle = nullptr;
                starling_error text = {};

                detail::check(starling_query_open(get(), task.c_str(), &needs, &handle, &text), text);
                return model(connection_, handle);
        }
        queue open_queue() const
        {
                starling_queue *handle = nullptr;
                starling_error text = {};

                detail::check(starling_queue_open(get(), &handle, &text), text);
                return queue(connection_, handle);
        }
        template <typename T> starling::tensor<T> tensor(std::span<const std::uint32_t> dims) const
        {
                return starling::tensor<T>(connection_, dims);
        }
        template <typename T> starling::tensor<T> tensor(std::initializer_list<std::uint32_t> dims) const
        {
                return tensor<T>(std::span<const std::uint32_t>(dims.begin(), dims.size()));
        }

        /* What the runtime serves, in no particular order. */
        std::vector<starling_model_entry> models() const
        {
                std::vector<starling_model_entry> entries;
                int n = starling_model_list(get(), nullptr, 0);

                while (n > static_cast<int>(entries.size())) {
                        entries.resize(static_cast<std::size_t>(n));
                        n = starling_model_list(get(), entries.data(), static_cast<std::uint32_t>(entries.size()));
                }
                detail::check(n);
                entries.resize(static_cast<std::size_t>(n));
                return entries;
        }
        starling_client_info info() const
        {
                starling_client_info info;

                detail::check(starling_client_describe(get(), &info));
                return info;
        }

        /* Models, queues and tensors stay; what was in flight completes as -EPIPE. */
        void reconnect(std::chrono::nanoseconds timeout = {})
        {
                starling_error text = {};

                detail::check(
                        starling_reconnect(get(), static_cast<std::uint64_t>(std::max<std::int64_t>(timeout.count(), 0)), &text),
                        text);
        }
        void disconnect() noexcept
        {
                starling_disconnect(get());
        }

        /* For clients of STARLING_ROLE_ADMIN. */
        void load(const std::string &model) const
        {
                administer(starling_admin_load, model);
        }
        void unload(const std::string &model) const
        {
                administer(starling_admin_unload, model);
        }
        void reload(const std::string &model) const
        {
                administer(starling_admin_reload, model);
        }
        void apply(const starling_allotment *allotments, std::uint32_t n) const
        {
                starling_error text = {};

                detail::check(starling_admin_apply(get(), allotments, n, &text), text);
        }
        starling_client *get() const noexcept
        {
                return connection_.get();
        }

      private:
        void administer(int (*call)(starling_client *, const char *, starling_error *), const std::string &model) const
        {
                starling_error text = {};

                detail::check(call(get(), model.c_str(), &text), text);
        }
        detail::connection connection_;
};

} // namespace starling

#endif
#endif
