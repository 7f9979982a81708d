/* workspace.h: scratch memory of kernels, per thread, out of the arena. */
#ifndef XNNRT_WORKSPACE_H
#define XNNRT_WORKSPACE_H

#include "pool.h"

/* Make `bytes` bytes (a multiple of 64) at `memory` (64-byte aligned) the scratch of `thread`, all of it free. */
XNNRT_HIDDEN void xnnrt_workspace_assign(xnnrt_thread *thread, uint8_t *memory, size_t bytes);

/* Between two runs: free what a failed kernel left on the caller's thread. Returns 1 if any thread had too little. */
XNNRT_HIDDEN int xnnrt_workspace_recover(xnnrt_pool *pool);

#endif
