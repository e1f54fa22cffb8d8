/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a worker takes longer for its jobs than its model's profile says, without having more to do: a sequential test, fed with
 * the end of each job. Plain values, one owner; no clock, and nothing random.
 *
 *     x   logarithm of what a job took by what its profile says, without what is common to all workers (pace.h)
 *     s   standard deviation of x between jobs that follow each other, learned all the time
 *     d   log(1.3): the neighbour that has to be found
 *     z   d / s^2 * (x - d / 2): the log likelihood ratio of "d longer" to "as the profile says", where x is normal
 *
 *     QUIET  --rise >= A--> SLOWED     rise = max(0, rise + z)
 *     SLOWED --fall >= A--> QUIET      fall = max(0, fall - z)
 *
 * A is log(100000). For independent jobs such a sum passes A once in e^A jobs or more rarely while nothing is wrong, whatever s is
 * (Lorden's bound): one false alarm in 100,000 quiet jobs. With something wrong it grows by d^2 / (2 s^2) a job: A is reached
 * within 20 jobs in 95 of 100 runs where s is at most 0.12. Where s is more it takes longer.
 *
 * Times are not normal: a job that is preempted takes ten times as long, and says little. So no job counts more than A /
 * JOBS_LEAST, and less than that many jobs never raise an alarm. s is not taken for less than NOISE_LEAST.
 *
 * Sources: E. S. Page, "Continuous inspection schemes", Biometrika 41, 1954; G. Lorden, "Procedures for reacting to a change in
 * distribution", Annals of Mathematical Statistics 42, 1971, theorem 2. INFaaS (Romero, Li, Yadwadkar, Kozyrakis, ATC 2021),
 * section 4, says only that latencies of the Interfered are "higher than the profiled values"; how much, and for how long, is not
 * said.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_INTERFERENCE_FACTOR      1.3
#define SL_INTERFERENCE_QUIET_JOBS  100000.0
#define SL_INTERFERENCE_JOBS_LEAST  4
#define SL_INTERFERENCE_NOISE_LEAST 0.05

struct sl_interference {
        bool slowed;
        double rise, fall;
        double noise; /* s; 0: not known yet */
        double last;  /* x of the job before */
        uint32_t jobs;
};

/* A job has ended. @log_ratio: x. Return: whether @slowed is another now. */
bool sl_interference_learn(struct sl_interference *test, double log_ratio);

/* That it is slowed was said too long ago. */
void sl_interference_forget(struct sl_interference *test);
