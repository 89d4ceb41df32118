// What translated programs call. XLA's rules hold: minimum and maximum hand NaN on, conversions to whole numbers stop at
// the ends of their range, divisions by zero and shifts by too much have values.
typedef unsigned u32;
typedef unsigned long size;
#define INLINE static inline __attribute__((always_inline))
#define ALONE __attribute__((no_builtin, used))

ALONE void *memcpy(void *to, const void *from, size n) {
  for (size i = 0; i < n; i++) ((char *)to)[i] = ((const char *)from)[i];
  return to;
}
ALONE void *memmove(void *to, const void *from, size n) {
  if ((char *)to <= (const char *)from) return memcpy(to, from, n);
  while (n--) ((char *)to)[n] = ((const char *)from)[n];
  return to;
}
ALONE void *memset(void *to, int value, size n) {
  for (size i = 0; i < n; i++) ((char *)to)[i] = (char)value;
  return to;
}

INLINE float fmax_(float a, float b) { return __builtin_wasm_max_f32(a, b); }
INLINE float fmin_(float a, float b) { return __builtin_wasm_min_f32(a, b); }
INLINE int imax(int a, int b) { return a > b ? a : b; }
INLINE int imin(int a, int b) { return a < b ? a : b; }
INLINE u32 umax(u32 a, u32 b) { return a > b ? a : b; }
INLINE u32 umin(u32 a, u32 b) { return a < b ? a : b; }
INLINE int within(int x, int low, int high) { return x < low ? low : x > high ? high : x; }
INLINE int capped(u32 x) { return x > 0x7fffffffu ? 0x7fffffff : (int)x; }
INLINE int ftoi(float x) { return __builtin_wasm_trunc_saturate_s_i32_f32(x); }
INLINE u32 ftou(float x) { return __builtin_wasm_trunc_saturate_u_i32_f32(x); }
INLINE u32 ubits(float x) { u32 n; __builtin_memcpy(&n, &x, 4); return n; }
INLINE int ibits(float x) { return (int)ubits(x); }
INLINE float fbits(u32 n) { float x; __builtin_memcpy(&x, &n, 4); return x; }

INLINE int idiv(int a, int b) { return b == 0 ? -1 : b == -1 ? -a : a / b; }
INLINE int irem(int a, int b) { return b == 0 ? a : b == -1 ? 0 : a % b; }
INLINE u32 udiv(u32 a, u32 b) { return b ? a / b : ~0u; }
INLINE u32 urem(u32 a, u32 b) { return b ? a % b : a; }
INLINE int iabs(int a) { return a < 0 ? -a : a; }
INLINE int isign(int a) { return (a > 0) - (a < 0); }
INLINE float fsign(float a) { return a > 0 ? 1.0f : a < 0 ? -1.0f : a; }
INLINE float faway(float x) {
  float whole = __builtin_truncf(x);
  return __builtin_fabsf(x - whole) >= 0.5f ? whole + __builtin_copysignf(1.0f, x) : whole;
}
INLINE int left(int a, int n) { return (u32)n < 32u ? (int)((u32)a << n) : 0; }
INLINE u32 uleft(u32 a, u32 n) { return n < 32u ? a << n : 0u; }
INLINE u32 uright(u32 a, u32 n) { return n < 32u ? a >> n : 0u; }
INLINE int right(int a, int n) { return (int)uright((u32)a, (u32)n); }
INLINE int halved(int a, int n) { return a >> ((u32)n < 32u ? n : 31); }

// By whole multiples of b, the largest first; each difference is exact.
static float frem(float a, float b) {
  float rest = __builtin_fabsf(a), unit = __builtin_fabsf(b);
  if (!(unit > 0) || !(rest < __builtin_inff()) || b != b) return __builtin_nanf("");
  while (rest >= unit) {
    float step = unit;
    while (step <= 0.5f * rest) step *= 2;
    rest -= step;
  }
  return __builtin_copysignf(rest, a);
}

// The next three are computed as XLA computes them on a CPU, operation by operation: walkers and networks that have the
// same inputs shall have the same outputs. The polynomials are those of the Cephes library, and of Eigen for tanh. There
// are no branches, so that loops over them can take four numbers at once.

// eˣ = 2ⁿ·eʳ, with r the rest in ±½ ln 2.
INLINE float fexp(float x) {
  float y = fmin_(fmax_(x, -87.33654785f), 88.72283935f);
  float n = __builtin_floorf(y * 1.44269504f + 0.5f);
  float r = (y - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  return x < -87.33654785f ? 0.0f : p * fbits((u32)(ftoi(n) + 127) << 23);
}
INLINE float fsigmoid(float x) { return 1.0f / (1.0f + fexp(-x)); }
INLINE float ftanh(float x) {
  float y = fmin_(fmax_(x, -7.99881172f), 7.99881172f), z = y * y;
  float p = -2.76076847742355e-16f;
  p = p * z + 2.00018790482477e-13f;
  p = p * z + -8.60467152213735e-11f;
  p = p * z + 5.12229709037114e-08f;
  p = p * z + 1.48572235717979e-05f;
  p = p * z + 6.37261928875436e-04f;
  p = p * z + 4.89352455891786e-03f;
  float q = 1.19825839466702e-06f;
  q = q * z + 1.18534705686654e-04f;
  q = q * z + 2.26843463243900e-03f;
  q = q * z + 4.89352518554385e-03f;
  return __builtin_fabsf(x) < 0.0004f ? x : p * y / q;
}
// ln x = n ln 2 + ln m, with m in √½ … √2.
INLINE float flog(float x) {
  u32 bits = ubits(fmax_(x, 1.17549435e-38f));
  float m = fbits((bits & 0x7fffff) | 0x3f000000), n = (float)((int)(bits >> 23) - 127) + 1.0f;
  int low = m < 0.707106781f;
  n = low ? n - 1.0f : n;
  m = low ? (m - 1.0f) + m : m - 1.0f;
  float z = m * m, w = z * m;
  float a = (7.0376836292e-2f * m + -1.1514610310e-1f) * m + 1.1676998740e-1f;
  float b = (-1.2420140846e-1f * m + 1.4249322787e-1f) * m + -1.6668057665e-1f;
  float c = (2.0000714765e-1f * m + -2.4999993993e-1f) * m + 3.3333331174e-1f;
  float sum = ((a * w + b) * w + c) * w + n * -2.12194440e-4f;
  float found = (m - z * 0.5f + sum) + n * 0.693359375f;
  found = x == __builtin_inff() ? x : x < 1.17549435e-38f ? -__builtin_inff() : found;
  return x < 0 || x != x ? __builtin_nanf("") : found;
}

// In double precision, rounded once.
static double dexp(double x) {
  if (x > 709) return __builtin_inf();
  if (x < -708) return 0;
  double n = __builtin_rint(x * 1.4426950408889634), r = x - n * 0.6931471805599453, p = 1, term = 1;
  for (int k = 1; k < 14; k++) p += term *= r / k;
  long long bits = ((long long)n + 1023) << 52;
  double scale;
  __builtin_memcpy(&scale, &bits, 8);
  return p * scale;
}
static double dlog(double x) {
  if (x != x || x < 0) return __builtin_nan("");
  if (x == 0) return -__builtin_inf();
  if (x == __builtin_inf()) return x;
  long long bits;
  __builtin_memcpy(&bits, &x, 8);
  int n = (int)(bits >> 52) - 1023;
  bits = (bits & 0xfffffffffffffLL) | 0x3ff0000000000000LL;
  double m;
  __builtin_memcpy(&m, &bits, 8);
  if (m > 1.4142135623730951) m *= 0.5, n++;
  double s = (m - 1) / (m + 1), z = s * s, sum = 0;
  for (int k = 21; k > 0; k -= 2) sum = sum * z + 1.0 / k;
  return n * 0.6931471805599453 + 2 * s * sum;
}
static float flog1p(float x) {
  double y = x, s = y / (2 + y), z = s * s;
  return __builtin_fabsf(x) < 0.1f ? (float)(2 * s * (1 + z * (1.0 / 3 + z * (1.0 / 5 + z / 7)))) : (float)dlog(1 + y);
}
static float fexpm1(float x) {
  double y = x;
  if (__builtin_fabsf(x) >= 0.1f || x != x) return x != x ? x : (float)(dexp(y) - 1);
  return (float)(y * (1 + y / 2 * (1 + y / 3 * (1 + y / 4 * (1 + y / 5 * (1 + y / 6 * (1 + y / 7)))))));
}
static float fpow(float a, float b) {
  if (b == 0 || a == 1) return 1.0f;
  if (a != a || b != b) return __builtin_nanf("");
  int whole = __builtin_floorf(b) == b, odd = whole && __builtin_fabsf(b) < 16777216.0f && ((int)b & 1);
  if (a < 0 && !whole && a > -__builtin_inff() && __builtin_fabsf(b) < __builtin_inff()) return __builtin_nanf("");
  float size = (float)dexp(b * dlog(__builtin_fabsf(a)));
  return odd ? __builtin_copysignf(size, a) : size;
}

// The rest after whole quarter turns, π/2 taken off in two parts; and how many quarters they were.
static double quarters(double x, int *n) {
  double k = __builtin_rint(x * 0.6366197723675814);
  *n = (int)((long long)k & 3);
  return (x - k * 1.5707963267341256) - k * 6.077100506506192e-11;
}
static double dsin(double r) {
  double sum = r, term = r;
  for (int k = 2; k < 16; k += 2) sum += term *= -r * r / (k * (k + 1));
  return sum;
}
static double dcos(double r) {
  double sum = 1, term = 1;
  for (int k = 1; k < 17; k += 2) sum += term *= -r * r / (k * (k + 1));
  return sum;
}
static float fwave(float x, int ahead) {
  if (!(__builtin_fabsf(x) < 1e9f)) return __builtin_nanf("");
  int n;
  double r = quarters(x, &n);
  n = (n + ahead) & 3;
  double y = n & 1 ? dcos(r) : dsin(r);
  return (float)(n & 2 ? -y : y);
}
static float fsin(float x) { return fwave(x, 0); }
static float fcos(float x) { return fwave(x, 1); }
static float ftan(float x) { return fwave(x, 0) / fwave(x, 1); }

// The inverse of the error function, by Giles (2012).
static float ferfinv(float x) {
  static const float near[] = {2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f, 0.00021858087f,
                               -0.00125372503f, -0.00417768164f, 0.246640727f, 1.50140941f};
  static const float far[] = {-0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f, 0.00573950773f,
                              -0.0076224613f, 0.00943887047f, 1.00167406f, 2.83297682f};
  float w = -flog1p(-x * x), p;
  int is_near = w < 5;
  w = is_near ? w - 2.5f : __builtin_sqrtf(w) - 3;
  const float *c = is_near ? near : far;
  p = c[0];
  for (int k = 1; k < 9; k++) p = c[k] + p * w;
  return __builtin_fabsf(x) == 1 ? x * __builtin_inff() : p * x;
}

// Threefry-2x32 with 20 rounds: word 0 or 1 of what the two words of a key make of two words.
static u32 threefry(int word, u32 key0, u32 key1, u32 x, u32 y) {
  static const unsigned char turns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  u32 keys[3] = {key0, key1, key0 ^ key1 ^ 0x1BD11BDAu};
  x += keys[0];
  y += keys[1];
  for (u32 i = 0; i < 5; i++) {
    for (int j = 0; j < 4; j++) {
      int n = turns[i & 1][j];
      x += y;
      y = (y << n | y >> (32 - n)) ^ x;
    }
    x += keys[(i + 1) % 3];
    y += keys[(i + 2) % 3] + i + 1;
  }
  return word ? y : x;
}

// Numbers in an order that is theirs as floats: -0 is 0, and NaN comes last.
INLINE int order(float x) {
  int n = x != x ? 0x7fc00000 : x == 0 ? 0 : ibits(x);
  return n < 0 ? n ^ 0x7fffffff : n;
}
// Into `place`, where the entries of `key` are in their order: those that are equal stay as they were. By merging runs.
#define SORTED(NAME, TYPE, BEFORE)                                                        \
  static void NAME(const TYPE *key, int stride, int n, int *place, int *spare) {          \
    for (int i = 0; i < n; i++) place[i] = i;                                             \
    for (int run = 1; run < n; run *= 2) {                                                \
      for (int low = 0; low < n; low += 2 * run) {                                        \
        int middle = imin(low + run, n), high = imin(low + 2 * run, n), i = low, j = middle; \
        for (int k = low; k < high; k++) {                                                \
          int second = i >= middle || (j < high && BEFORE(key[place[j] * stride], key[place[i] * stride])); \
          spare[k] = second ? place[j++] : place[i++];                                    \
        }                                                                                 \
      }                                                                                   \
      for (int k = 0; k < n; k++) place[k] = spare[k];                                    \
    }                                                                                     \
  }
#define LESS(a, b) ((a) < (b))
#define FLOAT_LESS(a, b) (order(a) < order(b))
SORTED(sorted_float, float, FLOAT_LESS)
SORTED(sorted_int, int, LESS)
SORTED(sorted_unsigned, unsigned, LESS)
SORTED(sorted_byte, unsigned char, LESS)
