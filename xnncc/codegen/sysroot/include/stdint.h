/* gcc's own stdint.h asks the C library for one; what it would otherwise use lies beside it. clang's needs nothing. */
#if defined(__GNUC__) && !defined(__clang__)
#include <stdint-gcc.h>
#else
#include_next <stdint.h>
#endif
