/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Triton's metrics, and what says the same here: for starling-exporter(1). Names of this side are those of samples, as queries have
 * them.
 *
 * Sources: Triton Inference Server, user guide, "Metrics".
 */
#pragma once

/* clang-format off */
#define TRITON_METRICS(X)                                                                                                          \
        /* Triton, here, remark */                                                                                                 \
        X("nv_inference_request_success", "starling_inference_completions_total", "outcome=\"done\"")                              \
        X("nv_inference_request_failure", "starling_inference_completions_total", "the other outcomes; rejected ones: starling_inference_refusals_total, and by the reason starling_refusals_total") \
        X("nv_inference_count", "starling_inference_samples_total", "accepted; Triton counts them when they are done")             \
        X("nv_inference_exec_count", "starling_inference_batches_total", "")                                                       \
        X("nv_inference_pending_request_count", "starling_queue_depth", "queue=\"requests\"; those that compute included: starling_inference_requests_in_flight") \
        X("nv_inference_request_duration_us", "starling_inference_duration_seconds_sum", "in seconds, as all that follow")         \
        X("nv_inference_queue_duration_us", "starling_inference_stage_duration_seconds_sum", "stage=\"queued\"")                   \
        X("nv_inference_compute_input_duration_us", "starling_inference_stage_duration_seconds_sum", "stage=\"batched\"")          \
        X("nv_inference_compute_infer_duration_us", "starling_inference_stage_duration_seconds_sum", "stage=\"computing\"")        \
        X("nv_inference_compute_output_duration_us", "starling_inference_stage_duration_seconds_sum", "stage=\"combining\"")       \
        X("nv_inference_request_summary_us", "starling_inference_duration_seconds_bucket", "histogram_quantile() of it")           \
        X("nv_inference_queue_summary_us", "starling_inference_stage_duration_seconds_bucket", "as above; and so on")              \
        X("nv_inference_first_response_histogram_ms", "starling_inference_duration_seconds_bucket", "one response to a request")   \
        X("nv_model_load_duration_secs", "starling_model_load_duration_seconds", "")                                               \
        X("nv_cpu_utilization", "starling_let_busy_seconds_total", "of workers; of the host: Prometheus' node exporter")           \
        X("nv_cpu_memory_used_bytes", "starling_memory_promised_bytes", "of the runtime; of the host: the node exporter")          \
        X("nv_pinned_memory_pool_used_bytes", "starling_client_arena_bytes", "what clients and the runtime share")                 \
        X("nv_cache_num_hits_per_model", "", "answers are not cached")                                                             \
        X("nv_gpu_utilization", "", "there are no GPUs")
