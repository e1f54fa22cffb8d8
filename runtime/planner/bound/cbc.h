/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of CBC's C interface that the bound needs, out of the shared library. One thread at a time.
 */
#pragma once

#include <coin/Cbc_C_Interface.h>

struct sl_error;

struct sl_cbc {
        void *library;
        Cbc_Model *(*new_model)(void);
        void (*delete_model)(Cbc_Model *model);
        void (*add_col)(Cbc_Model *model, const char *name, double lb, double ub, double obj, char is_integer, int nz, int *rows,
                double *coefs);
        void (*add_row)(Cbc_Model *model, const char *name, int nz, const int *cols, const double *coefs, char sense, double rhs);
        void (*set_sense)(Cbc_Model *model, double sense);
        void (*set_log_level)(Cbc_Model *model, int level);
        int (*solve)(Cbc_Model *model);
        int (*is_optimal)(Cbc_Model *model);
        double (*objective)(Cbc_Model *model);
        const double *(*solution)(Cbc_Model *model); /* by column, as long as the model is */
};

/* Return: 0; -ENOSYS the library, or a function of it, is not there. */
int sl_cbc_open(struct sl_cbc *cbc, struct sl_error *error);
void sl_cbc_close(struct sl_cbc *cbc);
