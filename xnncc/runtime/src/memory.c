/* memory.c: 64-byte aligned memory. The pointer that malloc gave stands right before the memory it was cut from. */
#include "memory.h"

#include <stdlib.h>
#include <string.h>

void *xnnrt_allocate(size_t bytes) {
    if (bytes > SIZE_MAX / 2) {
        return NULL;
    }
    uint8_t *block = malloc(bytes + sizeof block + XNNRT_ALIGNMENT);
    if (block == NULL) {
        return NULL;
    }
    uint8_t *memory = block + sizeof block;
    memory += (0 - (uintptr_t)memory) & (XNNRT_ALIGNMENT - 1);
    memcpy(memory - sizeof block, &block, sizeof block);
    return memory;
}

void xnnrt_release(void *memory) {
    if (memory != NULL) {
        void *block;
        memcpy(&block, (uint8_t *)memory - sizeof block, sizeof block);
        free(block);
    }
}
