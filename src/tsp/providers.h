/* Private to tsp: the list of providers. X(NAME) stands for `const struct tsp_provider tsp_provider_NAME`. */
#ifndef WEFT_TSP_PROVIDERS_H
#define WEFT_TSP_PROVIDERS_H

#include "tsp/provider.h"

#define TSP_PROVIDERS(X) \
    X(events)            \
    X(histogram)

#define PROVIDER_DECLARED(name) extern const struct tsp_provider tsp_provider_##name;
TSP_PROVIDERS(PROVIDER_DECLARED)
#undef PROVIDER_DECLARED

#endif
