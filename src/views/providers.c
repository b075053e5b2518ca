/* All providers. A new one: its file provider_NAME.c, a line in providers.h, a line in meson.build. */
#include "tsp/provider.h"

#include "views/providers.h"

#define PROVIDER_ADDRESS(name) &name,
const struct tsp_provider *const tsp_providers[] = {TSP_PROVIDERS(PROVIDER_ADDRESS) NULL};
#undef PROVIDER_ADDRESS

_Static_assert(sizeof tsp_providers / sizeof *tsp_providers <= TSP_MAX_PROVIDERS + 1,
    "more providers than an experiment has caches for");

size_t tsp_provider_number(const struct tsp_provider *p)
{
    size_t i = 0;
    while (tsp_providers[i] && tsp_providers[i] != p)
        i++;
    return i;
}
