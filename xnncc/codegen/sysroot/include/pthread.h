#include <xnn_libc.h> /* the whole of it: see there */
