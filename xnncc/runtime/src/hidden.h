/* hidden.h: what the runtime's own files share is never exported, whatever the compiler's flags say. */
#ifndef XNNRT_HIDDEN_H
#define XNNRT_HIDDEN_H

#define XNNRT_HIDDEN __attribute__((visibility("hidden")))

#endif
