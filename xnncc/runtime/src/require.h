/* require.h: leave a function with a status when a claim about somebody else's data does not hold. */
#ifndef XNNRT_REQUIRE_H
#define XNNRT_REQUIRE_H

#define XNNRT_REQUIRE(cond, status) \
    do {                            \
        if (!(cond)) {              \
            return (status);        \
        }                           \
    } while (0)

#endif
