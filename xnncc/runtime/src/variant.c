/* variant.c: which of the shapes that a network was built for it takes next. */
#include "net.h"
#include "require.h"

int xnnrt_variant_count(const xnnrt_net *net) { return net == NULL ? 0 : net->package.variant_count; }

xnnrt_status xnnrt_use_variant(xnnrt_net *net, int variant) {
    XNNRT_REQUIRE(net != NULL, XNNRT_BAD_ARGUMENT);
    XNNRT_REQUIRE(variant >= 0 && variant < net->package.variant_count, XNNRT_NO_VARIANT);
    XNNRT_REQUIRE(__atomic_exchange_n(&net->running, 1, __ATOMIC_ACQUIRE) == 0, XNNRT_BUSY);
    xnnrt_choose_variant(&net->package, variant);
    __atomic_store_n(&net->running, 0, __ATOMIC_RELEASE);
    return XNNRT_OK;
}

/* Do all inputs that have dims in the list have those in the package? */
static int fits(const xnnrt_package *package, const int64_t *const *dims) {
    for (int i = 0; i < package->input_count; i++) {
        xnnrt_tensor tensor;
        xnnrt_read_tensor(package, i, &tensor);
        for (int d = 0; dims[i] != NULL && d < tensor.rank; d++) {
            if (dims[i][d] != tensor.dims[d]) {
                return 0;
            }
        }
    }
    return 1;
}

xnnrt_status xnnrt_set_shapes(xnnrt_net *net, const int64_t *const *dims) {
    XNNRT_REQUIRE(net != NULL && dims != NULL, XNNRT_BAD_ARGUMENT);
    xnnrt_package other = net->package;
    if (fits(&other, dims)) {
        return XNNRT_OK;
    }
    for (int variant = 0; variant < other.variant_count; variant++) {
        xnnrt_choose_variant(&other, variant);
        if (fits(&other, dims)) {
            return xnnrt_use_variant(net, variant);
        }
    }
    return XNNRT_NO_VARIANT;
}
