/* decode_huffman.c: canonical Huffman decoder, one look into a table for a symbol. */
#include "decode_huffman.h"

#include <string.h>

enum { LENGTH_BITS = 4, LONGEST_ZEROS = 16 };

/* Lengths of 4 bits; a 0 is followed by how many more there are, plus one. */
static int read_lengths(xnnrt_bits *bits, uint8_t *lengths, uint32_t symbols) {
    for (uint32_t i = 0; i < symbols;) {
        lengths[i] = (uint8_t)xnnrt_bits_take(bits, LENGTH_BITS);
        if (lengths[i++] == 0) {
            uint32_t more = xnnrt_bits_take_number(bits, LONGEST_ZEROS) - 1;
            if (more > symbols - i) {
                return 0;
            }
            memset(lengths + i, 0, more);
            i += more;
        }
    }
    return xnnrt_bits_are_there(bits);
}

static uint32_t reversed(uint32_t code, int length) {
    uint32_t out = 0;
    for (int i = 0; i < length; i++) {
        out = out << 1 | (code >> i & 1);
    }
    return out;
}

static uint32_t next_symbol(xnnrt_runs *coder) {
    xnnrt_huffman *huffman = (xnnrt_huffman *)(void *)coder;
    xnnrt_bits_fill(&coder->bits);
    uint32_t entry = huffman->table[coder->bits.word & ((1u << HUFFMAN_LONGEST) - 1)];
    xnnrt_bits_skip(&coder->bits, entry & 15);
    return entry >> 4;
}

int xnnrt_huffman_start(xnnrt_huffman *huffman) {
    uint8_t lengths[RUNS_MOST_SYMBOLS];
    huffman->runs.next = next_symbol;
    if (!read_lengths(&huffman->runs.bits, lengths, huffman->runs.symbols)) {
        return 0;
    }
    uint32_t next = 0; /* code of HUFFMAN_LONGEST bits */
    for (int length = 1; length <= HUFFMAN_LONGEST; length++) {
        const uint32_t codes = (uint32_t)1 << (HUFFMAN_LONGEST - length);
        for (uint32_t symbol = 0; symbol < huffman->runs.symbols; symbol++) {
            if (lengths[symbol] != length) {
                continue;
            }
            if (next + codes > (uint32_t)1 << HUFFMAN_LONGEST) {
                return 0;
            }
            uint32_t code = reversed(next >> (HUFFMAN_LONGEST - length), length);
            for (uint32_t i = 0; i < codes; i++) {
                huffman->table[code | i << length] = (uint16_t)(symbol << 4 | (uint32_t)length);
            }
            next += codes;
        }
    }
    return next == (uint32_t)1 << HUFFMAN_LONGEST;
}
