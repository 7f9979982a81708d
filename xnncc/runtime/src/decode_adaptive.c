/* decode_adaptive.c: adaptive Huffman decoder (Faller 1973, Gallager 1978, Knuth 1985, "Dynamic Huffman coding"). */
#include "decode_adaptive.h"

#include <string.h>

/* Give what hangs on node `a` to node `b` and the other way round. */
static void exchange(xnnrt_adaptive *tree, uint32_t a, uint32_t b) {
    uint16_t child = tree->child[a], symbol = tree->symbol[a];
    tree->child[a] = tree->child[b], tree->symbol[a] = tree->symbol[b];
    tree->child[b] = child, tree->symbol[b] = symbol;
    for (int i = 0; i < 2; i++) {
        uint32_t node = i == 0 ? a : b;
        if (tree->child[node] != 0) {
            tree->parent[tree->child[node]] = tree->parent[tree->child[node] + 1] = (uint16_t)node;
        }
    }
}

/* Add one to the weight of `node` and of all above it; the order of weights is kept by exchanging the node with the first
 * of its weight, unless that is its parent. */
static void count(xnnrt_adaptive *tree, uint32_t node) {
    for (;;) {
        uint32_t first = node;
        while (first > 0 && tree->weight[first - 1] == tree->weight[node]) {
            first--;
        }
        first += node != 0 && first == tree->parent[node];
        if (first < node) {
            exchange(tree, node, first);
            node = first;
        }
        tree->weight[node]++;
        if (node == 0) {
            return;
        }
        node = tree->parent[node];
    }
}

/* A symbol for the first time: the last node becomes its parent. Returns its node, 0 when the stream is damaged. */
static uint32_t add_symbol(xnnrt_adaptive *tree) {
    uint32_t symbol = xnnrt_bits_take(&tree->runs.bits, tree->symbol_bits), last = tree->nodes - 1;
    if (symbol >= tree->runs.symbols || tree->is_seen[symbol]) {
        return 0;
    }
    tree->is_seen[symbol] = 1;
    tree->child[last] = (uint16_t)(last + 1);
    tree->parent[last + 1] = tree->parent[last + 2] = (uint16_t)last;
    tree->symbol[last + 1] = (uint16_t)symbol;
    tree->nodes += 2;
    return last + 1;
}

static uint32_t next_symbol(xnnrt_runs *coder) {
    xnnrt_adaptive *tree = (xnnrt_adaptive *)(void *)coder;
    uint32_t node = 0;
    while (tree->child[node] != 0) {
        node = tree->child[node] + xnnrt_bits_take(&tree->runs.bits, 1);
    }
    if (node == tree->nodes - 1) {
        node = add_symbol(tree);
        if (node == 0) {
            return RUNS_MOST_SYMBOLS;
        }
    }
    uint32_t symbol = tree->symbol[node];
    count(tree, node);
    return symbol;
}

void xnnrt_adaptive_start(xnnrt_adaptive *adaptive) {
    memset(&adaptive->nodes, 0, sizeof *adaptive - offsetof(xnnrt_adaptive, nodes));
    adaptive->runs.next = next_symbol;
    adaptive->nodes = 1;
    while (1u << adaptive->symbol_bits < adaptive->runs.symbols) {
        adaptive->symbol_bits++;
    }
}
