/* AEABI run-time helpers for 32-bit Arm without integer division (ARMv7-A floor): what a compiler calls for 64-bit
   arithmetic, division and block copies. The NDK takes them from compiler-rt, which a machine without it lacks.
   Names and register conventions: "Run-time ABI for the Arm Architecture", sections 4.1.2, 4.2 and 4.3.
   Everything is hidden: each library carries the few that it calls. */
#include <stddef.h>
#include <stdint.h>
#define HELPER __attribute__((visibility("hidden"), used)) __attribute__((pcs("aapcs")))

void *memcpy(void *, const void *, size_t);
void *memmove(void *, const void *, size_t);
void *memset(void *, int, size_t);

#define BLOCK_HELPERS(suffix) \
  HELPER void __aeabi_memcpy##suffix(void *to, const void *from, size_t n) { memcpy(to, from, n); } \
  HELPER void __aeabi_memmove##suffix(void *to, const void *from, size_t n) { memmove(to, from, n); } \
  HELPER void __aeabi_memset##suffix(void *to, size_t n, int byte) { memset(to, byte, n); } \
  HELPER void __aeabi_memclr##suffix(void *to, size_t n) { memset(to, 0, n); }
BLOCK_HELPERS()
BLOCK_HELPERS(4)
BLOCK_HELPERS(8)

/* Returns n / d and stores n % d; division by zero gives 0, as Arm's SDIV does. */
HELPER uint64_t xnn_udivmod64(uint64_t n, uint64_t d, uint64_t *rest) {
  uint64_t quotient = 0, bit = 1;
  if (d == 0) { *rest = n; return 0; }
  while (d <= n && !(d >> 63)) { d <<= 1; bit <<= 1; }
  for (; bit; bit >>= 1, d >>= 1)
    if (n >= d) { n -= d; quotient |= bit; }
  *rest = n;
  return quotient;
}

HELPER int64_t xnn_divmod64(int64_t n, int64_t d, int64_t *rest) {
  uint64_t left, un = n < 0 ? 0 - (uint64_t)n : (uint64_t)n, ud = d < 0 ? 0 - (uint64_t)d : (uint64_t)d;
  uint64_t quotient = xnn_udivmod64(un, ud, &left);
  *rest = (int64_t)(n < 0 ? 0 - left : left);
  return (int64_t)((n < 0) != (d < 0) ? 0 - quotient : quotient);
}

/* 32-bit: quotient in r0, remainder in r1, which is a 64-bit return value. */
HELPER uint64_t __aeabi_uidivmod(uint32_t n, uint32_t d) {
  uint32_t quotient = 0, bit = 1, divisor = d;
  if (d == 0) return (uint64_t)n << 32;
  while (divisor <= n && !(divisor >> 31)) { divisor <<= 1; bit <<= 1; }
  for (; bit; bit >>= 1, divisor >>= 1)
    if (n >= divisor) { n -= divisor; quotient |= bit; }
  return (uint64_t)n << 32 | quotient;
}
HELPER uint64_t __aeabi_idivmod(int32_t n, int32_t d) {
  uint64_t both = __aeabi_uidivmod(n < 0 ? 0 - (uint32_t)n : (uint32_t)n, d < 0 ? 0 - (uint32_t)d : (uint32_t)d);
  uint32_t quotient = (uint32_t)both, rest = (uint32_t)(both >> 32);
  quotient = (n < 0) != (d < 0) ? 0 - quotient : quotient;
  return (uint64_t)(n < 0 ? 0 - rest : rest) << 32 | quotient;
}
HELPER uint32_t __aeabi_uidiv(uint32_t n, uint32_t d) { return (uint32_t)__aeabi_uidivmod(n, d); }
HELPER int32_t __aeabi_idiv(int32_t n, int32_t d) { return (int32_t)__aeabi_idivmod(n, d); }

/* 64-bit: quotient in r0:r1, remainder in r2:r3, which C cannot return. */
#define DIVMOD64(name, worker) \
  __asm__(".text\n.p2align 2\n.syntax unified\n.arm\n.hidden " #name "\n.globl " #name "\n.type " #name ",%function\n" #name ":\n" \
          "push {r11, lr}\nsub sp, sp, #16\nadd r12, sp, #8\nstr r12, [sp]\nbl " #worker "\n" \
          "ldr r2, [sp, #8]\nldr r3, [sp, #12]\nadd sp, sp, #16\npop {r11, pc}\n.size " #name ", .-" #name "\n")
DIVMOD64(__aeabi_uldivmod, xnn_udivmod64);
DIVMOD64(__aeabi_ldivmod, xnn_divmod64);

/* Shifts; the halves are taken apart so that the compiler does not call the helper again. */
HELPER uint64_t __aeabi_llsl(uint64_t x, int n) {
  uint32_t low = (uint32_t)x, high = (uint32_t)(x >> 32);
  if (n >= 32) return (uint64_t)(low << (n - 32)) << 32;
  return n == 0 ? x : (uint64_t)(high << n | low >> (32 - n)) << 32 | low << n;
}
HELPER uint64_t __aeabi_llsr(uint64_t x, int n) {
  uint32_t low = (uint32_t)x, high = (uint32_t)(x >> 32);
  if (n >= 32) return high >> (n - 32);
  return n == 0 ? x : (uint64_t)(high >> n) << 32 | (low >> n | high << (32 - n));
}
HELPER int64_t __aeabi_lasr(int64_t x, int n) {
  uint32_t low = (uint32_t)(uint64_t)x;
  int32_t high = (int32_t)(x >> 32);
  if (n >= 32) return high >> (n - 32);
  return n == 0 ? x : (int64_t)((uint64_t)(uint32_t)(high >> n) << 32 | (low >> n | (uint32_t)high << (32 - n)));
}

/* Between 64-bit integers and floating point, rounded to nearest even where it must round. */
HELPER double __aeabi_ul2d(uint64_t x) { return (double)(uint32_t)(x >> 32) * 4294967296.0 + (double)(uint32_t)x; }
HELPER double __aeabi_l2d(int64_t x) { return (double)(int32_t)(x >> 32) * 4294967296.0 + (double)(uint32_t)(uint64_t)x; }
HELPER float __aeabi_ul2f(uint64_t x) {
  if (x >> 53) x = (x | ((x & 2047) ? 2048 : 0)) & ~(uint64_t)2047; /* sticky bit: keeps the two roundings from adding up */
  return (float)__aeabi_ul2d(x);
}
HELPER float __aeabi_l2f(int64_t x) {
  return x < 0 ? -__aeabi_ul2f(0 - (uint64_t)x) : __aeabi_ul2f((uint64_t)x);
}
HELPER uint64_t __aeabi_d2ulz(double x) {
  uint32_t high;
  if (!(x > 0)) return 0;
  if (x >= 18446744073709551616.0) return UINT64_MAX;
  high = (uint32_t)(x * (1 / 4294967296.0));
  return (uint64_t)high << 32 | (uint32_t)(x - (double)high * 4294967296.0);
}
HELPER int64_t __aeabi_d2lz(double x) {
  if (x >= 9223372036854775808.0) return INT64_MAX;
  if (x <= -9223372036854775808.0) return INT64_MIN;
  return x < 0 ? -(int64_t)__aeabi_d2ulz(-x) : (int64_t)__aeabi_d2ulz(x);
}
HELPER uint64_t __aeabi_f2ulz(float x) { return __aeabi_d2ulz(x); }
HELPER int64_t __aeabi_f2lz(float x) { return __aeabi_d2lz(x); }

/* The same under libgcc's names, which TVM's LLVM calls. Plain functions in the soft-float convention. */
HELPER uint32_t __udivsi3(uint32_t n, uint32_t d) { return __aeabi_uidiv(n, d); }
HELPER uint32_t __umodsi3(uint32_t n, uint32_t d) { return (uint32_t)(__aeabi_uidivmod(n, d) >> 32); }
HELPER int32_t __divsi3(int32_t n, int32_t d) { return __aeabi_idiv(n, d); }
HELPER int32_t __modsi3(int32_t n, int32_t d) { return (int32_t)(uint32_t)(__aeabi_idivmod(n, d) >> 32); }
HELPER uint64_t __udivdi3(uint64_t n, uint64_t d) { uint64_t rest; return xnn_udivmod64(n, d, &rest); }
HELPER uint64_t __umoddi3(uint64_t n, uint64_t d) { uint64_t rest; xnn_udivmod64(n, d, &rest); return rest; }
HELPER int64_t __divdi3(int64_t n, int64_t d) { int64_t rest; return xnn_divmod64(n, d, &rest); }
HELPER int64_t __moddi3(int64_t n, int64_t d) { int64_t rest; xnn_divmod64(n, d, &rest); return rest; }
HELPER uint64_t __ashldi3(uint64_t x, int n) { return __aeabi_llsl(x, n); }
HELPER uint64_t __lshrdi3(uint64_t x, int n) { return __aeabi_llsr(x, n); }
HELPER int64_t __ashrdi3(int64_t x, int n) { return __aeabi_lasr(x, n); }
HELPER float __floatdisf(int64_t x) { return __aeabi_l2f(x); }
HELPER float __floatundisf(uint64_t x) { return __aeabi_ul2f(x); }
HELPER double __floatdidf(int64_t x) { return __aeabi_l2d(x); }
HELPER double __floatundidf(uint64_t x) { return __aeabi_ul2d(x); }
HELPER int64_t __fixsfdi(float x) { return __aeabi_d2lz(x); }
HELPER uint64_t __fixunssfdi(float x) { return __aeabi_d2ulz(x); }
HELPER int64_t __fixdfdi(double x) { return __aeabi_d2lz(x); }
HELPER uint64_t __fixunsdfdi(double x) { return __aeabi_d2ulz(x); }

/* The unwind tables of C objects name these; nothing here is ever unwound. */
HELPER void __aeabi_unwind_cpp_pr0(void) {}
HELPER void __aeabi_unwind_cpp_pr1(void) {}
