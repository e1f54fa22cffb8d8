/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend "cuda" on a GPU that is not there: the fake driver, own kernels of the host, and libraries in the place of NVIDIA's,
 * opened at the first call and until the process ends. One thread.
 */
#pragma once

struct sl_instance_ground;

/* What its instances run on. Ends the process where the device cannot be opened. */
const struct sl_instance_ground *fake_ground(void);
