/* SPDX-License-Identifier: MIT */
/* weft-span: spans from shell scripts. */
#include "script/script.h"

int main(int argc, char **argv)
{
    return script_main(argc, argv);
}
