/* fuzz_open.c: damage packages and open them. Driven by tools/fuzz_package.py.
 *
 *   fuzz_open SEED COUNT PACKAGE...     COUNT inputs made here from the packages; the same SEED makes the same inputs
 *   with -DFUZZ_LIBFUZZER               libFuzzer drives, with the same mutator as its custom one
 *
 * A change that leaves a CRC wrong is refused at once, so most inputs get their CRCs mended after the damage: then the
 * checks behind them are what is tested. Whatever opens is asked everything a user can ask, and run.
 */
#include <stdlib.h>
#include <string.h>

#include "../../xnncc/runtime/src/crc.h"
#include "fake_model.h"
#include "xnnrt.h"

enum { MOST_BYTES = 8192 };

static xnnrt_crc crc;
static unsigned char arena[1 << 16] __attribute__((aligned(64)));
static unsigned long accepted, by_status[XNNRT_NO_VARIANT + 1];

static uint64_t random_state;

static uint32_t random_below(uint32_t limit) { /* xorshift64* */
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (uint32_t)((random_state * 0x2545F4914F6CDD1Du) >> 32) % limit;
}

static uint64_t get(const uint8_t *p, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        value |= (uint64_t)p[i] << (8 * i);
    }
    return value;
}

static void put(uint8_t *p, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) {
        p[i] = (uint8_t)(value >> (8 * i));
    }
}

/* Make the CRCs, and the file length, right again as far as the damage lets one find them. */
static void mend(uint8_t *data, size_t size) {
    if (size < 64) {
        return;
    }
    uint64_t sections = get(data + 12, 4);
    put(data + 16, size, 8);
    if (sections > (size - 64) / 40) {
        return;
    }
    if (sections > 0 && random_below(2) == 0) { /* let the last section end where the file does */
        uint8_t *entry = data + 64 + 40 * (sections - 1);
        uint64_t offset = get(entry + 16, 8);
        if (offset <= size) {
            put(entry + 24, size - offset, 8);
            put(entry + 32, size - offset, 8);
        }
    }
    for (uint64_t i = 0; i < sections; i++) {
        uint8_t *entry = data + 64 + 40 * i;
        uint64_t offset = get(entry + 16, 8), stored = get(entry + 24, 8);
        if (offset <= size && stored <= size - offset) {
            put(entry + 12, xnnrt_crc_update(&crc, 0, data + offset, (size_t)stored), 4);
        }
    }
    uint32_t value = xnnrt_crc_update(&crc, 0, data, 60);
    put(data + 60, xnnrt_crc_update(&crc, value, data + 64, (size_t)(40 * sections)), 4);
}

/* A number that tends to hurt. */
static uint64_t hurtful(uint64_t old, size_t size) {
    static const uint64_t numbers[] = {0, 1, 2, 8, 9, 13, 14, 63, 64, 65, 127, 128, 1024, 1025, 0x7FFFFFFF, 0x80000000,
                                       0xFFFFFFFF, (uint64_t)1 << 32, (uint64_t)1 << 40, ((uint64_t)1 << 40) + 1,
                                       (uint64_t)1 << 62, (uint64_t)1 << 63, ~(uint64_t)0, ~(uint64_t)63};
    switch (random_below(5)) {
        case 0:
            return numbers[random_below(sizeof numbers / sizeof numbers[0])];
        case 1:
            return old + random_below(129) - 64;
        case 2:
            return size + random_below(129) - 64;
        case 3:
            return old ^ (uint64_t)1 << random_below(64);
        default:
            return random_below(256);
    }
}

/* Where a number of the format is: header, table, fixed part of META, a tensor record, or anywhere. */
static size_t place_of_number(const uint8_t *data, size_t size, int *bytes) {
    static const uint8_t header[] = {8, 12, 16, 24, 32}, entry[] = {0, 4, 8, 12, 16, 24, 32};
    static const uint8_t meta[] = {0, 8, 16, 20, 24, 28, 32, 36, 40};
    size_t at = 0, contents = size >= 104 ? (size_t)get(data + 80, 4) : 0;
    *bytes = 4 << random_below(2);
    switch (random_below(6)) {
        case 0:
            at = header[random_below(sizeof header)];
            break;
        case 1:
            at = 64 + 40 * random_below(4) + entry[random_below(sizeof entry)];
            break;
        case 2:
        case 3:
            at = contents + meta[random_below(sizeof meta)];
            break;
        case 4:
            at = contents + 48 + 80 * random_below(4) + 4 * random_below(20);
            break;
        default:
            at = random_below((uint32_t)size);
    }
    return size >= 8 && at <= size - 8 ? at : random_below((uint32_t)(size >= 8 ? size - 7 : 1));
}

/* Copy some bytes over others. */
static void copy_block(uint8_t *data, size_t size) {
    size_t count = 1 + random_below(96);
    if (size > count) {
        size_t from = random_below((uint32_t)(size - count)), to = random_below((uint32_t)(size - count));
        memmove(data + to, data + from, count);
    }
}

/* One change; returns the new size, at most `most`. */
static size_t change(uint8_t *data, size_t size, size_t most) {
    int bytes;
    size_t at;
    if (size < 8) {
        return size;
    }
    switch (random_below(8)) {
        case 0: /* cut or lengthen */
            at = random_below(8) == 0 ? random_below((uint32_t)size) : size - random_below(8);
            return at;
        case 1:
            at = 1 + random_below(130);
            at = at < most - size ? at : most - size;
            memset(data + size, random_below(2) ? 0 : (int)random_below(256), at);
            return size + at;
        case 2: /* a bit */
            data[random_below((uint32_t)size)] ^= (uint8_t)(1u << random_below(8));
            return size;
        case 3:
            copy_block(data, size);
            return size;
        case 4: /* text becomes something else than UTF-8 or loses its end */
            data[size - 1 - random_below((uint32_t)(size < 256 ? size : 256))] = (uint8_t)random_below(256);
            return size;
        default:
            at = place_of_number(data, size, &bytes);
            if (at + (size_t)bytes <= size) {
                put(data + at, hurtful(get(data + at, bytes), size), bytes);
            }
            return size;
    }
}

/* Damage `size` bytes in place; returns the new size. */
static size_t damage(uint8_t *data, size_t size, size_t most) {
    for (uint32_t changes = 1 + random_below(4); changes > 0; changes--) {
        size = change(data, size, most);
    }
    if (random_below(16) != 0) {
        mend(data, size);
    }
    return size;
}

static void ask_everything(xnnrt_net *net) {
    static const void *inputs[1024];
    static void *outputs[1024];
    static uint8_t tensor_of_caller[64] __attribute__((aligned(64)));
    xnnrt_tensor tensor;
    size_t letters = 0;
    for (int i = 0; i < xnnrt_input_count(net); i++) {
        CHECK(xnnrt_input_info(net, i, &tensor) == XNNRT_OK);
        letters += strlen(tensor.name);
        int found = xnnrt_find_input(net, tensor.name);
        CHECK(found >= 0 && found <= i && tensor.rank >= 0 && tensor.rank <= XNNRT_MAX_RANK);
        inputs[i] = tensor_of_caller;
    }
    for (int i = 0; i < xnnrt_output_count(net); i++) {
        CHECK(xnnrt_output_info(net, i, &tensor) == XNNRT_OK);
        letters += strlen(tensor.name);
        CHECK(xnnrt_find_output(net, tensor.name) >= 0);
        outputs[i] = tensor_of_caller;
    }
    CHECK(xnnrt_op_count(net) >= 0);
    CHECK((letters > 0) == (xnnrt_input_count(net) + xnnrt_output_count(net) > 0)); /* no name is empty */
    CHECK(xnnrt_run(net, inputs, outputs) == XNNRT_OK);
}

/* The graph: the weights and the arena are where a kernel may expect them. */
static int32_t graph(const void *weights, void *memory, const int64_t *io, int32_t first, int32_t last) {
    if (first == -1) {
        *(int64_t *)memory = fake_build_id;
        return 0;
    }
    (void)io;
    CHECK(first == -2 || (first >= 0 && first <= last));
    CHECK((uintptr_t)weights % 64 == 0);
    memset(memory, 1, 64);
    return 0;
}

static void try_open(const uint8_t *data, size_t size) {
    xnnrt_net *net;
    xnnrt_options options = {.threads = 1, .arena = arena, .arena_bytes = sizeof arena};
    size_t arena_bytes;
    uint8_t *exact = malloc(size); /* ASan watches both of its ends */
    CHECK(exact != NULL || size == 0);
    memcpy(exact, data, size);
    fake_build_id = size >= 32 ? (int64_t)get(exact + 24, 8) : 0;
    xnnrt_status sized = xnnrt_arena_size(exact, size, 1, &arena_bytes);
    xnnrt_status status = xnnrt_open_memory(&net, graph, exact, size, &options);
    by_status[status]++;
    if (status == XNNRT_OK) {
        CHECK(sized == XNNRT_OK && arena_bytes <= sizeof arena);
        accepted++;
        for (int variant = 0; variant < xnnrt_variant_count(net); variant++) {
            CHECK(xnnrt_use_variant(net, variant) == XNNRT_OK);
            ask_everything(net);
        }
        CHECK(xnnrt_use_variant(net, xnnrt_variant_count(net)) == XNNRT_NO_VARIANT);
    }
    xnnrt_close(net);
    free(exact);
}

#ifdef FUZZ_LIBFUZZER

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    xnnrt_crc_init(&crc);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    try_open(data, size);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    random_state = seed * 0x9E3779B97F4A7C15u + 1;
    if (random_below(4) == 0) {
        size = LLVMFuzzerMutate(data, size, most);
        mend(data, size);
        return size;
    }
    return damage(data, size, most);
}

#else

static size_t load(const char *path, uint8_t *data) {
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    size_t size = fread(data, 1, MOST_BYTES, file);
    CHECK(size < MOST_BYTES);
    fclose(file);
    return size;
}

int main(int argc, char **argv) {
    enum { MOST_PACKAGES = 16 };
    static uint8_t packages[MOST_PACKAGES][MOST_BYTES], data[2 * MOST_BYTES];
    size_t sizes[MOST_PACKAGES];
    int count = argc - 3;
    CHECK(count >= 1 && count <= MOST_PACKAGES);
    xnnrt_crc_init(&crc);
    for (int i = 0; i < count; i++) {
        sizes[i] = load(argv[3 + i], packages[i]);
        try_open(packages[i], sizes[i]);
    }
    CHECK(accepted == (unsigned long)count); /* they are good to begin with */
    random_state = strtoull(argv[1], NULL, 10) * 0x9E3779B97F4A7C15u + 1;
    unsigned long inputs = strtoul(argv[2], NULL, 10);
    for (unsigned long i = 0; i < inputs; i++) {
        int which = (int)random_below((uint32_t)count);
        memcpy(data, packages[which], sizes[which]);
        try_open(data, damage(data, sizes[which], sizeof data));
    }
    printf("%lu inputs, %lu opened; by status:", inputs, accepted);
    for (size_t status = 0; status < sizeof by_status / sizeof by_status[0]; status++) {
        if (by_status[status] != 0) {
            printf(" %d:%lu", (int)status, by_status[status]);
        }
    }
    puts("");
    return 0;
}

#endif
