/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of vector_math.h, included by it once for each width. V is the type; V_MIN and V_MAX give their second operand when one
 * is NaN; V_SCALE(x, m) is x * 2^n for the integer n that m - 1.5 * 2^23 is. The rational functions were fitted for the least
 * relative error: x * P(x^2) / Q(x^2), all coefficients but the smallest positive, so that nothing cancels.
 *
 * Sources: W. J. Cody, W. Waite, "Software Manual for the Elementary Functions", Prentice-Hall 1980, chapter 6 (exp: ln 2 in two
 * parts). Minimax fits by E. Ya. Remez's exchange algorithm: J.-M. Muller, "Elementary Functions", 3rd edition, Birkhauser 2016,
 * chapter 3.
 */

/* Horner's rule, one step: r * u + c. */
#define V_STEP(r, u, c) V_FMA(r, u, V_SET(c))

V_TARGET static inline V V_NAME(exp)(V x)
{
        V bounded = V_MIN(V_SET(89.0f), V_MAX(V_SET(-105.0f), x));
        V magic = V_STEP(bounded, V_SET(0x1.715476p+0f), 0x1.8p23f);
        V n = magic - V_SET(0x1.8p23f);
        /* ln 2 in two parts, of which the first times n is exact. */
        V r = V_FMA(n, V_SET(-0x1.62e4p-1f), bounded);
        V p = V_SET(0x1.6b6e4ep-10f);

        r = V_FMA(n, V_SET(-0x1.7f7d1cp-20f), r);
        p = V_STEP(p, r, 0x1.122f8ap-7f);
        p = V_STEP(p, r, 0x1.555688p-5f);
        p = V_STEP(p, r, 0x1.5554a4p-3f);
        p = V_STEP(p, r, 0x1p-1f);
        p = V_STEP(p, r, 1.0f);
        p = V_STEP(p, r, 1.0f);
        return V_SCALE(p, magic);
}

V_TARGET static inline V V_NAME(erf)(V x)
{
        V t = V_MIN(V_SET(3.95f), V_MAX(V_SET(-3.95f), x)), u = t * t;
        V p = V_SET(0x1.0feb16p-19f), q = V_SET(0x1.3d5bd2p-15f);

        p = V_STEP(p, u, 0x1.2a8398p-12f);
        p = V_STEP(p, u, 0x1.f31f5cp-9f);
        p = V_STEP(p, u, 0x1.b126dp-5f);
        p = V_STEP(p, u, 0x1.884982p-3f);
        p = V_STEP(p, u, 0x1.20dd74p+0f);
        q = V_STEP(q, u, 0x1.32e3a2p-10f);
        q = V_STEP(q, u, 0x1.ed508ap-7f);
        q = V_STEP(q, u, 0x1.d53adp-4f);
        q = V_STEP(q, u, 0x1.019488p-1f);
        q = V_STEP(q, u, 1.0f);
        return V_MIN(V_SET(1.0f), V_MAX(V_SET(-1.0f), t * p / q));
}

V_TARGET static inline V V_NAME(tanh)(V x)
{
        V t = V_MIN(V_SET(9.02f), V_MAX(V_SET(-9.02f), x)), u = t * t;
        V p = V_SET(-0x1.ad603ap-37f), q = V_SET(0x1.59938ap-20f);

        p = V_STEP(p, u, 0x1.06b996p-25f);
        p = V_STEP(p, u, 0x1.d5e376p-16f);
        p = V_STEP(p, u, 0x1.fb07acp-9f);
        p = V_STEP(p, u, 0x1.182a2cp-3f);
        p = V_STEP(p, u, 1.0f);
        q = V_STEP(q, u, 0x1.9cff04p-12f);
        q = V_STEP(q, u, 0x1.be6564p-6f);
        q = V_STEP(q, u, 0x1.e16a6ap-2f);
        q = V_STEP(q, u, 1.0f);
        return V_MIN(V_SET(1.0f), V_MAX(V_SET(-1.0f), t * p / q));
}

V_TARGET static inline V V_NAME(sigmoid)(V x)
{
        return V_SET(1.0f) / (V_SET(1.0f) + V_NAME(exp)(V_SET(0.0f) - x));
}

/* x * sigmoid(a * x) */
V_TARGET static inline V V_NAME(swish)(V x, V a)
{
        return x / (V_SET(1.0f) + V_NAME(exp)(V_SET(0.0f) - a * x));
}

V_TARGET static inline V V_NAME(gelu)(V x)
{
        V half = x * V_SET(0.5f);

        return half * (V_SET(1.0f) + V_NAME(erf)(x * V_SET(0x1.6a09e6p-1f)));
}

/* The other form of Gelu, 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))). */
V_TARGET static inline V V_NAME(gelu_tanh)(V x)
{
        V half = x * V_SET(0.5f), inner = V_STEP(x * x * V_SET(0.044715f), x, 0.0f) + x;

        return half * (V_SET(1.0f) + V_NAME(tanh)(inner * V_SET(0x1.988454p-1f)));
}

V_TARGET static inline V V_NAME(hard_swish)(V x)
{
        return x * V_MIN(V_SET(1.0f), V_MAX(V_SET(0.0f), V_STEP(x, V_SET(0x1.555556p-3f), 0.5f)));
}

#undef V
#undef V_NAME
#undef V_SET
#undef V_FMA
#undef V_MIN
#undef V_MAX
#undef V_SCALE
#undef V_TARGET
#undef V_STEP
