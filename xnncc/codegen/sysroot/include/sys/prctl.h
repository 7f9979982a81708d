#include <xnn_posix.h> /* the whole of it: see there */
