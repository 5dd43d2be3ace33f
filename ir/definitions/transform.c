/* DFT and STFT of a length n that is known when compiling, in nests of O(n log n).
 *
 *   X[k] = sum over j of x[j] * exp(-2 pi i j k / n)        inverse: exp(+..), divided by n
 *
 * Complex numbers stand in temporaries of rows .., n, 2. For each factor r of n one nest transforms r
 * elements that lie length / r apart and turns them, so that the results stand in order when all factors are
 * done (Stockham):
 *
 *   y[q + s (r p + k)] = (sum over j < r of x[q + s (p + j m)] * w(r, j k)) * w(length, p k)
 *       m = length / r; then length = m and s = s * r; w(n, j) = exp(-2 pi i j / n), from a table made in f64
 *
 * An n with a large prime factor is a convolution (Bluestein): with c[k] = exp(-pi i k k / n),
 * X[k] = c[k] * (sum over j of x[j] c[j] * conj(c[k - j])), by transforms of a power of two of at least 2 n
 * - 1.
 *
 * Onesided: the first n / 2 + 1 results of a real signal; inverse, those are what is given and the result is
 * real. STFT transforms frames x[f * step + j] * window[j]. */
#include "ir/definitions/build.h"

enum { LARGEST_FACTOR = 31, LONGEST = 1 << 24 };

struct transform {
    struct build *b;
    enum dtype dtype;
    uint32_t rank; /* of the rows */
    dim rows[MAX_RANK];
    bool inverse;
};

struct complex {
    expr re, im;
};

static struct complex complex_mul(struct build *b, struct complex x, struct complex y)
{
    return (struct complex){sub(b, mul(b, x.re, y.re), mul(b, x.im, y.im)),
                            add(b, mul(b, x.re, y.im), mul(b, x.im, y.re))};
}

static struct complex conjugate(struct build *b, struct complex x)
{
    return (struct complex){x.re, expr_unary(b->pool, EXPR_NEG, x.im)};
}

/* ---- arrays of complex numbers
 * ------------------------------------------------------------------------------------ */

static uint32_t new_array(const struct transform *t, int64_t n)
{
    dim dims[MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++)
        dims[i] = t->rows[i];
    dims[t->rank] = dim_constant(t->b->dims, n);
    dims[t->rank + 1] = dim_constant(t->b->dims, 2);
    return build_temporary(t->b, t->dtype, t->rank + 2, dims);
}

static struct complex load_at(const struct transform *t, const struct nest *nest, uint32_t array, expr at)
{
    expr indices[MAX_RANK];
    struct complex x;
    nest_axes(t->b, nest, t->rank, indices);
    indices[t->rank] = at;
    indices[t->rank + 1] = position(t->b, 0);
    x.re = load_buffer(t->b, array, indices);
    indices[t->rank + 1] = position(t->b, 1);
    x.im = load_buffer(t->b, array, indices);
    return x;
}

static void store_at(const struct transform *t, struct nest *nest, uint32_t array, expr at, struct complex x)
{
    expr indices[MAX_RANK];
    nest_axes(t->b, nest, t->rank, indices);
    indices[t->rank] = at;
    indices[t->rank + 1] = position(t->b, 0);
    nest_store(t->b->d, nest, array, indices, x.re);
    indices[t->rank + 1] = position(t->b, 1);
    nest_store(t->b->d, nest, array, indices, x.im);
}

/* A nest over the rows, `count` more parallel axes of the given sizes, and one summed axis unless it is 0. */
static struct nest *nest_over_rows(const struct transform *t, uint32_t count, const int64_t *sizes,
                                   int64_t summed)
{
    dim extents[MAX_AXES];
    const dim over = dim_constant(t->b->dims, summed);
    for (uint32_t i = 0; i < t->rank; i++)
        extents[i] = t->rows[i];
    for (uint32_t i = 0; i < count; i++)
        extents[t->rank + i] = dim_constant(t->b->dims, sizes[i]);
    return definition_nest(t->b->d, t->rank + count, extents, summed ? 1 : 0, &over);
}

/* exp(2 pi i k / n) for k < n. */
static uint32_t make_table(const struct transform *t, int64_t n)
{
    const double tau = 6.283185307179586476925286766559;
    const struct transform own = {.b = t->b, .dtype = t->dtype};
    const uint32_t table = new_array(&own, n);
    struct nest *nest = nest_over_rows(&own, 1, &n, 0);
    const expr k = nest_axis(t->b->d, nest, 0);
    const expr angle = mul(t->b, convert(t->b, DTYPE_F64, k), number(t->b, DTYPE_F64, tau / (double)n));
    const struct complex w = {convert(t->b, t->dtype, function(t->b, EXPR_COS, angle)),
                              convert(t->b, t->dtype, function(t->b, EXPR_SIN, angle))};
    store_at(&own, nest, table, k, w);
    return table;
}

/* The table's entry; conjugate for the direction that turns backwards. */
static struct complex turn(const struct transform *t, const struct nest *nest, uint32_t table, expr at,
                           bool forward)
{
    const struct transform own = {.b = t->b, .dtype = t->dtype};
    const struct complex w = load_at(&own, nest, table, at);
    return forward ? conjugate(t->b, w) : w;
}

/* ---- transforms
 * -------------------------------------------------------------------------------------------------- */

static int64_t next_factor(int64_t n)
{
    if (n % 4 == 0)
        return 4;
    for (int64_t r = 2; r <= LARGEST_FACTOR; r++)
        if (n % r == 0)
            return r;
    return 0;
}

static bool is_smooth(int64_t n)
{
    while (n > 1) {
        const int64_t r = next_factor(n);
        if (!r)
            return false;
        n /= r;
    }
    return true;
}

/* One factor: see the head of the file. */
static uint32_t step(const struct transform *t, uint32_t from, uint32_t table, int64_t n, int64_t length,
                     int64_t r, int64_t s)
{
    struct build *b = t->b;
    const int64_t m = length / r, sizes[3] = {m, r, s};
    const uint32_t to = new_array(t, n);
    struct nest *nest = nest_over_rows(t, 3, sizes, r);
    const expr p = nest_axis(b->d, nest, t->rank), k = nest_axis(b->d, nest, t->rank + 1);
    const expr q = nest_axis(b->d, nest, t->rank + 2), j = nest_axis(b->d, nest, t->rank + 3);
    const expr place = add(b, q, mul(b, position(b, s), add(b, p, mul(b, j, position(b, m)))));
    const expr around = mul(b, index_mod(b, mul(b, j, k), position(b, r)), position(b, n / r));
    const struct complex x =
        complex_mul(b, load_at(t, nest, from, place), turn(t, nest, table, around, !t->inverse));
    const struct complex sum = {expr_reduced(b->pool, nest_reduce(b->d, nest, REDUCE_SUM, x.re), t->dtype),
                                expr_reduced(b->pool, nest_reduce(b->d, nest, REDUCE_SUM, x.im), t->dtype)};
    const expr own = mul(b, mul(b, p, k), position(b, n / length));
    const struct complex y = m == 1 ? sum : complex_mul(b, sum, turn(t, nest, table, own, !t->inverse));
    store_at(t, nest, to, add(b, q, mul(b, position(b, s), add(b, mul(b, p, position(b, r)), k))), y);
    return to;
}

static uint32_t transform_smooth(const struct transform *t, uint32_t array, int64_t n)
{
    if (n == 1)
        return array;
    const uint32_t table = make_table(t, n);
    for (int64_t length = n, s = 1; length > 1;) {
        const int64_t r = next_factor(length);
        array = step(t, array, table, n, length, r, s);
        length /= r;
        s *= r;
    }
    return array;
}

/* c[k] of Bluestein's form, conjugate for an inverse transform. */
static struct complex chirp(const struct transform *t, const struct nest *nest, uint32_t table, expr k,
                            int64_t n)
{
    return turn(t, nest, table, index_mod(t->b, mul(t->b, k, k), position(t->b, 2 * n)), !t->inverse);
}

/* conj(c[|k|]) for -n < k < n around a circle of m, else 0. */
static uint32_t make_filter(const struct transform *t, uint32_t table, int64_t n, int64_t m)
{
    struct build *b = t->b;
    const struct transform own = {.b = b, .dtype = t->dtype, .inverse = t->inverse};
    const uint32_t filter = new_array(&own, m);
    struct nest *nest = nest_over_rows(&own, 1, &m, 0);
    const expr k = nest_axis(b->d, nest, 0), back = sub(b, position(b, m), k), zero = number(b, t->dtype, 0);
    const expr nearest = minimum(b, k, back), inside = less(b, nearest, position(b, n));
    const struct complex c =
        conjugate(b, chirp(&own, nest, table, minimum(b, nearest, position(b, n - 1)), n));
    store_at(&own, nest, filter, k,
             (struct complex){choose(b, inside, c.re, zero), choose(b, inside, c.im, zero)});
    const struct transform forward = {.b = b, .dtype = t->dtype};
    return transform_smooth(&forward, filter, m);
}

static uint32_t transform_any(const struct transform *t, uint32_t array, int64_t n)
{
    struct build *b = t->b;
    if (is_smooth(n))
        return transform_smooth(t, array, n);
    int64_t m = 1;
    while (m < 2 * n - 1)
        m *= 2;
    struct transform forward = *t, back = *t;
    const struct transform own = {.b = b, .dtype = t->dtype};
    forward.inverse = false;
    back.inverse = true;
    const uint32_t table = make_table(t, 2 * n), filter = make_filter(t, table, n, m),
                   padded = new_array(t, m);
    const expr zero = number(b, t->dtype, 0);
    struct nest *nest = nest_over_rows(t, 1, &m, 0);
    expr k = nest_axis(b->d, nest, t->rank), inside = less(b, k, position(b, n)),
         at = minimum(b, k, position(b, n - 1));
    struct complex x = complex_mul(b, load_at(t, nest, array, at), chirp(t, nest, table, at, n));
    store_at(t, nest, padded, k,
             (struct complex){choose(b, inside, x.re, zero), choose(b, inside, x.im, zero)});
    const uint32_t spectrum = transform_smooth(&forward, padded, m), product = new_array(t, m);
    nest = nest_over_rows(t, 1, &m, 0);
    k = nest_axis(b->d, nest, t->rank);
    x = complex_mul(b, load_at(t, nest, spectrum, k), load_at(&own, nest, filter, k));
    store_at(t, nest, product, k, x);
    const uint32_t folded = transform_smooth(&back, product, m), result = new_array(t, n);
    nest = nest_over_rows(t, 1, &n, 0);
    k = nest_axis(b->d, nest, t->rank);
    x = complex_mul(b, load_at(t, nest, folded, k), chirp(t, nest, table, k, n));
    const expr share = number(b, t->dtype, 1 / (double)m);
    store_at(t, nest, result, k, (struct complex){mul(b, x.re, share), mul(b, x.im, share)});
    return result;
}

/* ---- operators
 * --------------------------------------------------------------------------------------------------- */

static bool find_length(struct build *b, int64_t *n)
{
    *n = node_int(b->node, ATTR_dft_length, 0);
    return (*n >= 1 && *n <= LONGEST) ||
           build_refuse(b, "a transform of %lld elements; 1 to %d are supported", (long long)*n,
                        (int)LONGEST);
}

/* The signal at the indices (the last one is set here): 0 outside; a real one has no imaginary part. */
static struct complex signal_at(struct build *b, uint32_t rank, expr *indices)
{
    const struct tensor_type *type = build_input(b, 0);
    const expr none = number(b, type->dtype, 0);
    struct complex x;
    indices[rank - 1] = position(b, 0);
    x.re = load_input_or(b, 0, indices, none);
    x.im = number(b, compute_dtype(type->dtype), 0);
    if (dim_equals_constant(b->dims, type->dims[rank - 1], 2)) {
        indices[rank - 1] = position(b, 1);
        x.im = load_input_or(b, 0, indices, none);
    }
    return x;
}

/* The result's numbers at the axes of its nest: rows, then the place, then which part; `axis` is the place's.
 */
static void store_result(const struct transform *t, uint32_t array, uint32_t axis, double scale)
{
    struct build *b = t->b;
    struct nest *nest = nest_over(b, build_output(b, 0));
    expr axes[MAX_RANK], from[MAX_RANK];
    nest_axes(b, nest, nest->rank, axes);
    for (uint32_t i = 0, next = 0; i < nest->rank; i++)
        if (i != axis)
            from[i + 1 == nest->rank ? t->rank + 1 : next++] = axes[i];
    from[t->rank] = axes[axis];
    store_output(b, nest, 0, NULL, mul(b, load_buffer(b, array, from), number(b, t->dtype, scale)));
}

bool define_dft(struct build *b)
{
    const struct tensor_type *type = build_input(b, 0);
    const uint32_t rank = (uint32_t)type->rank;
    struct transform t = {.b = b,
                          .dtype = compute_dtype(type->dtype),
                          .rank = rank - 2,
                          .inverse = node_int(b->node, ATTR_inverse, 0) != 0};
    const bool halved = t.inverse && node_int(b->node, ATTR_onesided, 0);
    uint32_t axis;
    int64_t n;
    expr indices[MAX_RANK];
    if (!build_axis(b, ATTR_axis, -2, type->rank, &axis) || !find_length(b, &n))
        return false;
    for (uint32_t i = 0, next = 0; i + 1 < rank; i++)
        if (i != axis)
            t.rows[next++] = type->dims[i];
    const uint32_t array = new_array(&t, n);
    struct nest *nest = nest_over_rows(&t, 1, &n, 0);
    for (uint32_t i = 0, next = 0; i + 1 < rank; i++)
        if (i != axis)
            indices[i] = nest_axis(b->d, nest, next++);
    const expr place = nest_axis(b->d, nest, t.rank);
    const expr mirrored = less(b, position(b, n / 2), place);
    indices[axis] = halved ? choose(b, mirrored, sub(b, position(b, n), place), place) : place;
    struct complex x = signal_at(b, rank, indices);
    if (halved)
        x.im = choose(b, mirrored, expr_unary(b->pool, EXPR_NEG, x.im), x.im);
    store_at(&t, nest, array, place, x);
    store_result(&t, transform_any(&t, array, n), axis, t.inverse ? 1 / (double)n : 1);
    return true;
}

bool define_stft(struct build *b)
{
    const struct tensor_type *type = build_input(b, 0), *result = build_output(b, 0);
    struct transform t = {
        .b = b, .dtype = compute_dtype(type->dtype), .rank = 2, .rows = {result->dims[0], result->dims[1]}};
    int64_t n;
    expr indices[3];
    if (!find_length(b, &n))
        return false;
    const uint32_t array = new_array(&t, n);
    struct nest *nest = nest_over_rows(&t, 1, &n, 0);
    const expr place = nest_axis(b->d, nest, 2);
    const expr start = mul(b, nest_axis(b->d, nest, 1), position(b, node_int(b->node, ATTR_frame_step, 1)));
    indices[0] = nest_axis(b->d, nest, 0);
    indices[1] = add(b, start, place);
    struct complex x = {.im = number(b, t.dtype, 0)};
    if (type->rank == 2)
        x.re = load_input_or(b, 0, indices, number(b, type->dtype, 0));
    else
        x = signal_at(b, 3, indices);
    if (build_has_input(b, 1)) {
        const expr weight = load_input(b, 1, &place);
        x = (struct complex){mul(b, x.re, weight), mul(b, x.im, weight)};
    }
    store_at(&t, nest, array, place, x);
    store_result(&t, transform_any(&t, array, n), 2, 1);
    return true;
}
