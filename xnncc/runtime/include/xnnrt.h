/* xnnrt.h: run a network that xnncc built. C99, no dependency but the C library. This header is the manual.
 *
 * USAGE
 *
 *     #include "xnnrt.h"
 *     #include "squeezenet.h"                      // written by xnncc next to the library: declares xnn_squeezenet_graph
 *
 *     xnnrt_net *net;
 *     xnnrt_options options = {0};                 // all cores, memory from malloc
 *     xnnrt_status status = xnnrt_open_file(&net, xnn_squeezenet_graph, "squeezenet.xnn", &options);
 *     if (status != XNNRT_OK) { puts(xnnrt_strerror(status)); return 1; }
 *
 *     float image[3 * 224 * 224], scores[1000];
 *     const void *inputs[] = {image};              // in the order of xnnrt_input_info(net, 0..)
 *     void *outputs[] = {scores};
 *     status = xnnrt_run(net, inputs, outputs);    // as often as you like; no allocation happens here
 *     xnnrt_close(net);
 *
 * Tensors are dense, row-major, of the shape and type that xnnrt_input_info and xnnrt_output_info tell.
 *
 * MEMORY
 * - xnnrt_open_* allocates, xnnrt_run* never does. xnnrt_close gives everything back.
 * - The arena holds all intermediate tensors and the scratch of every thread. It comes from malloc, or from the caller:
 *   ask xnnrt_arena_size, put 64-byte aligned memory into options.arena, keep it until xnnrt_close. Two nets that are
 *   never run at the same time may share one arena; nothing in it has to survive between two xnnrt_run.
 * - Weights are read in place: from the mapped file, or from the caller's package, which must stay unchanged until
 *   xnnrt_close. A package in memory whose address is not a multiple of 64 works, but its weights are copied at open.
 * - Coded weights (xnncc compress) are decoded at open, on all threads of the net, into memory from malloc; the package is
 *   not needed for them after that, but must stay until xnnrt_close all the same.
 * - What some kernels read instead of stored weights (transformed 3x3 kernels) is made at open, in memory from malloc.
 *
 * STATE
 * - A network built with `xnncc build --state h:hn` keeps h between runs: it is neither an input nor an output of the
 *   net, begins at zero, and what a run computes for hn is h in the next. xnnrt_reset makes all states zero again.
 *   A run that fails leaves the states as they were. Their memory (twice their size) comes from malloc at open.
 *
 * SHAPES
 * - A network built with `xnncc build --shape x=1,3,48,160|320` takes each of these shapes, with one copy of the weights
 *   and one arena. Each choice is a variant; a net opens with the first. xnnrt_set_shapes chooses by the inputs' dims,
 *   xnnrt_use_variant by number; from then on the questions below and xnnrt_run are about that variant. Choosing
 *   allocates nothing and keeps the states:
 *
 *       const int64_t dims[] = {1, 3, 48, 320}, *const all[] = {dims};
 *       status = xnnrt_set_shapes(net, all);         // XNNRT_NO_VARIANT when it was not built for them
 *
 * THREADS
 * - A net has a pool of options.threads threads: the one that calls xnnrt_run and threads - 1 workers that are started
 *   by open and joined by close. More threads than cores are never started: they would only make a network slower.
 * - The caller works too and waits only for work in progress, never for a worker that the system has not scheduled.
 * - Any number of nets may be open, and run at the same time from different threads. One net runs once at a time: a
 *   second xnnrt_run on it meanwhile is refused with XNNRT_BUSY. xnnrt_close must not overlap any other call on its net.
 * - After fork() a child may use no net of its parent.
 *
 * TRUST
 * - A package is hostile until checked: every offset, count and size in it is bounded before use, its CRCs must fit, and
 *   it must carry the build id of the graph function it is opened with.
 * - That finds damage, mix-ups and malformed files. A CRC and a build id are no signature: who can replace the package
 *   on purpose, knowing the library, can change its weights and understate its memory. Protect it as you protect code.
 * - A mapped file must not be cut or rewritten while it is open (replace it by renaming another one over it).
 *
 * BUILDING THE RUNTIME
 * All of src is C99. -DXNNRT_NO_THREADS: no pthreads, everything runs on the caller. -DXNNRT_NO_FILE: no xnnrt_open_file.
 * -DXNNRT_NO_MMAP: xnnrt_open_file reads instead of mapping. With all three only malloc, free, memcpy, memset and memcmp
 * are needed. Every exported symbol starts with xnnrt_.
 */
#ifndef XNNRT_H
#define XNNRT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define XNNRT_API __attribute__((visibility("default")))
#else
#define XNNRT_API
#endif

/* Raised whenever code compiled against an older xnnrt.h would break. */
#define XNNRT_ABI 1

#define XNNRT_MAX_RANK 8
#define XNNRT_MAX_THREADS 64

/* What a function can answer. Values are frozen: new ones go to the end, none is used again. */
typedef enum xnnrt_status {
    XNNRT_OK = 0,
    XNNRT_BAD_ARGUMENT = 1,      /* a null pointer, a negative count, an index or op range outside the network */
    XNNRT_NO_MEMORY = 2,         /* malloc or the address space is exhausted */
    XNNRT_CANNOT_OPEN = 3,       /* the package file cannot be opened */
    XNNRT_READ_FAILED = 4,       /* the package file was opened but cannot be read or mapped */
    XNNRT_NOT_A_PACKAGE = 5,     /* the first bytes are not those of an .xnn package */
    XNNRT_NEWER_VERSION = 6,     /* written by a newer xnncc in a format this runtime does not know */
    XNNRT_WRONG_LENGTH = 7,      /* cut off, or something was appended */
    XNNRT_CORRUPT = 8,           /* a CRC does not fit: bytes were changed */
    XNNRT_MALFORMED = 9,         /* the CRCs fit but the contents contradict themselves or the format's limits */
    XNNRT_UNKNOWN_SECTION = 10,  /* a section marked as required is of a kind this runtime does not know */
    XNNRT_UNKNOWN_ENCODING = 11, /* a needed section is coded in a way this runtime cannot decode */
    XNNRT_WRONG_LIBRARY = 12,    /* the package belongs to another build of the model, or to another target */
    XNNRT_TOO_LARGE = 13,        /* the network does not fit the address space of this device */
    XNNRT_ARENA_TOO_SMALL = 14,  /* options.arena_bytes is less than xnnrt_arena_size says */
    XNNRT_MISALIGNED = 15,       /* the arena (64 bytes) or a tensor (its element size) is not aligned */
    XNNRT_THREAD_REFUSED = 16,   /* the system refused a thread or a thread-specific key */
    XNNRT_BUSY = 17,             /* this net is being run by another thread */
    XNNRT_KERNEL_FAILED = 18,    /* a kernel reported a failure; the outputs are undefined */
    XNNRT_SCRATCH_TOO_SMALL = 19, /* a kernel asked for more scratch than planned; the outputs are undefined */
    XNNRT_NO_VARIANT = 20         /* the network was not built for these shapes */
} xnnrt_status;

/* Element types. Values are frozen, as in the package. */
typedef enum xnnrt_dtype {
    XNNRT_FLOAT32 = 1,
    XNNRT_FLOAT64 = 2,
    XNNRT_FLOAT16 = 3,
    XNNRT_BFLOAT16 = 4,
    XNNRT_INT8 = 5,
    XNNRT_UINT8 = 6,
    XNNRT_INT16 = 7,
    XNNRT_UINT16 = 8,
    XNNRT_INT32 = 9,
    XNNRT_UINT32 = 10,
    XNNRT_INT64 = 11,
    XNNRT_UINT64 = 12,
    XNNRT_BOOL = 13 /* one byte, 0 or 1 */
} xnnrt_dtype;

/* An open network. */
typedef struct xnnrt_net xnnrt_net;

/* The graph function of a model, as declared in the header that xnncc writes. Hand it to open; do not call it. */
typedef int32_t (*xnnrt_graph)(const void *weights, void *arena, const int64_t *io, int32_t first, int32_t last);

/* How to open. All zero is a good default; so is a null pointer. */
typedef struct xnnrt_options {
    int threads;        /* [0, XNNRT_MAX_THREADS]; 0 = one a core, or fewer when options.arena has no room for more */
    void *arena;        /* memory of the caller, 64-byte aligned; null = from malloc */
    size_t arena_bytes; /* bytes at arena; ignored when arena is null */
    uint64_t core_mask; /* bit i = core i may be used; 0 = any. Limits the number of threads to the bits set. A hint to
                           the scheduler on Linux and Android (cores that are offline are passed over), ignored elsewhere.
                           The calling thread is bound during xnnrt_run only, and then released again. */
} xnnrt_options;

/* What an input or output looks like. */
typedef struct xnnrt_tensor {
    const char *name;             /* the model's own name, UTF-8; valid until xnnrt_close */
    int32_t dtype;                /* an xnnrt_dtype */
    int32_t rank;                 /* [0, XNNRT_MAX_RANK]; 0 = a scalar of one element */
    int64_t dims[XNNRT_MAX_RANK]; /* elements; rank of them are set, the rest are 0 */
    size_t bytes;                 /* of the whole tensor */
} xnnrt_tensor;

/* Open the package file `path` for `graph` and set *net, or set it to null on failure. Maps the file read-only, reads
 * all of it once (to check it), allocates, starts the workers.
 * Returns XNNRT_OK, BAD_ARGUMENT, NO_MEMORY, CANNOT_OPEN, READ_FAILED, every status from NOT_A_PACKAGE to TOO_LARGE,
 * ARENA_TOO_SMALL, MISALIGNED (options.arena), THREAD_REFUSED. */
#ifndef XNNRT_NO_FILE
XNNRT_API xnnrt_status xnnrt_open_file(xnnrt_net **net, xnnrt_graph graph, const char *path,
                                       const xnnrt_options *options);
#endif

/* The same for a package of `bytes` bytes in memory, which stays the caller's and must stay unchanged until close.
 * Returns what xnnrt_open_file returns, but for CANNOT_OPEN and READ_FAILED. */
XNNRT_API xnnrt_status xnnrt_open_memory(xnnrt_net **net, xnnrt_graph graph, const void *package, size_t bytes,
                                         const xnnrt_options *options);

/* Set *arena_bytes to the bytes that options.arena needs for `threads` threads (as in xnnrt_options; 0 = one a core).
 * Checks everything in the package but the CRC of its weights.
 * Returns XNNRT_OK, BAD_ARGUMENT, or every status from NOT_A_PACKAGE to TOO_LARGE but WRONG_LIBRARY. */
XNNRT_API xnnrt_status xnnrt_arena_size(const void *package, size_t bytes, int threads, size_t *arena_bytes);

/* Number of inputs and outputs; 0 for a null net. */
XNNRT_API int xnnrt_input_count(const xnnrt_net *net);
XNNRT_API int xnnrt_output_count(const xnnrt_net *net);

/* Describe input or output `index` [0, count). Returns XNNRT_OK or BAD_ARGUMENT (then *tensor is untouched). */
XNNRT_API xnnrt_status xnnrt_input_info(const xnnrt_net *net, int index, xnnrt_tensor *tensor);
XNNRT_API xnnrt_status xnnrt_output_info(const xnnrt_net *net, int index, xnnrt_tensor *tensor);

/* Index of the input or output of that name (bytes compared), or -1. */
XNNRT_API int xnnrt_find_input(const xnnrt_net *net, const char *name);
XNNRT_API int xnnrt_find_output(const xnnrt_net *net, const char *name);

/* Number of variants: different shapes that the network was built for, at least 1; 0 for a null net. */
XNNRT_API int xnnrt_variant_count(const xnnrt_net *net);

/* Choose variant `variant` [0, xnnrt_variant_count(net)). Returns XNNRT_OK, BAD_ARGUMENT (a null net), NO_VARIANT,
 * BUSY. */
XNNRT_API xnnrt_status xnnrt_use_variant(xnnrt_net *net, int variant);

/* Choose the variant whose inputs have these dims: dims[i] points to all dims of input i (rank of them, which is the
 * same in all variants), or is null when any will do. The present variant stays when it fits, else the first that does.
 * Returns XNNRT_OK, BAD_ARGUMENT (a null pointer), NO_VARIANT (then nothing changes), BUSY. */
XNNRT_API xnnrt_status xnnrt_set_shapes(xnnrt_net *net, const int64_t *const *dims);

/* Run the network once. inputs[i] and outputs[i] point to whole tensors, aligned to their element size; inputs are only
 * read; no output may overlap an input or another output. Blocks until done.
 * Returns XNNRT_OK, BAD_ARGUMENT (a null pointer), MISALIGNED, BUSY, NO_MEMORY (the system could not store a
 * thread-specific value), KERNEL_FAILED, SCRATCH_TOO_SMALL. */
XNNRT_API xnnrt_status xnnrt_run(xnnrt_net *net, const void *const *inputs, void *const *outputs);

/* Make every state zero, as after open; a network without states has nothing to do.
 * Returns XNNRT_OK, BAD_ARGUMENT (a null net), BUSY. */
XNNRT_API xnnrt_status xnnrt_reset(xnnrt_net *net);

/* Number of operators that one inference runs, in order; 0 for a null net. */
XNNRT_API int32_t xnnrt_op_count(const xnnrt_net *net);

/* Run operators first <= i < last only; 0 <= first <= last <= xnnrt_op_count(net). Running all of them in order, in any
 * number of steps, with the same pointers and no other use of the arena in between, is one xnnrt_run. The states move on
 * with the last operator.
 * Returns what xnnrt_run returns. */
XNNRT_API xnnrt_status xnnrt_run_ops(xnnrt_net *net, const void *const *inputs, void *const *outputs, int32_t first,
                                     int32_t last);

/* The arena, for dumps of intermediate tensors after xnnrt_run_ops (manifest.json tells where they are). */
XNNRT_API const void *xnnrt_arena(const xnnrt_net *net);

/* Threads that work on this net, the caller included: what was asked for, at most one a core; 0 for a null net. */
XNNRT_API int xnnrt_threads(const xnnrt_net *net);

/* Stop the workers and free everything; a null net is fine. */
XNNRT_API void xnnrt_close(xnnrt_net *net);

/* A sentence in English for a status; never null. */
XNNRT_API const char *xnnrt_strerror(xnnrt_status status);

/* XNNRT_ABI of the runtime that is linked: compare with the header's. */
XNNRT_API int xnnrt_abi(void);

#ifdef __cplusplus
}
#endif

#endif
